"""The interface every optimizer fills, and what it learns from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tuner.ports import Scalar
from tuner.space import Dimension

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Point = Mapping[str, Scalar]
"""One value for every dimension of a space, by dimension name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one trial says about one point.

    `log_ratio` is None when the trial gave no measurement; then only `constraints` speak.
    Constraints carry Optuna's sign: slack ≤ 0 is feasible.
    """

    point: Point
    log_ratio: float | None
    variance: float
    constraints: Mapping[str, float]
    cost: tuple[float, float] | None = None
    """Log ratio of what is minimized beside, with its variance; None where there is no such thing."""

    is_pending: bool = False
    """Whether another worker is at it still; then what it says is what is expected of it."""

    @property
    def is_feasible(self) -> bool:
        return all(slack <= 0 for slack in self.constraints.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """The next point, and what is expected of it."""

    point: Point
    expected_gain: float | None = None
    """How much better than the best so far it is expected to be, in log points, times the probability that
    it is feasible; None from an optimizer, or at a moment, that does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What an earlier study offers to a new one."""

    good: tuple[Point, ...]
    """Points that were good, best first; at least one."""
    likeness: float
    """How alike its host and load are, from 0 to 1."""
    predict: Callable[[Sequence[Point]], "NDArray[np.float64]"]
    """Returns the log gains that it lets expect of points (m,)."""


class Optimizer(Protocol):
    """Chooses the next point to try.

    It keeps no state between calls: a baseline trial revises the speedup of every earlier trial, so the
    whole history is handed over each time, and a resumed study suggests what an uninterrupted one would.
    """

    def suggest(
        self,
        dimensions: Sequence[Dimension],
        observations: Sequence[Observation],
        *,
        seed: int,
        refused: int = 0,
    ) -> Suggestion:
        """Return a point within the dimensions; the same arguments give the same point.

        Args:
            dimensions: of the space.
            observations: of every trial so far, the default's among them.
            seed: of the study.
            refused: how many suggestions after these observations could not be used.
        """
