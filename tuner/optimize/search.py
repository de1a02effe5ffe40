"""Finds the point that scores highest: many drawn ones, and steps from the best of them.

Half of the drawn points change a few parameters of what is known to be good, which keeps the search near it
as a trust region would (Papenmeier et al. 2025, arXiv 2502.09198); the steps change one parameter at a time,
so that choices and numbers need no different treatment.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tuner.optimize.conditions import Conditions
from tuner.optimize.encoding import Encoding, Points

DRAWN = 600
MOST_CHANGED = 3
SPREAD = 0.15
"""Standard deviation of a change in a number's position."""
MOVED = 0.5
"""Share of the changed numbers that only move."""
CLIMBERS = 4
STEPS = 3
DISTANCES = (-0.3, -0.1, -0.03, 0.03, 0.1, 0.3)

Score = Callable[[Points], NDArray[np.float64]]


def maximise(
    score: Score, encoding: Encoding, conditions: Conditions, good: Points, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Give the point (d,) that scores highest.

    Args:
        score: of points (m, d); shape (m,).
        encoding: of the space.
        conditions: what is off is no coordinate of a point.
        good: shape (k, d), points to search around.
        rng: the same draws give the same point.
    """
    share = DRAWN // (2 * len(good))
    drawn = [mutate(each, share, encoding, rng) for each in good]
    points = conditions.apply(np.concatenate([encoding.draw(DRAWN // 2, rng), *drawn]))
    scores = score(points)
    top = np.argsort(-scores, kind="stable")[:CLIMBERS]
    points, scores = points[top], scores[top]
    for _ in range(STEPS):
        around = [conditions.apply(neighbours(each, encoding, rng)) for each in points]
        found = score(np.concatenate(around))
        improved = False
        for climber, (near, reached) in enumerate(
            zip(around, np.split(found, np.cumsum([len(each) for each in around])[:-1]), strict=True)
        ):
            best = int(np.argmax(reached))
            if reached[best] > scores[climber]:
                points[climber], scores[climber] = near[best], reached[best]
                improved = True
        if not improved:
            break
    return np.asarray(points[int(np.argmax(scores))])


def mutate(point: NDArray[np.float64], count: int, encoding: Encoding, rng: np.random.Generator) -> Points:
    """Change one to three parameters of a point, `count` times."""
    fresh = encoding.draw(count, rng)
    dimensions = len(encoding.names)
    ranks = np.argsort(rng.random((count, dimensions)), axis=1)
    changed = ranks < rng.integers(1, MOST_CHANGED + 1, size=(count, 1))
    # What was off has nowhere to move from.
    moves = ~encoding.is_choice & ~np.isnan(point) & (rng.random((count, dimensions)) < MOVED)
    moved = encoding.snap(point + SPREAD * rng.standard_normal((count, dimensions)))
    fresh = np.where(moves, moved, fresh)
    return np.where(changed | np.isnan(point), fresh, point)


def neighbours(point: NDArray[np.float64], encoding: Encoding, rng: np.random.Generator) -> Points:
    """Give points that differ in one parameter: every other choice, steps and the ends of numbers."""
    moves = [*(point + distance for distance in DISTANCES), np.zeros_like(point), np.ones_like(point)]
    snapped = encoding.snap(np.array([*moves, rng.random(len(point))]))
    columns, values = [], []
    for number, (at, choices) in enumerate(zip(point, encoding.choices, strict=True)):
        if choices is not None:
            others = np.array([each for each in range(len(choices)) if each != at], dtype=float)
        elif math.isnan(at):
            continue
        else:
            others = snapped[:, number]
        columns += [number] * len(others)
        values.append(others)
    points = np.repeat(point[None], len(columns), axis=0)
    points[np.arange(len(columns)), columns] = np.concatenate(values)
    # A child that is switched on needs some value.
    return np.where(np.isnan(points), encoding.draw(len(points), rng), points)
