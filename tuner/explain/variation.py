"""Configurations beside the one that is explained: parts of it, and the same with one other value."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tuner.ports import Config, Scalar
from tuner.space import Space
from tuner.space.parameters import Dimension

STEPS = 9
"""Places of a range that are looked at, its ends included."""


def keep_settings(space: Space, changes: Mapping[str, Scalar], names: Collection[str]) -> Config:
    """Return a configuration with some of its changes alone."""
    return space.complete({name: value for name, value in changes.items() if name in names}, fit=True)


def is_allowed(space: Space, completed: Config) -> bool:
    """Return whether a server would accept a configuration, of which `complete` has settled all but rules."""
    return not space.rules.broken(completed)


def vary(space: Space, changes: Mapping[str, Scalar], name: str, value: Scalar) -> Config | None:
    """Return a configuration with another value of one parameter; None where that does not fit the rest."""
    varied = space.complete({**changes, name: value}, fit=True)
    is_there = name in varied and is_same(varied[name], value)
    return varied if is_there and is_allowed(space, varied) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The values of a parameter that are looked at."""

    numbers: tuple[Scalar, ...]
    """Of its range, in order."""
    words: tuple[Scalar, ...]
    """Choices, and values apart from the range, as the space lists them."""

    @property
    def every(self) -> tuple[Scalar, ...]:
        """Return the numbers, then the words."""
        return (*self.numbers, *self.words)


def list_values(space: Space, config: Config, name: str, tried: Sequence[Scalar] = ()) -> Values:
    """Return the values of a parameter: choices, a grid over its range, its own and what was tried."""
    parameter = next(each for each in space.parameters if each.name == name)
    apart = [*parameter.special.values()]
    point = {each: at for each, at in space.encode(config).items() if each.split(":")[0] != name}
    found = [at[name] for at in (config, space.default()) if name in at]
    for dimension in (each for each in space.dimensions if each.parameter == name):
        places = dimension.choices if dimension.kind == "categorical" else _grid(dimension)
        decoded = (space.decode({**point, dimension.name: place}) for place in places)
        found += [each[name] for each in decoded if name in each]
    found += tried
    unlike = [each for at, each in enumerate(found) if not is_among(each, found[:at])]
    numbers = [each for each in unlike if parameter.is_numeric and not is_among(each, apart)]
    return Values(
        numbers=tuple(sorted(numbers, key=float)),
        words=tuple(each for each in unlike if not is_among(each, numbers)),
    )


def _grid(dimension: Dimension) -> list[float]:
    return [_place(dimension.low, dimension.high, dimension.log, step) for step in range(STEPS)]


def _place(low: float, high: float, is_log: bool, step: int) -> float:  # noqa: FBT001 - as its dimension has it
    share = step / (STEPS - 1)
    return min(max(low * (high / low) ** share if is_log else low + (high - low) * share, low), high)


def place_of(space: Space, config: Config, name: str) -> float:
    """Return where in its range the number of a parameter lies, 0 to 1 on the scale that is searched."""
    dimension = next((each for each in space.dimensions if each.name == name), None)
    if dimension is None:  # its range is one number
        return 0.5
    at, low, high = (float(each) for each in (space.encode(config)[name], dimension.low, dimension.high))
    if dimension.log:
        at, low, high = math.log(at), math.log(low), math.log(high)
    return (at - low) / (high - low)


def find_run(values: Sequence[Scalar], at: Scalar, is_inside: Collection[int]) -> tuple[int, int] | None:
    """Return the first and last index of the unbroken run of `is_inside` around a value; None without it."""
    middle = next((index for index, each in enumerate(values) if is_same(each, at)), None)
    if middle is None:
        return None
    first = last = middle
    while first - 1 in is_inside:
        first -= 1
    while last + 1 in is_inside:
        last += 1
    return first, last


def is_same(left: object, right: object) -> bool:
    """Return whether two values are equal; on is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def is_among(value: object, values: Collection[Scalar]) -> bool:
    """Return whether a value is among others; on is not 1."""
    return any(is_same(value, each) for each in values)
