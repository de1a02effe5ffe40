"""What earlier studies found good, as a prior on where the best is.

Hvarfner et al. 2022, πBO: Augmenting Acquisition Functions with User Beliefs (arXiv 2204.11051): the
acquisition is multiplied by the prior to the power of β / n, so that a prior that is wrong is outvoted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuner.optimize.encoding import Encoding, Points

BETA = 10.0
"""Observations after which the prior counts as it stands; before, it counts for more."""
WIDTH = 0.15
"""Standard deviation about a good number's position."""
LEAST = 0.3
"""Density of a value that no good point comes near, relative to the likeliest: none is ruled out."""

Score = Callable[[Points], NDArray[np.float64]]


def lean(score: Score, warm: Sequence[Mapping[str, Any]], encoding: Encoding, observed: int) -> Score:
    """Let a score, a log acquisition, lean towards what was good before.

    Args:
        score: of points (m, d); shape (m,).
        warm: parameters of the good ones.
        encoding: of the space.
        observed: observations of this study.
    """
    good = encoding.encode([_usable(each, encoding) for each in warm])
    weight = BETA / max(observed, 1)

    def leaning(points: Points) -> NDArray[np.float64]:
        return np.asarray(score(points) + weight * log_prior(points, good, encoding))

    return leaning


def _usable(params: Mapping[str, Any], encoding: Encoding) -> dict[str, Any]:
    """Leave out what is no number where one is needed."""
    return {
        name: params[name]
        for name, choices in zip(encoding.names, encoding.choices, strict=True)
        if name in params and (choices is not None or isinstance(params[name], int | float))
    }


def log_prior(points: Points, good: Points, encoding: Encoding) -> NDArray[np.float64]:
    """Give the log density of points (m, d) relative to the densest, by each parameter alone; shape (m,)."""
    total = np.zeros(len(points))
    for number, choices in enumerate(encoding.choices):
        known = good[~np.isnan(good[:, number]), number]
        if not len(known):
            continue
        at = points[:, number]
        if choices is not None:
            shares = np.array([np.mean(known == each) for each in range(len(choices))])
            density = np.where(np.isnan(at), 1.0, (shares / shares.max())[np.nan_to_num(at).astype(int)])
        else:
            grid = np.concatenate([known, np.nan_to_num(at, nan=0.5)])
            heights = np.exp(-(((grid[:, None] - known) / WIDTH) ** 2) / 2).mean(axis=1)
            density = np.where(np.isnan(at), 1.0, heights[len(known) :] / heights[: len(known)].max())
        total += np.log(LEAST + (1 - LEAST) * np.clip(density, 0.0, 1.0))
    return total
