"""Elliptical slice sampling: draws from a posterior whose prior is normal, without anything to tune.

Murray, Adams & MacKay, "Elliptical slice sampling", AISTATS 2010, arXiv 1001.0356; used for a kernel's
parameters by Murray & Adams, "Slice sampling covariance hyperparameters", NeurIPS 2010, arXiv 1006.0868.

Symbols: state x, prior N(m `middle`, s² of `spread`), draw ν `other` from N(0, s²), `angle` t. The next state
is m + (x − m) · cos t + ν · sin t, for the first t at which log L is above `level`: log L(x) + log u, u
uniform.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST_SHRINKS = 60
"""Of one bracket: by then it is narrower than any float can tell, and the chain stays where it is."""


def sample_slices(
    log_likelihood: Callable[[Array], float],
    begin: Array,
    middle: Array,
    spread: Array,
    rng: np.random.Generator,
) -> Iterator[Array]:
    """Yield the states of a chain without end.

    Args:
        log_likelihood: of a state; minus infinity where it cannot be.
        begin: shape (d,), a state that can be.
        middle: shape (d,), mean of the prior.
        spread: shape (d,), its standard deviations.
        rng: of the chain.
    """
    state, height = begin, log_likelihood(begin)
    while True:
        state, height = _step(log_likelihood, state, height, middle, spread, rng)
        yield state


def _step(
    log_likelihood: Callable[[Array], float],
    state: Array,
    height: float,
    middle: Array,
    spread: Array,
    rng: np.random.Generator,
) -> tuple[Array, float]:
    """Return the next state, somewhere on the ellipse through this one and a draw from the prior."""
    other = spread * rng.standard_normal(len(state))
    away, level = state - middle, height + math.log(rng.random())
    angle = rng.uniform(0.0, 2 * math.pi)
    low, high = angle - 2 * math.pi, angle
    for _ in range(MOST_SHRINKS):
        proposed = middle + away * math.cos(angle) + other * math.sin(angle)
        found = log_likelihood(proposed)
        if found > level:
            return proposed, found
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = rng.uniform(low, high)
    return state, height
