"""Response times: quantiles and histograms that can be added up over windows."""

from collections.abc import Mapping, Sequence

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""What is reported of every window."""


def histogram_of_quantiles(grid: Sequence[tuple[float, float]], samples: int) -> Mapping[float, int]:
    """Turn points of the distribution into bins: upper bound in milliseconds → count, `samples` in all.

    Args:
        grid: (quantile, milliseconds), quantiles increasing, the last one 1.0.
        samples: Number of response times that the distribution stands for.
    """
    bins: dict[float, int] = {}
    below = 0
    bound_ms = 0.0
    for quantile, value_ms in grid:
        bound_ms = max(bound_ms, value_ms)
        upto = round(quantile * samples)
        if upto > below:
            bins[bound_ms] = bins.get(bound_ms, 0) + upto - below
            below = upto
    return bins
