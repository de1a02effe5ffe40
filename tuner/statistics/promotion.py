"""Which configuration deserves another start, and what the best are worth before that is known.

The best of many noisy numbers is lucky: with 60 configurations and 5 % noise it overstates the gain by 7
points. Shrinkage mends the estimate, replication mends the choice.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tuner.statistics.control_level import Speedup

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
    equation Σ (d − μ)²/(v + τ²) = n (Paule & Mandel, J. Res. NBS 87, 1982). The variance is that of the
    configuration about the middle, and what is not known of the middle. One or two stay as they are.
    """
    if len(configs) < MIN_TO_SHRINK:
        return dict(configs)
    prior = _Prior.estimate(configs.values())
    variances = prior.variances + prior.pull**2 * prior.middle_variance
    return {
        key: Speedup(log_ratio=float(mean), variance=float(variance))
        for key, mean, variance in zip(configs, prior.means, variances, strict=True)
    }


@dataclass(frozen=True, slots=True)
class _Prior:
    """What shrinking does to some speedups, shape (n,) each."""

    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    """Of each about the middle."""
    pull: NDArray[np.float64]
    """How far each is pulled to the middle: 0 not at all, 1 onto it."""
    middle_variance: float

    @classmethod
    def estimate(cls, speedups: Iterable[Speedup]) -> "_Prior":
        pairs = [(each.log_ratio, each.variance) for each in speedups]
        means, variances = np.asarray(pairs).T
        middle = float(np.median(means))
        above = means >= middle
        spread = np.where(
            above,
            _spread(means[above] - middle, variances[above]),
            _spread(means[~above] - middle, variances[~above]),
        )
        total = np.maximum(spread + variances, 1e-300)
        keep = spread / total
        # A median varies π/2 times as much as a mean (Kendall & Stuart, The Advanced Theory of Statistics).
        return cls(
            means=middle + keep * (means - middle),
            variances=keep * variances,
            pull=1 - keep,
            middle_variance=float(np.pi / 2 / np.sum(1 / total)),
        )


def _spread(deviations: NDArray[np.float64], variances: NDArray[np.float64]) -> float:
    """Solve Σ d²/(v + τ²) = n for τ² ≥ 0 by bisection; the sum falls as τ² grows."""
    squares = deviations**2
    low, high = 0.0, float(np.max(squares, initial=0.0))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if (squares / np.maximum(variances + middle, 1e-300)).sum() > len(squares):
            low = middle
        else:
            high = middle
    return high


def top(configs: Mapping[KeyT, Speedup], count: int) -> tuple[KeyT, ...]:
    """Return the best few by posterior mean, best first."""
    posterior = shrunk(configs)
    return tuple(sorted(posterior, key=lambda key: -posterior[key].log_ratio)[:count])


def promising(
    configs: Mapping[KeyT, Speedup], starts_of: Mapping[KeyT, int], *, seed: int = 0
) -> KeyT | None:
    """Return the configuration that is most likely the best among those with fewer than three starts.

    Probabilities come from normal draws of the shrunk posteriors; below 10 % none is worth another start,
    and the answer is None.
    """
    if not configs:
        return None
    draws = _draw(list(configs.values()), np.random.default_rng(seed))
    shares = np.bincount(np.argmax(draws, axis=1), minlength=len(configs)) / DRAWS
    likely = [
        (share, rank, key)
        for rank, (key, share) in enumerate(zip(configs, shares, strict=True))
        if share >= P_BEST and starts_of.get(key, 0) < MAX_STARTS
    ]
    return min(likely, key=lambda each: (-each[0], each[1]))[2] if likely else None


def _draw(speedups: Sequence[Speedup], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw what all may be worth, shape (DRAWS, n): in each draw all are pulled to the same middle."""
    normal = rng.standard_normal((DRAWS, len(speedups)))
    if len(speedups) < MIN_TO_SHRINK:
        means, variances = np.asarray([(each.log_ratio, each.variance) for each in speedups]).T
        return np.asarray(means + np.sqrt(variances) * normal)
    prior = _Prior.estimate(speedups)
    middle = np.sqrt(prior.middle_variance) * rng.standard_normal((DRAWS, 1))
    return np.asarray(prior.means + prior.pull * middle + np.sqrt(prior.variances) * normal)
