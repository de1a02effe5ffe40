"""Response times: quantiles and histograms that can be added up over windows."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from tuner.ports import Latency

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""What is reported of every window."""
BINS_PER_DECADE = 100
"""Bins are 2.3 % wide, and the same in every window."""


def latency_of_samples(latencies_us: Sequence[int]) -> Latency | None:
    """Summarize raw response times in microseconds; None when there are none."""
    if not latencies_us:
        return None
    ordered = sorted(latencies_us)
    count = len(ordered)
    return Latency(
        # The nearest-rank definition: the smallest sample that at least this share does not exceed.
        quantiles_ms={quantile: ordered[math.ceil(quantile * count) - 1] / 1000 for quantile in QUANTILES},
        samples=count,
        mean_ms=sum(ordered) / count / 1000,
        max_ms=ordered[-1] / 1000,
        histogram=_histogram(Counter(ordered)),
    )


def _histogram(counts: Mapping[int, int]) -> Mapping[float, int]:
    """Count microseconds in logarithmic bins: upper bound in milliseconds → count."""
    bins: Counter[int] = Counter()
    for latency_us, count in counts.items():
        bins[math.ceil(math.log10(max(latency_us, 1)) * BINS_PER_DECADE)] += count
    return {10 ** (step / BINS_PER_DECADE) / 1000: bins[step] for step in sorted(bins)}


def latency_of_quantiles(
    grid: Mapping[float, float], samples: int, *, mean_ms: float | None = None, corrected: bool = False
) -> Latency:
    """Summarize response times of which a generator tells the distribution alone.

    Args:
        grid: quantile → milliseconds, 1.0 among them.
        samples: Number of response times that the distribution stands for.
        mean_ms: where it is known.
        corrected: whether the generator added samples of its own.
    """
    return Latency(
        quantiles_ms={quantile: grid[quantile] for quantile in QUANTILES if quantile in grid},
        samples=samples,
        corrected=corrected,
        mean_ms=mean_ms,
        max_ms=grid[1.0],
        histogram=_histogram_of_quantiles(sorted(grid.items()), samples),
    )


def _histogram_of_quantiles(grid: Sequence[tuple[float, float]], samples: int) -> Mapping[float, int]:
    """Turn points of the distribution into bins: upper bound in milliseconds → count, `samples` in all.

    Args:
        grid: (quantile, milliseconds), both rising, the last quantile 1.0.
        samples: Number of response times that the distribution stands for.
    """
    bins: dict[float, int] = {}
    below = 0
    for quantile, bound_ms in grid:
        upto = round(quantile * samples)
        if upto > below:
            bins[bound_ms] = bins.get(bound_ms, 0) + upto - below
            below = upto
    return bins
