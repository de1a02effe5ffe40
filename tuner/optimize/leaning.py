"""What hints say of points: which changes are made more often, and what is expected of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tuner.optimize.encoding import Array, Encoding, Points
from tuner.space import Hint

UNIFORM = 1 / 3
"""Share of the points that no hint touches, so that a wrong one delays what it hides and hides nothing."""
HINTED_WEIGHT = 2.0
"""How many times as often a parameter is among the changed ones when a hint says something about it."""

HINT_PRICES = 5.0
"""What a right hint is expected to bring before anything was measured, in prices of a line. What is worth so
little drowns in the noise of a few trials: without it, settings of right hints were tried and dropped again,
which cost 0.04 of log goodput a study on 46 drawn servers."""
FAR = 0.75
"""Share of the way to the end of its range that a number goes where a hint names only a direction: beyond
most thresholds, and short of the end, where most accidents are."""


@dataclass(frozen=True, slots=True)
class Leaning:
    """What hints say of each column of the points; shape (d,) each."""

    chances: Array
    """Probability that the hint is right; 0 where there is none."""
    targets: Array
    """Coordinate that is likely to be better; NaN where no single one is."""
    directions: Array
    """1 for up, -1 for down, 0 for neither."""
    is_choice: NDArray[np.bool_]

    @classmethod
    def of(cls, hints: Mapping[str, Hint], encoding: Encoding) -> Self:
        """Return what hints say of an encoding's columns; of others they say nothing."""
        known = [hints.get(name) for name in encoding.names]
        signs = {"up": 1.0, "down": -1.0}
        targets = {
            name: hint.value
            for name, hint in zip(encoding.names, known, strict=True)
            if hint is not None and hint.value is not None
        }
        return cls(
            chances=np.array([hint.chance if hint else 0.0 for hint in known]),
            targets=encoding.encode([targets])[0],
            directions=np.array([signs.get(hint.direction or "", 0.0) if hint else 0.0 for hint in known]),
            is_choice=encoding.is_choice,
        )

    def expect(self, points: Points, default: Array) -> Array:
        """Return how far points (n, d) follow the hints that a default (d,) does not; shape (n,).

        The sum over the hints of how likely each is right times how far it is followed, from 0 to 1.
        """
        is_open = self.open(default[None])[0]
        begin = np.where(np.isnan(default), 0.5, default)
        room = np.where(self.directions > 0, 1 - begin, begin)
        asked = np.where(self.directions != 0, FAR * room, np.abs(self.targets - begin))
        gone = np.where(
            self.directions != 0, self.directions * (points - begin), asked - np.abs(points - self.targets)
        )
        followed = np.clip(gone / np.where(is_open & (asked > 0), asked, 1.0), 0.0, 1.0)
        followed = np.where(self.is_choice, points == self.targets, followed)
        return np.asarray(np.where(is_open & ~np.isnan(followed), followed, 0.0) @ self.chances)

    def open(self, points: Points) -> NDArray[np.bool_]:
        """Return where points (n, d) could still follow a hint; shape (n, d)."""
        is_apart = ~np.isnan(self.targets) & (points != self.targets)
        ends = np.where(self.directions > 0, 1.0, 0.0)
        return np.asarray(is_apart | ((self.directions != 0) & (points != ends) & ~np.isnan(points)))

    def lean(self, points: Points, values: Points, encoding: Encoding, rng: np.random.Generator) -> Points:
        """Return values (n, d) for points of which some follow their hints and some oppose them.

        What was drawn is kept where no hint says anything, and where one that names a value is wrong.
        """
        right = rng.random(points.shape) < self.chances
        signs = np.where(right, self.directions, -self.directions)
        room = np.where(signs > 0, 1 - points, points)
        aside = encoding.snap(np.clip(points + signs * np.minimum(np.abs(values - points), room), 0.0, 1.0))
        moved = np.where((self.directions != 0) & ~np.isnan(aside), aside, values)
        return np.asarray(np.where(right & ~np.isnan(self.targets), self.targets, moved))

    def ranks(self, points: Points, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return an order in which the columns of each point are changed, the hinted ones rather first."""
        weights = np.where(self.open(points), HINTED_WEIGHT, 1.0)
        return np.argsort(np.argsort(rng.exponential(size=points.shape) / weights, axis=1), axis=1)
