"""Trial parameters as points: what the model sees, and what the search for its optimum moves.

A number becomes its position between its bounds (on a logarithmic scale where its distribution has one), a
choice its index. A parameter that a trial lacks, because another one switches it off, is NaN.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

Points = NDArray[np.float64]
"""Shape (n, d): a row per point, a column per parameter."""


@dataclass(frozen=True, slots=True)
class Number:
    """A column of numbers: positions from 0 to 1, of which each value of a grid has an equal share."""

    low: float
    high: float
    step: float
    """0 for a continuous parameter."""
    is_log: bool
    is_whole: bool

    @classmethod
    def of(cls, distribution: IntDistribution | FloatDistribution) -> Self:
        return cls(
            low=float(distribution.low),
            high=float(distribution.high),
            step=float(distribution.step or 0),
            is_log=distribution.log,
            is_whole=isinstance(distribution, IntDistribution),
        )

    @property
    def levels(self) -> float:
        """How many values there are."""
        return 1 + round((self.high - self.low) / self.step) if self.step else math.inf

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        low, high = self._ends()
        at = np.clip(values, self.low, self.high)
        position = (np.log(at) if self.is_log else at) - low
        return position / (high - low) if high > low else np.full(len(values), 0.5)

    def decode(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        low, high = self._ends()
        at = low + positions * (high - low)
        values = np.exp(at) if self.is_log else at
        if self.step:
            values = self.low + np.round((values - self.low) / self.step) * self.step
        return np.clip(values, self.low, self.high)

    def snap(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Move positions to where values lie."""
        within = np.clip(positions, 0.0, 1.0)
        return self.encode(self.decode(within)) if self.step else within

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return self.snap(rng.random(count))

    def _ends(self) -> tuple[float, float]:
        low, high = self.low - self.step / 2, self.high + self.step / 2
        if not self.is_log:
            return low, high
        return math.log(low if low > 0 else self.low), math.log(high)


@dataclass(frozen=True, slots=True)
class Choice:
    """A column of indices into some choices."""

    choices: tuple[Any, ...]

    @property
    def levels(self) -> float:
        """How many values there are."""
        return len(self.choices)

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.integers(len(self.choices), size=count).astype(float)


class Encoding:
    """Translates between the parameters and the points of one search space."""

    def __init__(self, space: Mapping[str, BaseDistribution]) -> None:
        """Take distributions by parameter name; the columns keep their order."""
        self.space = dict(space)
        self.names = tuple(space)
        self.columns: tuple[Number | Choice, ...] = tuple(_column(each) for each in space.values())
        self.is_choice = np.array([isinstance(each, Choice) for each in self.columns], dtype=bool)
        """Shape (d,)."""
        self.levels = np.array([int(min(each.levels, 2**31)) for each in self.columns], dtype=np.int64)
        """Shape (d,): how many values there are."""

    def encode(self, trials: Sequence[Mapping[str, Any]]) -> Points:
        """Give the points of trials by their parameters; a number beyond the bounds is put on them."""
        points = np.full((len(trials), len(self.names)), np.nan)
        for number, (name, column) in enumerate(zip(self.names, self.columns, strict=True)):
            has = [row for row, trial in enumerate(trials) if name in trial]
            values = [trials[row][name] for row in has]
            if isinstance(column, Choice):
                points[has, number] = [_index(column.choices, value) for value in values]
            elif has:
                points[has, number] = column.encode(np.array(values, dtype=float))
        return points

    def decode(self, point: NDArray[np.float64]) -> dict[str, Any]:
        """Give the parameters of one point (d,), those that are switched off left out."""
        found: dict[str, Any] = {}
        for name, column, at in zip(self.names, self.columns, point, strict=True):
            if math.isnan(at):
                continue
            if isinstance(column, Choice):
                found[name] = column.choices[int(at)]
            else:
                value = float(column.decode(np.array([at]))[0])
                found[name] = round(value) if column.is_whole else value
        return found

    def snap(self, points: Points) -> Points:
        """Move positions of numbers to where values lie; choices and what is off stay as they are."""
        columns = [
            points[:, number] if isinstance(column, Choice) else column.snap(points[:, number])
            for number, column in enumerate(self.columns)
        ]
        return np.column_stack(columns)

    def draw(self, count: int, rng: np.random.Generator) -> Points:
        """Draw points uniformly."""
        return np.column_stack([column.draw(count, rng) for column in self.columns])


def _column(distribution: BaseDistribution) -> Number | Choice:
    if isinstance(distribution, CategoricalDistribution):
        return Choice(tuple(distribution.choices))
    if isinstance(distribution, IntDistribution | FloatDistribution):
        return Number.of(distribution)
    msg = f"a parameter cannot be a {type(distribution).__name__}; use a float, int or categorical one"
    raise TypeError(msg)


def _index(choices: Sequence[Any], value: object) -> float:
    """Find a choice; 1 and True are different ones, NaN is itself."""
    for number, choice in enumerate(choices):
        if choice is value or (type(choice) is type(value) and choice == value):
            return float(number)
    return math.nan
