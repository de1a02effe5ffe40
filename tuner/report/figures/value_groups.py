"""Where the values of a parameter lie: words and special values by name, numbers along a scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from tuner.ports import Scalar
from tuner.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueScale:
    """The values of one parameter: words and special values by name, numbers along a scale."""

    parameter: str
    choices: tuple[Scalar, ...]
    """Choices, on and off, special values: everything that is not a number of the range, in order."""
    low: float
    high: float
    """Ends of the range that was tried; NaN when there are no numbers."""
    is_log: bool

    @property
    def has_range(self) -> bool:
        return not math.isnan(self.low)

    def position(self, value: Scalar) -> float:
        """Place a number from 0 to 1 along the range; NaN for what is not one of its numbers."""
        if not self.has_range or not is_number(value) or is_among(value, self.choices):
            return math.nan
        if self.high <= self.low:
            return 0.5
        if self.is_log:
            low, high = math.log(self.low), math.log(self.high)
            return (math.log(max(value, self.low / 2)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)


def make_scale(space: Space, name: str, values: Sequence[Scalar]) -> ValueScale:
    """Return a parameter's scale, from its description and from the values that were tried."""
    parameter = next(each for each in space.parameters if each.name == name)
    known = [*parameter.choices, *dict(parameter.special).values()]
    if parameter.kind == "bool":
        known = [True, False]
    choices: list[Scalar] = [choice for choice in known if is_among(choice, values)]
    for value in values:
        if not is_number(value) and not is_among(value, choices):
            choices.append(value)
    numbers = [value for value in values if is_number(value) and not is_among(value, choices)]
    low, high = (float(min(numbers)), float(max(numbers))) if numbers else (math.nan, math.nan)
    is_log = parameter.log and low > 0
    return ValueScale(parameter=name, choices=tuple(choices), low=low, high=high, is_log=is_log)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number; on and off are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_same(left: object, right: object) -> bool:
    """Return whether two values are equal; on is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def is_among(value: object, values: Sequence[Scalar]) -> bool:
    """Return whether a value is among others; on is not 1."""
    return any(is_same(value, each) for each in values)
