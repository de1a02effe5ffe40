"""Whether a server has warmed up, and whether it fades."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from tuner.records import Window

BINS = 3
TOLERANCE = 0.03
MEDIAN_SD = 0.67
"""SD of the median of three normal values, relative to theirs."""
NOISE_LIMIT = 2.0
"""Differences of two medians within so many of their own SDs are noise."""
DECLINE = 0.05
MIN_DECLINING = 3


def is_steady(bins: Sequence[float], *, spread: float = 0.0) -> bool:
    """Return whether the last three bins of goodput are where the three before were, within 3 %.

    Args:
        bins: goodput per bin of equal length, in order; fewer than six are never steady.
        spread: SD of one bin, relative to its mean, on this host when nothing changes. With it the tolerance
            grows to what noise alone does: 1 s bins of a constant server with an SD of 15 % stay within 3 %
            only one time in six, and every trial would count as unsteady.
    """
    if len(bins) < 2 * BINS:
        return False
    before, after = median(bins[-2 * BINS : -BINS]), median(bins[-BINS:])
    middle = median(bins[-2 * BINS :])
    if middle <= 0:
        return False
    tolerance = max(TOLERANCE, NOISE_LIMIT * math.sqrt(2) * MEDIAN_SD * spread)
    return abs(after - before) / middle < tolerance


def declines(windows: Sequence[Window], *, spread: float = 0.0) -> bool:
    """Return whether goodput falls from each window to the next, by more than 5 % and more than noise in all.

    A decline over a whole trial is a result of its own, "slowdown" in Barrett et al., "Virtual machine warmup
    blows hot and cold", OOPSLA 2017 (arXiv 1602.00602); on a burstable machine it is spent CPU credit.
    `spread` is the SD of one window, as in `is_steady`.
    """
    logs = [window.log_goodput for window in windows if window.is_valid]
    if len(logs) < MIN_DECLINING:
        return False
    falls = all(later < earlier for earlier, later in pairwise(logs))
    return falls and logs[0] - logs[-1] > max(DECLINE, 2 * NOISE_LIMIT * spread)
