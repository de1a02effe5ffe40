"""How long the slowest responses of two configurations take, in the very pairs that their gain comes from.

A faster configuration may let single requests wait for longer: more threads than processors serve more in
all, and some of them late. The pairs have been measured for that anyway. Under a closed loop response times
follow goodput (see `tuner.campaign.stages.fixed_rate`), so a p99 that falls proves nothing; one that rises
although more is served does.
"""

import math
from collections.abc import Sequence

from tuner.records import Start, name_loads
from tuner.statistics.confirmation.paired_gain import MIN_PAIRS, Gain, judge_pairs
from tuner.study.objective import METRICS

P99_MS = "latency_p99_ms"


def compare_tails(first: Sequence[Start], second: Sequence[Start]) -> Gain | None:
    """Return p99 of the second side over that of the first; None where one is unknown, or loads are several.

    Args:
        first: starts of one configuration, of the default in a confirmation.
        second: those of the other, each of the same pair as the start at its place in `first`.
    """
    logs = []
    for sides in zip(first, second, strict=True):
        before, after = (METRICS[P99_MS](start) for start in sides)
        if not before or not after:
            return None
        logs.append((math.log(before), math.log(after)))
    return judge_pairs(logs) if len(logs) >= MIN_PAIRS and not name_loads(first) else None
