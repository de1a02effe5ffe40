"""An optimizer for studies that are not to end."""

from collections.abc import Sequence
from dataclasses import replace

from tuner.optimize.optimizer import Observation, Optimizer, Suggestion
from tuner.space import Dimension


class Tireless:
    """Suggests as another optimizer does, and keeps to itself when there is nothing left to gain."""

    def __init__(self, optimizer: Optimizer) -> None:
        """Take the other one."""
        self._optimizer = optimizer

    def suggest(
        self,
        dimensions: Sequence[Dimension],
        observations: Sequence[Observation],
        *,
        seed: int,
        refused: int = 0,
    ) -> Suggestion:
        """Return a point; see `Optimizer`."""
        found = self._optimizer.suggest(dimensions, observations, seed=seed, refused=refused)
        return replace(found, expected_gain=None)
