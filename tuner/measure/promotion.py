"""Which configuration deserves another start, and what the best are worth before that is known.

The best of many noisy numbers is lucky: with 60 configurations and 5 % noise it overstates the gain by 7
points. Shrinkage mends the estimate, replication mends the choice.
"""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tuner.measure.control import Speedup

KeyT = TypeVar("KeyT", bound=Hashable)
P_BEST = 0.10
MAX_STARTS = 3
DRAWS = 4000
MIN_TO_SHRINK = 3
BISECTIONS = 40


def shrunk(configs: Mapping[KeyT, Speedup]) -> dict[KeyT, Speedup]:
    """Pull each speedup towards the middle of all, the more the noisier it is.

    Empirical Bayes (Efron & Morris, "Stein's estimation rule and its competitors", JASA 68, 1973) with a
    normal prior on either side of the median: its spread τ is estimated apart above and below, because bad
    configurations scatter far and say nothing about how far apart the good ones are. τ² solves the moment
    equation Σ (d − μ)²/(v + τ²) = n (Paule & Mandel, J. Res. NBS 87, 1982). One or two stay as they are.
    """
    if len(configs) < MIN_TO_SHRINK:
        return dict(configs)
    means = np.asarray([each.log_ratio for each in configs.values()])
    variances = np.asarray([each.variance for each in configs.values()])
    middle = float(np.median(means))
    above = means >= middle
    spread = np.where(
        above,
        _spread(means[above] - middle, variances[above]),
        _spread(means[~above] - middle, variances[~above]),
    )
    keep = spread / np.maximum(spread + variances, 1e-300)
    return {
        key: Speedup(log_ratio=float(middle + k * (mean - middle)), variance=float(k * variance))
        for key, k, mean, variance in zip(configs, keep, means, variances, strict=True)
    }


def _spread(deviations: NDArray[np.float64], variances: NDArray[np.float64]) -> float:
    """Solve Σ d²/(v + τ²) = n for τ² ≥ 0 by bisection; the sum falls as τ² grows."""
    low, high = 0.0, float(np.max(deviations**2, initial=0.0))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if np.sum(deviations**2 / np.maximum(variances + middle, 1e-300)) > len(deviations):
            low = middle
        else:
            high = middle
    return high


def top(configs: Mapping[KeyT, Speedup], count: int) -> tuple[KeyT, ...]:
    """Give the best few by posterior mean, best first."""
    posterior = shrunk(configs)
    return tuple(sorted(posterior, key=lambda key: -posterior[key].log_ratio)[:count])


def promising(
    configs: Mapping[KeyT, Speedup], starts_of: Mapping[KeyT, int], *, seed: int = 0
) -> KeyT | None:
    """Give the configuration that is most likely the best among those with fewer than three starts.

    Probabilities come from independent normal draws of the shrunk posteriors; below 10 % none is worth
    another start, and the answer is None.
    """
    if not configs:
        return None
    posterior = list(shrunk(configs).values())
    means = np.asarray([each.log_ratio for each in posterior])
    deviations = np.sqrt([each.variance for each in posterior])
    draws = means + deviations * np.random.default_rng(seed).standard_normal((DRAWS, len(posterior)))
    shares = np.bincount(np.argmax(draws, axis=1), minlength=len(posterior)) / DRAWS
    likely = [
        (share, rank, key)
        for rank, (key, share) in enumerate(zip(configs, shares, strict=True))
        if share >= P_BEST and starts_of.get(key, 0) < MAX_STARTS
    ]
    return min(likely, key=lambda each: (-each[0], each[1]))[2] if likely else None
