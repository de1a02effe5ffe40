"""What all trials of a study say together, drawn often enough that any question can be put to the draws.

Kernels are drawn from their own posterior, and from each of them contrasts between configurations. So an
interval has both: what the trials leave open under one kernel, and which kernel it is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from tuner.explain.explanation import Effect
from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.space import Space
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.confirmation.paired_gain import LARGEST_LOG, Gain
from tuner.statistics.observations import LEARNS_FROM, Observations
from tuner.statistics.posterior import Posterior
from tuner.statistics.ranking import as_baselines

Array = NDArray[np.float64]

DRAWS = 250
"""Of the function under each kernel."""
TOLD = (*LEARNS_FROM, Role.CONFIRM)
"""The confirmation's pairs had no part in choosing the winner; once it is chosen, they tell of it as well."""
ENDS = (0.025, 0.975)
SMALLEST = math.exp(-LARGEST_LOG)
"""Ratio below which none is told from none at all."""
JITTER = 1e-9
"""Share of the mean variance by which covariances are made definite."""


@dataclass(frozen=True, kw_only=True)
class Beliefs:
    """Posteriors of one study under several kernels."""

    space: Space
    posteriors: tuple[Posterior, ...]
    seed: int

    @classmethod
    def of(cls, space: Space, trials: Sequence[Trial], *, seed: int) -> "Beliefs | None":
        """Learn from every trial under the study's own load; None before the default was measured."""
        seen = Observations.of(space, as_baselines(trials), TOLD)
        return None if seen is None else cls.about(space, seen, seed=seed)

    @classmethod
    def about(cls, space: Space, seen: Observations, *, seed: int) -> "Beliefs":
        """Learn from observations of any metric."""
        return cls(space=space, posteriors=tuple(Posterior.sample(space, seen, seed=seed)), seed=seed)

    @property
    def trials(self) -> int:
        """How many trials they rest on."""
        return len(self.posteriors[0].seen.moments)

    def draw(self, configs: Sequence[Config], contrasts: Array) -> Array:
        """Draw contrasts between configurations together; shape (draws, k), in log points.

        Args:
            configs: m of them.
            contrasts: shape (k, m); the default's log goodput is 0 in all of them.
        """
        rng = np.random.default_rng(self.seed)
        if not len(contrasts):
            return np.zeros((len(self.posteriors) * DRAWS, 0))
        found = []
        for posterior in self.posteriors:
            means, covariances = posterior.gains(configs, is_rough=False)
            normal = rng.standard_normal((DRAWS, len(contrasts)))
            root = _root(contrasts @ covariances @ contrasts.T)
            found.append(contrasts @ means + normal @ root.T)
        return np.concatenate(found)


def _root(covariances: Array) -> Array:
    """Return a lower root of covariances, which may be singular but for rounding."""
    size = max(float(np.mean(covariances.diagonal())), 1e-12)
    for share in (JITTER, 1e-6, 1e-3):
        try:
            return np.asarray(np.linalg.cholesky(covariances + share * size * np.eye(len(covariances))))
        except np.linalg.LinAlgError:
            continue
    return np.diag(np.sqrt(np.maximum(covariances.diagonal(), 0.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The gain of a configuration as it is said everywhere."""

    effect: Effect
    degrees: float
    """Of its t interval; infinite for that of a normal number."""

    @classmethod
    def confirmed(cls, gain: Gain) -> "Anchor":
        """Return what the pairs have shown."""
        ratio, low, high = (max(end, SMALLEST) for end in (gain.ratio, gain.low, gain.high))
        return cls(effect=Effect(ratio=ratio, low=low, high=high), degrees=gain.pairs - 1)

    @classmethod
    def estimated(cls, gain: Speedup) -> "Anchor":
        """Return what is expected before there are pairs."""
        low, high = gain.interval()
        return cls(effect=Effect(ratio=gain.ratio, low=low, high=high), degrees=math.inf)


def agree(draws: Array, anchor: Anchor, *, seed: int) -> Array:
    """Return draws, shape (draws, k), of which the first column is the gain as it is said everywhere.

    The others move with it as far as they depend on it: Matheron's rule, draw + cov / var · (gain − draw)
    (Journel & Huijbregts, "Mining Geostatistics", 1978, chapter VII). So what adds up to the first column
    goes on to do so, and no figure of a study contradicts the one that its pairs have confirmed.
    """
    count = len(draws)
    reach = math.log(anchor.effect.high / anchor.effect.low) / 2
    shares = (np.random.default_rng(seed).permutation(count) + 0.5) / count
    spread = reach * stdtrit(anchor.degrees, shares) / float(stdtrit(anchor.degrees, ENDS[1]))
    shown = np.clip(anchor.effect.log + spread, -LARGEST_LOG, LARGEST_LOG)
    apart = draws[:, 0] - draws[:, 0].mean()
    variance = max(float(apart @ apart), 1e-12)
    return np.asarray(draws + np.outer(shown - draws[:, 0], apart @ draws / variance))


def read_effect(draws: Array) -> Effect:
    """Return the effect that draws (n,) of its logarithm stand for: their mean, so that effects add up."""
    low, high = np.quantile(draws, ENDS)
    return Effect(ratio=float(np.exp(draws.mean())), low=float(np.exp(low)), high=float(np.exp(high)))
