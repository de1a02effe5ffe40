"""What a parameter takes as a value, in whatever form it is given."""

from collections.abc import Mapping

from tuner.ports import Scalar
from tuner.space.encoding import fit_number, is_on_grid
from tuner.space.expressions import Expression
from tuner.space.parameters import Parameter
from tuner.space.problems import quote, suggest
from tuner.space.scalars import Refused, as_flag, as_number


def accept(parameter: Parameter, given: Scalar) -> Scalar:
    """Return a given value in the type of its kind; its range is not looked at.

    A label of a special value stands for the stored one. Raises Refused for a wrong type or unknown choice.
    """
    if parameter.kind == "bool":
        return _accept_bool(given)
    if parameter.kind == "categorical":
        return _accept_choice(parameter.choices, given)
    special = find_special(parameter.special, given)
    if special is not None:
        return parameter.special[special]
    number = as_number(given)
    if number is None:
        labels = f" or one of {', '.join(parameter.special)}" if parameter.special else ""
        raise Refused(f"{quote(given)} is not a number", f"Give a number{labels}")
    if parameter.kind == "int" and number != int(number):
        raise Refused(f"{number} is not a whole number", "Give a whole number; floor, ceil or round make one")
    return int(number) if parameter.kind == "int" else float(number)


def find_special(special: Mapping[str, Scalar], given: Scalar) -> str | None:
    """Return the label of a special value that is given by label or as stored."""
    if isinstance(given, str) and given in special:
        return given
    for label, stored in special.items():
        if stored == given and not isinstance(given, bool):
            return label
    return None


def _accept_bool(given: Scalar) -> bool:
    flag = as_flag(given)
    if flag is None and str(given) in {"0", "1"}:  # as the kernel shows it
        return str(given) == "1"
    if flag is None:
        raise Refused(f"{quote(given)} is neither on nor off", "Give true or false")
    return flag


def _accept_choice(choices: tuple[Scalar, ...], given: Scalar) -> Scalar:
    # A study file's `on` has become True before it comes here.
    words = (
        {True: ("on", "yes", "true"), False: ("off", "no", "false")}.get(given, ())
        if isinstance(given, bool)
        else ()
    )
    for choice in choices:
        if choice == given and not isinstance(given, bool):
            return choice
    for choice in choices:
        if str(choice) == str(given) or choice in words:
            return choice
    raise Refused(f"{quote(given)} is none of its choices", suggest(str(given), map(str, choices)))


def keep_within(parameter: Parameter, value: Scalar, low: float, high: float) -> Scalar:
    """Return an accepted value as the configuration keeps it: in range, floats with few digits."""
    if (
        isinstance(value, str)
        or not parameter.is_numeric
        or find_special(parameter.special, value) is not None
    ):
        return value
    return fit_number(value, parameter, low, high)


def fault_in_range(parameter: Parameter, value: Scalar, low: float, high: float) -> Refused | None:
    """Return what is wrong with an accepted value within its bounds; None when nothing is."""
    if not parameter.is_numeric or find_special(parameter.special, value) is not None:
        return None
    number = as_number(value)
    if number is None:
        return Refused(f"{quote(value)} is not a number", "Give a number")
    if not low <= number <= high:
        side, bound, limit = ("below", "low", low) if number < low else ("above", "high", high)
        written = parameter.low if number < low else parameter.high
        origin = f" (`{written.text}`)" if isinstance(written, Expression) else ""
        return Refused(
            f"{format_number(number)} is {side} its {bound}, {format_number(limit)}{origin}",
            f"Give {format_number(low)} to {format_number(high)}"
            + (f", or {', '.join(parameter.special)}" if parameter.special else ""),
        )
    if not is_on_grid(number, low, parameter):
        return Refused(
            f"{format_number(number)} is off its grid: {format_number(low)} and steps of {parameter.step}",
            f"Give {format_number(fit_number(number, parameter, low, high))}",
        )
    return None


def format_number(value: float) -> str:
    """Show a number without a useless fraction."""
    return str(value) if isinstance(value, int) else f"{value:.12g}"
