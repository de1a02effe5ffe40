"""Trial parameters as points: what the model sees, and what the search for its optimum moves.

A number becomes its position between its bounds (on a logarithmic scale where its distribution has one), a
choice its index. A parameter that a trial lacks, because another one switches it off, is NaN.

Which parameters switch others off is learned from the trials that lack some.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

Array = NDArray[np.float64]
Points = NDArray[np.float64]
"""Shape (n, d): a row per point, a column per parameter."""


class Numbers:
    """Columns of numbers: positions from 0 to 1, of which each value of a grid has an equal share.

    All arrays have a column for each number, (n, k).
    """

    def __init__(self, distributions: Sequence[IntDistribution | FloatDistribution]) -> None:
        """Read bounds and steps of the distributions."""
        self._low = np.array([each.low for each in distributions], dtype=float)
        self._high = np.array([each.high for each in distributions], dtype=float)
        self._step = np.array([each.step or 0 for each in distributions], dtype=float)
        """0 for a continuous parameter."""
        self._is_log = np.array([each.log for each in distributions], dtype=bool)
        first, last = self._low - self._step / 2, self._high + self._step / 2
        self._first = self._scale(np.where(self._is_log & (first <= 0), self._low, first))
        self._width = self._scale(last) - self._first

    @property
    def levels(self) -> Array:
        """How many values there are, shape (k,)."""
        with np.errstate(divide="ignore"):
            levels: Array = 1 + np.round((self._high - self._low) / self._step)
        return levels

    def encode(self, values: Array) -> Array:
        """Return the positions of values; what lies beyond the bounds is put on them."""
        within = self._scale(np.clip(values, self._low, self._high)) - self._first
        return np.where(self._width > 0, within / np.where(self._width > 0, self._width, 1.0), 0.5)

    def decode(self, positions: Array) -> Array:
        """Return the values at positions."""
        at = self._first + positions * self._width
        values = np.where(self._is_log, np.exp(np.where(self._is_log, at, 0.0)), at)
        step = np.where(self._step > 0, self._step, 1.0)
        on_grid = self._low + np.round((values - self._low) / step) * step
        return np.clip(np.where(self._step > 0, on_grid, values), self._low, self._high)

    def snap(self, positions: Array) -> Array:
        """Move positions to where values lie."""
        within = np.clip(positions, 0.0, 1.0)
        return np.where(self._step > 0, self.encode(self.decode(within)), within)

    def _scale(self, values: Array) -> Array:
        return np.where(self._is_log, np.log(np.where(self._is_log, values, 1.0)), values)


class Encoding:
    """Translates between the parameters and the points of one search space."""

    def __init__(
        self, space: Mapping[str, BaseDistribution], today: Mapping[str, BaseDistribution] | None = None
    ) -> None:
        """Make an encoding with a column for each parameter, in their order.

        Args:
            space: of all points.
            today: narrower bounds of the points that are searched; the same names.

        Raises:
            TypeError: a distribution is none of float, int and categorical.
        """
        self.space = dict(space)
        self.names = tuple(space)
        self.choices = tuple(_choices(each) for each in space.values())
        """By column; None for a number."""
        self.is_choice = np.array([each is not None for each in self.choices], dtype=bool)
        """Shape (d,)."""
        self._is_whole = [isinstance(each, IntDistribution) for each in space.values()]
        self._numbers = Numbers(
            [each for each in space.values() if isinstance(each, IntDistribution | FloatDistribution)]
        )
        self.levels = np.array([len(each or ()) for each in self.choices], dtype=np.int64)
        """How many values there are, shape (d,)."""
        self.levels[~self.is_choice] = np.minimum(self._numbers.levels, 2**31)
        self._ends: list[Points] = []
        if today is not None and any(today[name] is not each for name, each in space.items()):
            # A coordinate of a choice has no end.
            for end, beyond in (("low", -np.inf), ("high", np.inf)):
                at = self.encode([{name: getattr(each, end, 0) for name, each in today.items()}])
                self._ends.append(np.where(self.is_choice, beyond, at))

    def encode(self, trials: Sequence[Mapping[str, Any]]) -> Points:
        """Return the points of trials by their parameters; a number beyond the bounds is put on them."""
        points = np.full((len(trials), len(self.names)), np.nan)
        for number, (name, choices) in enumerate(zip(self.names, self.choices, strict=True)):
            for row, trial in enumerate(trials):
                if name in trial:
                    value = trial[name]
                    points[row, number] = value if choices is None else _index(choices, value)
        points[:, ~self.is_choice] = self._numbers.encode(points[:, ~self.is_choice])
        return points

    def decode(self, point: Array) -> dict[str, Any]:
        """Return the parameters of one point (d,), those that are switched off left out."""
        values = point.copy()
        values[~self.is_choice] = self._numbers.decode(point[~self.is_choice])
        found: dict[str, Any] = {}
        for name, choices, is_whole, value in zip(
            self.names, self.choices, self._is_whole, values.tolist(), strict=True
        ):
            if not math.isnan(value):
                found[name] = choices[int(value)] if choices else round(value) if is_whole else value
        return found

    def keep(self, points: Points) -> Points:
        """Move what lies beyond today's bounds onto them."""
        return np.clip(points, *self._ends) if self._ends else points

    def snap(self, points: Points) -> Points:
        """Move positions of numbers to where values lie; choices and what is off stay as they are."""
        snapped = points.copy()
        snapped[:, ~self.is_choice] = self._numbers.snap(points[:, ~self.is_choice])
        return snapped

    def place(self, uniform: Array) -> Points:
        """Turn numbers from 0 to 1, shape (n, d), into points: every value has an equal share of them."""
        indices = np.minimum(np.floor(uniform * self.levels), self.levels - 1)
        return self.snap(np.where(self.is_choice, indices, uniform))

    def draw(self, count: int, rng: np.random.Generator) -> Points:
        """Draw points uniformly."""
        return self.place(rng.random((count, len(self.names))))


SWITCH = 2
"""Choices of a parameter that one coordinate can hold."""
OFF = -1.0
"""Stands for a parent that is itself switched off."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Parents of the conditional columns."""

    conditional: NDArray[np.bool_]
    """Shape (d,): whether any trial lacked the parameter."""
    parents: Mapping[int, tuple[int, frozenset[float]]]
    """By child: the column of its parent, and the parent's values at which the child is off."""

    @classmethod
    def learn(cls, points: Points, is_choice: NDArray[np.bool_]) -> Self:
        """Return for each column with gaps a choice that explains them all.

        Args:
            points: shape (n, d), NaN where a trial has no such parameter.
            is_choice: shape (d,); only a choice is taken for a parent.
        """
        missing = np.isnan(points)
        conditional = np.asarray(missing.any(axis=0))
        parents = {}
        for child in np.flatnonzero(conditional):
            found = [
                (len(np.unique(points[:, parent])), int(parent), off)
                for parent in np.flatnonzero(is_choice)
                if parent != child
                and (off := _values_at_which_off(points[:, parent], missing[:, child])) is not None
            ]
            if found:
                _, parent, off = min(found, key=lambda each: each[:2])
                parents[int(child)] = (parent, off)
        return cls(conditional=conditional, parents=parents)

    def apply(self, points: Points) -> Points:
        """Switch off what its parent switches off; what was never seen off is on."""
        points = points.copy()
        for _ in range(len(self.parents)):
            before = np.isnan(points)
            for child, (parent, off) in self.parents.items():
                at = np.nan_to_num(points[:, parent], nan=OFF)
                points[np.isin(at, list(off)), child] = np.nan
            if np.array_equal(before, np.isnan(points)):
                break
        return points


@dataclass(frozen=True, slots=True)
class Columns:
    """What kind each column of the points is; shape (d,) each."""

    is_choice: NDArray[np.bool_]
    is_conditional: NDArray[np.bool_]
    levels: NDArray[np.int64]
    """How many choices there are; of no meaning for numbers."""

    def __len__(self) -> int:
        return len(self.is_choice)

    @property
    def widths(self) -> NDArray[np.int64]:
        """How many coordinates each column becomes, shape (d,)."""
        is_switch = (self.levels == SWITCH) & ~self.is_conditional
        choices = np.where(is_switch, 1, self.levels + 1)
        return np.where(self.is_choice, choices, np.where(self.is_conditional, 3, 1))

    def embed(self, points: Points) -> Array:
        """Return coordinates whose differences add up to those of the values; shape (n, sum of widths).

        Two choices are 1 apart, two numbers at most 1. Off is 1 from whatever a parameter may be when on.
        """
        widths = self.widths
        first = np.cumsum(widths) - widths
        found = np.zeros((len(points), int(widths.sum())))

        plain = widths == 1
        found[:, first[plain]] = points[:, plain]

        choices = self.is_choice & ~plain
        # The last place stands for off.
        places = np.where(np.isnan(points), self.levels, points)[:, choices].astype(int)
        found[np.arange(len(points))[:, None], first[choices] + places] = 0.5

        numbers = self.is_conditional & ~self.is_choice
        values, at = points[:, numbers], first[numbers]
        is_on = ~np.isnan(values)
        found[:, at] = np.where(is_on, 0.5 * values, 0.0)
        found[:, at + 1] = np.where(is_on, 0.5 * (1 - values), 0.0)
        found[:, at + 2] = np.where(is_on, 0.5, 0.0)
        return found


def _choices(distribution: BaseDistribution) -> tuple[Any, ...] | None:
    if isinstance(distribution, CategoricalDistribution):
        return tuple(distribution.choices)
    if isinstance(distribution, IntDistribution | FloatDistribution):
        return None
    raise TypeError(
        f"a parameter cannot be a {type(distribution).__name__}; use a float, int or categorical one"
    )


def _index(choices: Sequence[Any], value: object) -> float:
    """Return the index of a choice; 1 and True are different ones, NaN equals itself."""
    for number, choice in enumerate(choices):
        if choice is value or (type(choice) is type(value) and choice == value):
            return float(number)
    return math.nan


def _values_at_which_off(parent: NDArray[np.float64], missing: NDArray[np.bool_]) -> frozenset[float] | None:
    """Return the parent's values at which the child is missing, None where that is no function of them."""
    at = np.nan_to_num(parent, nan=OFF)
    off, on = set(at[missing].tolist()), set(at[~missing].tolist())
    return None if off & on else frozenset(off)
