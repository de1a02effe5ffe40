"""Values of one parameter at which its response is worth measuring, and the configuration at each."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tuner.errors import UsageError
from tuner.ports import Config, Scalar
from tuner.space.parameters import Derived, Parameter
from tuner.space.problems import problem, quote
from tuner.space.rules import evaluate_bounds
from tuner.space.space import Space
from tuner.space.values import BYTE_UNITS, accept_at, as_number, find_special, fit_number, grid_step

MOST_VALUES = 8
"""Of a grid, those included that have to be in it; a study's choices may be more."""
LEAST_NUMBERS = 3
NEARBY_FACTOR = 4.0
"""A grid around a value reaches from a quarter of it to four times, on a logarithmic scale …"""
NEARBY_SHARE = 1 / 6
"""… and else so much of the range to either side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridPoint:
    """One value, and the whole configuration that has it."""

    value: Scalar
    config: Config


def find_parameter(space: Space, name: str) -> Parameter:
    """Return a parameter by its name.

    Raises:
        UsageError: there is none, it is left out on this host, or it follows from others.
    """
    found = next((each for each in space.parameters if each.name == name), None)
    if found is not None:
        return found
    space.server_of(name)  # raises for what is not there, with the reason
    derived = next(each for each in space.derived if each.name == name)
    raise problem(
        name,
        f"you cannot set this setting, because tuner derives it as `{derived.value.text}`",
        f"Name {_sources(derived)} instead",
    )


def _sources(derived: Derived) -> str:
    return " or ".join(sorted(derived.value.names))


def place_value(space: Space, base: Config, name: str, given: Scalar) -> GridPoint:
    """Return a configuration with one parameter at a value; what depends on it follows.

    Derived settings are computed anew; a setting whose bounds have moved away is pulled into them, and one
    that is no longer active is dropped.

    Raises:
        UsageError: the value is of the wrong kind or out of range, it has no effect beside the others, or a
            rule forbids it; the message names the rule.
    """
    parameter = find_parameter(space, name)
    value = accept_at(parameter, given, name)
    choices = space.chosen(base) | {name: value}
    config = space.complete(choices, fit=True)
    if config.get(name) != value:
        # The others are within their bounds beside the value's neighbour, so that only it can be refused.
        others = {other: new for other, (_, new) in space.changes(config).items() if other != name}
        return GridPoint(value=value, config=space.complete(others | {name: value}))
    broken = space.violations(config)
    if broken:
        raise problem(f"{name}: {quote(value)}", broken[0], "Give another value")
    return GridPoint(value=value, config=config)


def choose_values(
    space: Space, base: Config, name: str, *, with_values: Sequence[Scalar] = (), around: Scalar | None = None
) -> list[Scalar]:
    """Return a grid of valid values: of a number evenly spread on its scale, else every choice.

    Args:
        space: of the study; nothing that it forbids is in the grid.
        base: the configuration around the value.
        name: of the parameter.
        with_values: what has to be in it, such as the default; left out where it is not valid.
        around: for a finer grid around a value.

    Raises:
        UsageError: fewer than two values are valid.
    """
    parameter = find_parameter(space, name)
    wanted = [*with_values, *parameter.special.values()]
    if parameter.is_numeric:
        bounds = evaluate_bounds(parameter, space.rules.scope(base))
        candidates = _spread(parameter, bounds, _near(parameter, bounds, around), wanted)
    else:
        candidates = [*parameter.choices] if parameter.kind == "categorical" else [False, True]
    valid = list(_valid(space, base, name, candidates))
    if len(valid) < 2:  # noqa: PLR2004 - one value has no response
        raise _nothing_to_vary(space, base, name, candidates)
    return valid


def _valid(space: Space, base: Config, name: str, values: Sequence[Scalar]) -> Iterator[Scalar]:
    for value in values:
        try:
            yield place_value(space, base, name, value).value
        except UsageError:
            continue


def _nothing_to_vary(space: Space, base: Config, name: str, candidates: Sequence[Scalar]) -> Exception:
    """Return why a grid has not two values: what the first refused one says."""
    for value in candidates:
        try:
            place_value(space, base, name, value)
        except UsageError as refused:
            return UsageError(f"{name}: no other value is possible on this host. {refused}")
    return problem(name, "this parameter has only one value on this host", "Name another parameter")


Bounds = tuple[int | float, int | float]


def _near(parameter: Parameter, bounds: Bounds, around: Scalar | None) -> Bounds:
    """Return the bounds of the neighbourhood of a value, or all of the range."""
    low, high = bounds
    middle = None if around is None or find_special(parameter.special, around) else as_number(around)
    if middle is None:
        return bounds
    if _is_log(parameter, low):
        return max(low, middle / NEARBY_FACTOR), min(high, middle * NEARBY_FACTOR)
    reach = max(NEARBY_SHARE * (high - low), LEAST_NUMBERS * grid_step(parameter))
    return max(low, middle - reach), min(high, middle + reach)


def _is_log(parameter: Parameter, low: float) -> bool:
    return parameter.log and low > 0


def _spread(parameter: Parameter, bounds: Bounds, near: Bounds, wanted: Sequence[Scalar]) -> list[Scalar]:
    """Return as many numbers as fit into a grid beside those that are wanted, in order; specials last."""
    apart = [value for value in wanted if find_special(parameter.special, value) is not None]
    fixed = [number for value in wanted if value not in apart and (number := as_number(value)) is not None]
    numbers: list[int | float] = sorted(set(fixed))
    for count in range(MOST_VALUES, LEAST_NUMBERS - 1, -1):
        numbers = sorted({*fixed, *_between(parameter, bounds, near, fixed, count)})
        if len(numbers) + len(set(apart)) <= MOST_VALUES:
            break
    return [*numbers, *dict.fromkeys(apart)]


def _between(
    parameter: Parameter, bounds: Bounds, near: Bounds, fixed: Sequence[float], count: int
) -> Iterator[int | float]:
    """Yield an even grid, but for what is nearer to a fixed value than half a step."""
    (low, high), (first, last) = bounds, near
    log = _is_log(parameter, low)
    scale = math.log if log else float
    step = (scale(last) - scale(first)) / (count - 1)
    taken = [scale(number) for number in fixed if number > 0 or not log]
    for index in range(count):
        at = scale(first) + index * step
        number = fit_number(_round(math.exp(at) if log else at, parameter), parameter, low, high)
        if all(abs(scale(number) - each) > step / 2 for each in taken):
            yield number


def _round(value: float, parameter: Parameter) -> float:
    """Round to what people would write: powers of two for bytes on a logarithmic scale, else two digits."""
    if parameter.unit in BYTE_UNITS and parameter.log and value >= 1:
        return float(2 ** round(math.log2(value)))
    return float(f"{value:.2g}")


def follows(space: Space, base: Config, point: GridPoint, name: str) -> Mapping[str, tuple[Scalar, Scalar]]:
    """Return what else a value changes: setting → what it was and is; an absent one is an empty text."""
    names = [other for other in {**base, **point.config} if other != name and not _is_internal(space, other)]
    pairs = {other: (base.get(other, ""), point.config.get(other, "")) for other in names}
    return {other: pair for other, pair in pairs.items() if pair[0] != pair[1]}


def _is_internal(space: Space, name: str) -> bool:
    return any(each.name == name and each.internal for each in (*space.parameters, *space.derived))
