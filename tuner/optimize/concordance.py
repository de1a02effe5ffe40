"""Whether an earlier study's ranking agrees with the trials of the new one, by pairs of configurations.

After Feurer, Letham & Bakshy 2018 (Scalable meta-learning for Bayesian optimization using ranking-weighted
Gaussian process ensembles, arXiv 1802.02219): an earlier study helps when it ranks configurations as the new
one does, whatever the heights of both, and how well it ranks is drawn from what the noise leaves open. They
weigh each model by how likely it ranks best of all; here the question is whether it ranks better than a coin,
since the new study's own model alone decides what a trial is worth.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tuner.optimize.optimizer import Earlier, Observation

Array = NDArray[np.float64]

DRAWS = 400
LEAST_DIFFERENCE = 0.01
"""Log points between two predictions below which the earlier study ranks neither above the other."""
GOODWILL = 1.0
"""Pairs that count as agreeing before anything was measured: one contradiction may be bad luck."""


def weigh(earlier: Earlier, observations: Sequence[Observation], *, seed: int) -> float:
    """Return what an earlier study counts, 0 to 1: its likeness times how far its ranking is borne out."""
    measured = [seen for seen in observations if seen.log_ratio is not None and not seen.is_pending]
    if len(measured) < 2:  # noqa: PLR2004 - a pair
        return earlier.likeness
    predicted = earlier.predict([seen.point for seen in measured])
    values = np.array([seen.log_ratio for seen in measured], dtype=float)
    deviations = np.sqrt([seen.variance for seen in measured])
    return earlier.likeness * bear_out(predicted, values, deviations, seed=seed)


def bear_out(predicted: Array, values: Array, deviations: Array, *, seed: int) -> float:
    """Return 1 where a ranking is as likely as not better than a coin, and 0 where it is surely worse.

    In between it is twice the probability that more than half of the pairs agree.

    Args:
        predicted: by the earlier study, shape (n,).
        values: as measured, shape (n,).
        deviations: standard deviations of their noise, shape (n,).
        seed: of the draws.
    """
    first, second = np.triu_indices(len(values), 1)
    claimed = predicted[first] - predicted[second]
    is_claim = np.abs(claimed) >= LEAST_DIFFERENCE
    normal = np.random.default_rng((seed, len(values))).standard_normal((DRAWS, len(values)))
    drawn = values + normal * deviations
    agrees = (drawn[:, first] - drawn[:, second]) * claimed > 0
    share = (agrees[:, is_claim].sum(axis=1) + GOODWILL) / (is_claim.sum() + GOODWILL)
    chance = float(np.mean(share > 0.5) + np.mean(share == 0.5) / 2)  # noqa: PLR2004 - a coin
    return min(1.0, 2 * chance)
