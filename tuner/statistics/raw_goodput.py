"""Goodput of what was searched by its cost: what serves less than the default does not ship. Pure.

A configuration can be cheap because it serves little: it waits, and what the generator does meanwhile is not
charged to the server. So its requests per second are held against the default's at the same time, whose level
is followed as everywhere (`statistics.baseline_level`).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.special import ndtr

from tuner.records import Metric, Role, Trial, measured_by
from tuner.statistics.baseline_level import HostLevels, Speedup, combine
from tuner.statistics.failure_rate import CredibleInterval
from tuner.statistics.noise import Noise, estimate_noise, trial_variance

LEAST_SHARE = 0.98
"""Of the default's goodput, which is to be kept. Short studies cannot tell smaller losses from none."""
UNKNOWN = 0.5
"""The probability of what nobody has measured."""


def is_searched_by_cost(trials: Sequence[Trial]) -> bool:
    """Return whether a study compares something else than goodput: CPU time, or response times."""
    return any(window.metric is not Metric.GOODPUT for trial in trials for window in trial.windows)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawGoodput:
    """Requests per second of configurations, relative to the default's at the same time."""

    ratios: Mapping[Hashable, Speedup]
    """Of every configuration but the default."""
    level_rps: float
    """The default's, over its trials."""
    level_variance: float
    """Of its logarithm."""

    @classmethod
    def fit(cls, groups: Mapping[Hashable, Sequence[Trial]], default: Hashable) -> "RawGoodput | None":
        """Fit to all trials, by configuration; None before the default was measured."""
        raw = {
            key: [measured_by(trial, Metric.GOODPUT) for trial in group if trial.counts]
            for key, group in groups.items()
        }
        baselines = [replace(trial, role=Role.BASELINE) for trial in raw.pop(default, ())]
        if not baselines:
            return None
        others = [trial for group in raw.values() for trial in group]
        noise = estimate_noise([*baselines, *others])
        levels = HostLevels.fit(baselines, noise)
        logs = [trial.log_goodput or 0.0 for trial in baselines]
        return cls(
            ratios={
                key: combine(compared, noise)
                for key, group in raw.items()
                if (compared := [_compare(trial, levels, noise) for trial in group if levels.knows(trial)])
            },
            level_rps=math.exp(math.fsum(logs) / len(logs)),
            level_variance=math.fsum(
                trial_variance(noise, len(trial.valid_windows), trial.steady) for trial in baselines
            ) / len(baselines) ** 2,
        )  # fmt: skip

    def keeps(self, key: Hashable, default: Hashable) -> float:
        """Return the probability that a configuration serves nearly as much as the default."""
        if key == default:
            return 1.0
        found = self.ratios.get(key)
        if found is None:
            return UNKNOWN
        return float(ndtr((found.log_ratio - math.log(LEAST_SHARE)) / math.sqrt(found.variance)))

    def interval(self, key: Hashable, default: Hashable) -> CredibleInterval | None:
        """Return requests per second with their interval, as they would be at the default's mean level."""
        found = self.ratios.get(key)
        if key == default:
            found = Speedup(log_ratio=0.0, variance=self.level_variance)
        if found is None:
            return None
        low, high = found.interval()
        return CredibleInterval(
            value=self.level_rps * found.ratio, low=self.level_rps * low, high=self.level_rps * high
        )


def _compare(trial: Trial, levels: HostLevels, noise: Noise) -> Speedup:
    """Compare one trial with the default at its time; here a full generator makes no bound of goodput."""
    log, variance = levels.at(trial)
    own = trial_variance(noise, len(trial.valid_windows), trial.steady)
    return Speedup(log_ratio=(trial.log_goodput or 0.0) - log, variance=own + variance)
