"""The interface every optimizer fills, and what it learns from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tuner.ports import Scalar
from tuner.space import Dimension

Point = Mapping[str, Scalar]
"""One value for every dimension of a space, by dimension name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one start says about one point.

    `log_ratio` is None when the start gave no measurement; then only `constraints` speak.
    Constraints carry Optuna's sign: slack ≤ 0 is feasible.
    """

    point: Point
    log_ratio: float | None
    variance: float
    constraints: Mapping[str, float]

    @property
    def is_feasible(self) -> bool:
        return all(slack <= 0 for slack in self.constraints.values())


class Optimizer(Protocol):
    """Chooses the next point to try.

    It keeps no state between calls: a control start revises the speedup of every earlier start, so the
    whole history is handed over each time, and a resumed study suggests what an uninterrupted one would.
    """

    def suggest(
        self, dimensions: Sequence[Dimension], observations: Sequence[Observation], *, seed: int
    ) -> Point:
        """Return a point within the dimensions; the same arguments give the same point."""
