"""Groups of a parameter's values that are compared: each choice, each special value, thirds of a range."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from tuner.ports import Config, Scalar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tuner.space import Space

THIRDS = 3


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

    def value_at(self, position: float) -> float:
        """Return the number at a position."""
        if self.is_log:
            return float(self.low * (self.high / self.low) ** position)
        return self.low + (self.high - self.low) * position

    def group(self, value: Scalar | None) -> int | None:
        """Find the group of a value: choices first, then the thirds of the range."""
        if value is None:
            return None
        for index, choice in enumerate(self.choices):
            if is_same(choice, value):
                return index
        position = self.position(value)
        if math.isnan(position):
            return None
        return len(self.choices) + min(THIRDS - 1, max(0, math.floor(position * THIRDS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueGroups:
    """How the starts of a study divide over the groups of one parameter's values."""

    scale: ValueScale
    labels: tuple[str, ...]
    membership: "NDArray[np.float64]"
    """Starts × groups, 1 where a start's value lies in the group."""
    positions: "NDArray[np.float64]"
    """Position of every start's value along the range; NaN where it is not a number of it."""
    default: int | None
    """Group of the default's value."""

    @property
    def is_varied(self) -> bool:
        """Whether at least two groups have a start."""
        return int((self.membership.sum(axis=0) > 0).sum()) > 1


def make_scale(space: "Space", name: str, values: Sequence[Scalar]) -> ValueScale:
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


def group_values(space: "Space", name: str, configs: Sequence[Config], default: Config) -> ValueGroups:
    """Divide configurations over the groups of one parameter; those without it are in none."""
    import numpy as np

    tried = [config[name] for config in configs if name in config]
    scale = make_scale(space, name, [*tried, *([default[name]] if name in default else [])])
    labels = [space.show(name, choice) for choice in scale.choices]
    if scale.has_range:
        whole = all(isinstance(value, int) for value in tried if is_number(value))
        labels += [describe_third(space, scale, third, whole=whole) for third in range(THIRDS)]
    membership = np.zeros((len(configs), len(labels)))
    positions = np.full(len(configs), np.nan)
    for row, config in enumerate(configs):
        value = config.get(name)
        group = scale.group(value)
        if value is not None and group is not None:
            membership[row, group] = 1
            positions[row] = scale.position(value)
    return ValueGroups(
        scale=scale, labels=tuple(labels), membership=membership, positions=positions,
        default=scale.group(default.get(name)),
    )  # fmt: skip


def describe_third(space: "Space", scale: ValueScale, third: int, *, whole: bool) -> str:
    """Write a third of the range as `8 to 32`."""
    low, high = scale.value_at(third / THIRDS), scale.value_at((third + 1) / THIRDS)
    first, last = (math.ceil(low - 1e-9), math.floor(high + 1e-9)) if whole else (low, high)
    if first >= last:
        return space.show(scale.parameter, first)
    return f"{space.show(scale.parameter, first)} to {space.show(scale.parameter, last)}"


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number; on and off are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_same(left: object, right: object) -> bool:
    """Return whether two values are equal; on is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def is_among(value: object, values: Sequence[Scalar]) -> bool:
    """Return whether a value is among others; on is not 1."""
    return any(is_same(value, each) for each in values)
