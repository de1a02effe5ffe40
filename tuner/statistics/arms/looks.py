"""Pairs judged at a few planned looks: is the second side no slower, does an earlier gain last. Pure.

Looks and bounds are settled before the first pair. Each look has an equal share of the error rate
(Bonferroni), so that all intervals that are looked at hold together with 95 % probability: whoever stops at
the first that pleases is not deceived.
"""

import math
from typing import Literal

from tuner.errors import UsageError
from tuner.statistics.confirmation.paired_gain import ALPHA, LARGEST_LOG, MIN_GAIN, Gain

Finding = Literal["no slower", "slower", "holds", "gone", "cannot tell"]
LEAST_PAIRS, LEAST_LOOK = 2, 4
"""Pairs at the least, and before an early look: with three, the t interval is so wide that hardly anything is
shown by it."""


def plan_looks(most: int) -> tuple[int, ...]:
    """Return after how many pairs they are judged: a quarter, half, and all of them.

    Raises:
        UsageError: fewer than two pairs have no interval.
    """
    if most < LEAST_PAIRS:
        raise UsageError(f"pairs: {most} pairs are too few. Give at least {LEAST_PAIRS}.")
    early = {pairs for pairs in (most // 4, most // 2) if LEAST_LOOK <= pairs < most}
    return (*sorted(early), most)


def alpha_of(looks: tuple[int, ...]) -> float:
    """Return the two-sided error rate of one look."""
    return ALPHA / len(looks)


def judge_margin(gain: Gain, margin: float) -> Finding:
    """Return whether the second side is no slower than the first by more than a margin.

    A test of non-inferiority by the interval (Piaggio et al., "Reporting of Noninferiority and Equivalence
    Randomized Trials", JAMA 308, 2012, doi 10.1001/jama.2012.87802). Under several loads, a side that is
    slower under one of them is slower.

    Args:
        gain: of the second over the first, its interval at the error rate of one look.
        margin: share that it may be slower, 0 to 1.
    """
    bound = 1 - margin
    if min([gain.high, *(each.high for each in gain.by_load.values())]) < bound:
        return "slower"
    return "no slower" if gain.low > bound else "cannot tell"


def judge_lasting(gain: Gain, before: Gain) -> Finding:
    """Return whether a gain that was measured before is still there.

    It holds when it is proven anew. It is gone when something speaks against the winner, or when the interval
    rules out that half of it, in log points, is left.
    """
    if gain.is_proven:
        return "holds"
    is_refused = gain.verdict in {"worse", "overfitted", "infeasible"}
    return "gone" if is_refused or gain.high < half_of(before) else "cannot tell"


def half_of(before: Gain) -> float:
    """Return half of a gain in log points, as a ratio; no less than what is worth a change."""
    return max(1 + MIN_GAIN, math.exp(min(math.log(before.ratio) / 2, LARGEST_LOG)))
