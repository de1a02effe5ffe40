"""Goodput of what was searched by its cost: what serves less than the default does not ship. Pure.

A configuration can be cheap because it serves little: it waits, and what the generator does meanwhile is not
charged to the server. So its requests per second are held against the default's at the same time, whose level
is followed as everywhere (`statistics.control_level`).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.special import ndtr

from tuner.records import Metric, Role, Start, measured_by
from tuner.statistics.control_level import HostLevels, Speedup, combine
from tuner.statistics.failure_rate import CredibleInterval
from tuner.statistics.noise import Noise, estimate_noise, start_variance

LEAST_SHARE = 0.98
"""Of the default's goodput, which is to be kept. Short studies cannot tell smaller losses from none."""
UNKNOWN = 0.5
"""The probability of what nobody has measured."""


def is_searched_by_cost(starts: Sequence[Start]) -> bool:
    """Return whether a study compares what the server's CPUs give instead of goodput."""
    return any(window.metric is Metric.PER_CPU for start in starts for window in start.windows)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawGoodput:
    """Requests per second of configurations, relative to the default's at the same time."""

    ratios: Mapping[Hashable, Speedup]
    """Of every configuration but the default."""
    level_rps: float
    """The default's, over its starts."""
    level_variance: float
    """Of its logarithm."""

    @classmethod
    def fit(cls, groups: Mapping[Hashable, Sequence[Start]], default: Hashable) -> "RawGoodput | None":
        """Fit to all starts, by configuration; None before the default was measured."""
        raw = {
            key: [measured_by(start, Metric.GOODPUT) for start in group if start.counts]
            for key, group in groups.items()
        }
        controls = [replace(start, role=Role.CONTROL) for start in raw.pop(default, ())]
        if not controls:
            return None
        others = [start for group in raw.values() for start in group]
        noise = estimate_noise([*controls, *others])
        levels = HostLevels.fit(controls, noise)
        logs = [start.log_goodput or 0.0 for start in controls]
        return cls(
            ratios={
                key: combine(compared, noise)
                for key, group in raw.items()
                if (compared := [_compare(start, levels, noise) for start in group if levels.knows(start)])
            },
            level_rps=math.exp(math.fsum(logs) / len(logs)),
            level_variance=math.fsum(
                start_variance(noise, len(start.valid_windows), start.steady) for start in controls
            ) / len(controls) ** 2,
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


def _compare(start: Start, levels: HostLevels, noise: Noise) -> Speedup:
    """Compare one start with the default at its time; here a full generator makes no bound of goodput."""
    log, variance = levels.at(start)
    own = start_variance(noise, len(start.valid_windows), start.steady)
    return Speedup(log_ratio=(start.log_goodput or 0.0) - log, variance=own + variance)
