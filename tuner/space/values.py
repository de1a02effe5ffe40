"""Values of one parameter: how they are read, fitted to its range and grid, and shown."""

import math
import re
from collections.abc import Mapping

from tuner.ports import Scalar
from tuner.space.expressions import LARGEST_NUMBER, Expression
from tuner.space.parameters import Item, Parameter
from tuner.space.problems import Place, Refused, problem, quote, suggest

FLAGS = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
FLOAT_DIGITS = 6
"""Significant digits kept of a float, so that a value survives the way to its position and back."""
GRID_DIGITS = 12
"""The same for a float that has steps, which must not be rounded away."""
EXACT = 1e15
"""Below it, every whole number is a float of its own."""
_INTEGER = re.compile(r"[-+]?[0-9]{1,19}")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9]{1,40}\.[0-9]{0,40}|\.[0-9]{1,40}|[0-9]{1,40}(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?"
)
BYTE_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_MEASURES = frozenset({"ns", "us", "µs", "ms", "s", "min", "h", "%", "pages"})
"""Units that belong behind a number; what is counted (processes, requests) is left to the name."""


def as_flag(value: object) -> bool | None:
    """Return on/off, yes/no, true/false as a boolean; None for anything else."""
    return value if isinstance(value, bool) else FLAGS.get(value.lower()) if isinstance(value, str) else None


def as_number(value: object) -> int | float | None:
    """Return a number, or the number in decimal notation; None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        if _INTEGER.fullmatch(text):
            value = int(text)
        elif _FLOAT.fullmatch(text):
            value = float(text)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) <= LARGEST_NUMBER else None  # nan and inf are not


def accept(parameter: Parameter, given: Scalar) -> Scalar:
    """Return a given value in the type of its kind; its range is not looked at.

    A label of a special value stands for the stored one. Raises Refused for a wrong type or unknown choice.
    """
    if parameter.kind == "bool":
        flag = as_flag(given)
        if flag is None and str(given) not in {"0", "1"}:  # as the kernel shows it
            raise Refused(f"{quote(given)} is neither on nor off", "Give on or off")
        return str(given) == "1" if flag is None else flag
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
        raise Refused(
            f"{number} is not a whole number",
            "Give a whole number; in expressions, floor, ceil and round return one",
        )
    return int(number) if parameter.kind == "int" else float(number)


def accept_at(parameter: Parameter, given: Scalar, place: Place | str, said: str = "") -> Scalar:
    """Return what `accept` returns. Raises UsageError that names the place."""
    try:
        return accept(parameter, given)
    except Refused as refused:
        raise problem(place, f"{said}{refused.wrong}", refused.remedy) from refused


def _accept_choice(choices: tuple[Scalar, ...], given: Scalar) -> Scalar:
    for choice in choices:
        # A study file's `on` has become True before it comes here.
        same = as_flag(choice) is given if isinstance(given, bool) else choice == given
        if same or str(choice) == str(given):
            return choice
    raise Refused(f"{quote(given)} is none of its choices", suggest(str(given), map(str, choices)))


def find_special(special: Mapping[str, Scalar], given: Scalar) -> str | None:
    """Return the label of a special value that is given by label or as stored."""
    if isinstance(given, str) and given in special:
        return given
    for label, stored in special.items():
        if stored == given and not isinstance(given, bool):
            return label
    return None


def keep_within(parameter: Parameter, value: Scalar, low: float, high: float) -> Scalar:
    """Return an accepted value as the configuration keeps it: in range, floats with few digits."""
    is_apart = not parameter.is_numeric or find_special(parameter.special, value) is not None
    return value if isinstance(value, str) or is_apart else fit_number(value, parameter, low, high)


def fault_in_range(parameter: Parameter, value: Scalar, low: float, high: float) -> Refused | None:
    """Return what is wrong with an accepted value within its bounds; None when nothing is."""
    if not parameter.is_numeric or find_special(parameter.special, value) is not None:
        return None
    number = as_number(value)
    if number is None:
        return Refused(f"{quote(value)} is not a number", "Give a number")
    if not low <= number <= high:
        side, bound, limit = ("below", "minimum", low) if number < low else ("above", "maximum", high)
        written = parameter.low if number < low else parameter.high
        origin = f" (`{written.text}`)" if isinstance(written, Expression) else ""
        return Refused(
            f"{format_number(number)} is {side} its {bound}, {format_number(limit)}{origin}",
            f"Give {format_number(low)} to {format_number(high)}"
            + (f", or {', '.join(parameter.special)}" if parameter.special else ""),
        )
    if not is_on_grid(number, low, parameter):
        return Refused(
            f"{format_number(number)} is off its grid, which starts at {format_number(low)} in steps of "
            f"{parameter.step}",
            f"Give {format_number(fit_number(number, parameter, low, high))}",
        )
    return None


def grid_step(parameter: Parameter) -> int | float:
    """Return the distance between two values of a parameter that has steps."""
    return 1 if parameter.step is None else parameter.step


def count_steps(low: float, high: float, step: float) -> int:
    """Return the number of the last grid value, counted from 0 at low."""
    return math.floor((high - low) / step + 1e-9)


def grid_value(parameter: Parameter, low: float, high: float, index: int) -> int | float:
    """Return a grid value by its number, the nearest there is within the bounds."""
    step = grid_step(parameter)
    value = low + min(max(index, 0), count_steps(low, high, step)) * step
    # Few digits may be a hair outside bounds that have more.
    return int(value) if parameter.kind == "int" else min(max(round_number(value, parameter), low), high)


def is_on_grid(value: float, low: float, parameter: Parameter) -> bool:
    """Return whether a value is a whole number of steps away from low."""
    if parameter.step is None:
        return True
    steps = (value - low) / parameter.step
    return abs(steps - round(steps)) < 1e-6  # noqa: PLR2004 - far below any step


def round_number(value: float, parameter: Parameter) -> int | float:
    """Return the number as it is kept: whole for int, few digits for float."""
    if parameter.kind == "int":
        return round(value)
    return float(f"{value:.{FLOAT_DIGITS if parameter.step is None else GRID_DIGITS}g}")


def fit_number(value: float, parameter: Parameter, low: float, high: float) -> int | float:
    """Return the value of the parameter within the bounds that is nearest."""
    if high <= low:
        return low
    inside = min(max(value, low), high)
    if parameter.step is None:
        return min(max(round_number(inside, parameter), low), high)
    return grid_value(parameter, low, high, round((inside - low) / parameter.step))


def round_bounds(low: float, high: float, kind: str) -> tuple[int | float, int | float]:
    """Return the bounds that values of the kind can reach: whole numbers inside them for int."""
    if kind == "int":
        return math.ceil(low - 1e-9), math.floor(high + 1e-9)
    return float(low), float(high)


def format_number(value: float) -> str:
    """Return a number without a useless fraction, and a whole one with all its digits."""
    is_whole = isinstance(value, int) or (value.is_integer() and abs(value) < EXACT)
    return str(int(value)) if is_whole else f"{value:.12g}"


def show_value(item: Item | None, value: Scalar) -> str:
    """Return the label of a special value, or the value with its unit."""
    label = find_special(item.special, value) if isinstance(item, Parameter) else None
    if label is not None:
        return label
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value or "not set"
    return show_quantity(value, item.unit if item is not None else "")


def show_quantity(value: float, unit: str) -> str:
    """Return a number with its unit, bytes in the largest unit that divides them."""
    if unit in BYTE_UNITS:
        rank = BYTE_UNITS.index(unit)
        while value and isinstance(value, int) and value % 1024 == 0 and rank < len(BYTE_UNITS) - 1:
            value //= 1024
            rank += 1
        unit = BYTE_UNITS[rank]
    elif unit not in _MEASURES:
        unit = ""
    return f"{format_number(value)} {unit}".rstrip()
