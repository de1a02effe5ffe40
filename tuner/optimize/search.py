"""Finds the point that scores highest, among changes and mixtures of the points that are known to be good.

Both keep the search near what is good, as a trust region would (Papenmeier et al. 2025, arXiv 2502.09198),
and choices and numbers need no different treatment. Climbing from the best of them, one parameter at a time,
finds higher scores, yet not better points: no model of a few dozen trials is right in such detail.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tuner.optimize.conditions import Conditions
from tuner.optimize.encoding import Encoding, Points

CHANGED = 200
MOST_CHANGED = 7
"""Parameters of a good point that change; from one to so many."""
SPREAD = 0.15
"""Standard deviation of a change in a number's position."""
MOVED = 0.5
"""Share of the changed numbers that only move; the others are drawn anew."""
PARENTS = 3
"""Points, the best ones, that are changed; mixed are all."""
MIXED = 200
MOST_CHANGED_OF_MIXED = 3

Score = Callable[[Points], NDArray[np.float64]]


def maximise(
    score: Score, encoding: Encoding, conditions: Conditions, good: Points, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Give the point (d,) that scores highest.

    Args:
        score: of points (m, d); shape (m,).
        encoding: of the space.
        conditions: what is off is no coordinate of a point.
        good: shape (k, d), points to search around, the best of this study first; NaN is drawn anew.
        rng: the same draws give the same point.
    """
    parents = np.resize(good[:PARENTS], (CHANGED, good.shape[1]))
    points = np.concatenate(
        [
            change(parents, 1, MOST_CHANGED, encoding, rng),
            change(_mix(good, rng), 0, MOST_CHANGED_OF_MIXED, encoding, rng),
        ]
    )
    points = encoding.keep(conditions.apply(points))
    return np.asarray(points[int(np.argmax(score(points)))])


def are_new(points: Points, known: Points) -> NDArray[np.bool_]:
    """Say which points (m, d) are none of the known ones (n, d); shape (m,)."""
    rows = {row.tobytes() for row in known}
    return np.array([row.tobytes() not in rows for row in points], dtype=bool)


def change(points: Points, least: int, most: int, encoding: Encoding, rng: np.random.Generator) -> Points:
    """Change from `least` to `most` parameters of each point (n, d); what is off gets some value."""
    fresh = _others(points, encoding, rng)
    moved = encoding.snap(points + SPREAD * rng.standard_normal(points.shape))
    only_moves = ~encoding.is_choice & (rng.random(points.shape) < MOVED)
    ranks = np.argsort(rng.random(points.shape), axis=1)
    is_changed = ranks < rng.integers(least, most + 1, size=(len(points), 1))
    is_off = np.isnan(points)
    return np.asarray(np.where(is_changed | is_off, np.where(only_moves & ~is_off, moved, fresh), points))


def _others(points: Points, encoding: Encoding, rng: np.random.Generator) -> Points:
    """Draw points of which every choice is another one than before, where there is another."""
    drawn = encoding.draw(len(points), rng)
    further = 1 + np.floor(rng.random(points.shape) * (encoding.levels - 1))
    others = np.where(np.isnan(points), drawn, (points + further) % encoding.levels)
    return np.asarray(np.where(encoding.is_choice & (encoding.levels > 1), others, drawn))


def _mix(good: Points, rng: np.random.Generator) -> Points:
    """Take each parameter from one of two good points, from the one more often than from the other."""
    one, other = good[rng.integers(len(good), size=(2, MIXED))]
    return np.asarray(np.where(rng.random(one.shape) < rng.random((MIXED, 1)), one, other))
