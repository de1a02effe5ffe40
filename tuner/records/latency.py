"""Percentiles of response times: merged from histograms, and only where there are enough requests."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tuner.ports import Latency

NORMAL_95 = 1.96
MIN_IN_TAIL = 100
"""Requests beyond a quantile that it takes: 10 000 for p99, 100 000 for p99.9. With 100 in the tail the rank
is known to ±20 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """One quantile of response times with its 95 % interval."""

    value_ms: float
    """The quantile itself."""
    low_ms: float | None
    """None when the load generator gives no raw data to take an interval from."""
    high_ms: float | None
    """Upper end of the interval; None as for `low_ms`."""


def merge(latencies: Sequence[Latency]) -> Latency:
    """Merge the response times of several windows.

    Quantiles come from the added histograms and are never averaged: the mean of p99s is no p99 of anything.
    Without histograms only a single window has quantiles; samples, mean and maximum are merged all the same.
    """
    if len(latencies) == 1:
        return latencies[0]
    histogram: Counter[float] = Counter()
    if all(latency.histogram for latency in latencies):
        for latency in latencies:
            histogram.update(latency.histogram)
    samples = sum(latency.samples for latency in latencies)
    wanted = {quantile for latency in latencies for quantile in latency.quantiles_ms}
    maxima = [latency.max_ms for latency in latencies if latency.max_ms is not None]
    return Latency(
        quantiles_ms={q: _at_rank(histogram, _rank(histogram, q)) for q in sorted(wanted) if histogram},
        samples=samples,
        corrected=any(latency.corrected for latency in latencies),
        mean_ms=_mean(latencies, samples),
        max_ms=max(maxima) if len(maxima) == len(latencies) and maxima else None,
        histogram=dict(sorted(histogram.items())),
    )


def _mean(latencies: Sequence[Latency], samples: int) -> float | None:
    total = 0.0
    for latency in latencies:
        if latency.mean_ms is None:
            return None
        total += latency.mean_ms * latency.samples
    return total / samples if samples else None


def quantile(latency: Latency, q: float) -> Quantile | None:
    """Return a quantile, or None when there are too few requests to know it or it was not recorded.

    The interval takes the order statistics of ranks n·q ± 1.96 √(n·q·(1−q)), which needs no assumption on
    the distribution (David & Nagaraja, "Order Statistics", 3rd edition, section 7.1).
    """
    count = sum(latency.histogram.values()) or latency.samples
    # A hair's breadth for 10 000 · (1 − 0.99), which is not 100 in floating point.
    if count * min(q, 1 - q) < MIN_IN_TAIL * (1 - 1e-9):
        return None
    if not latency.histogram:
        value = latency.quantiles_ms.get(q)
        return None if value is None else Quantile(value_ms=value, low_ms=None, high_ms=None)
    reach = NORMAL_95 * math.sqrt(count * q * (1 - q))
    return Quantile(
        value_ms=_at_rank(latency.histogram, _rank(latency.histogram, q)),
        low_ms=_at_rank(latency.histogram, max(1, math.floor(count * q - reach))),
        high_ms=_at_rank(latency.histogram, min(count, math.ceil(count * q + reach))),
    )


def _rank(histogram: Mapping[float, int], q: float) -> int:
    return max(1, math.ceil(round(sum(histogram.values()) * q, 6)))


def _at_rank(histogram: Mapping[float, int], rank: int) -> float:
    """Return the upper bound of the bin that holds the request of this rank, counted from 1."""
    bounds = sorted(histogram)
    totals = accumulate(histogram[bound] for bound in bounds)
    return next((bound for bound, total in zip(bounds, totals, strict=True) if total >= rank), bounds[-1])
