"""Means of metrics, by configuration: their logarithms, with Student's t and a spread that is pooled.

Symbols: of configuration c, x̄_c mean of the logarithms over n_c trials; s `spread` between trials with ν
`degrees`, pooled over configurations and a prior. (x̄_c − bound) / (s / √n_c) is Student's t with ν.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from tuner.records import Trial
from tuner.statistics.failure_rate import CONFIDENCE, CredibleInterval
from tuner.study.objective import METRICS, Constraint

PRIOR_SPREAD = 0.1
PRIOR_DEGREES = 2.0
"""Of the standard deviation between trials of the logarithm of a metric, and what it is worth in degrees of
freedom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mean:
    log: float
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricMeans:
    """Means of one metric's logarithm, with the spread between trials that all configurations share."""

    by_key: Mapping[Hashable, _Mean]
    spread: float
    degrees: float

    @classmethod
    def fit(cls, metric: str, groups: Mapping[Hashable, Sequence[Trial]]) -> "MetricMeans":
        """Average over the trials that have the metric."""
        squares, degrees = PRIOR_DEGREES * PRIOR_SPREAD**2, PRIOR_DEGREES
        means = {}
        for key, group in groups.items():
            values = [METRICS[metric](trial) for trial in group if trial.counts]
            logs = np.log([max(value, 1e-9) for value in values if value is not None])
            if len(logs):
                means[key] = _Mean(log=float(logs.mean()), trials=len(logs))
                squares += float(np.sum((logs - logs.mean()) ** 2))
                degrees += len(logs) - 1
        return cls(by_key=means, spread=math.sqrt(squares / degrees), degrees=degrees)

    def at_most(self, constraint: Constraint, key: Hashable, default: Hashable) -> float:
        """Return the probability that a mean is at most the bound; ½ where nothing was measured."""
        mean, other = self.by_key.get(key), self.by_key.get(default)
        if mean is None:
            return 0.5
        if constraint.limit is not None:
            limit = math.log(constraint.limit) if constraint.limit > 0 else -math.inf
            return self._below(limit - mean.log, 1 / mean.trials)
        if other is None or key == default:
            return 1.0
        factor, _ = constraint.tolerance
        return self._below(math.log(factor) + other.log - mean.log, 1 / mean.trials + 1 / other.trials)

    def _below(self, distance: float, variances: float) -> float:
        return float(stdtr(self.degrees, distance / (self.spread * math.sqrt(variances))))

    def interval(self, key: Hashable) -> CredibleInterval | None:
        """Return the geometric mean over the trials, with its interval."""
        mean = self.by_key.get(key)
        if mean is None:
            return None
        reach = float(stdtrit(self.degrees, (1 + CONFIDENCE) / 2)) * self.spread / math.sqrt(mean.trials)
        return CredibleInterval(
            value=math.exp(mean.log), low=math.exp(mean.log - reach), high=math.exp(mean.log + reach)
        )
