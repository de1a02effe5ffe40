"""All pairs of the arms of interleaved blocks, with intervals that hold together.

Both trials of a pair stand in the same block, so that the level of the host cancels out, and each pair has
the t interval of its log ratios over the blocks. Each pair has a spread of its own: some servers are
steadier than others, and a pooled spread would be too wide for the steady ones and too narrow for the others.

With several pairs the chance that one of the intervals misses grows. So each gets an equal part of the 5 %
(Bonferroni): all of them hold their ratios at once with 95 %, whatever the pairs have in common, and
whichever of them somebody chooses to quote after having seen them all.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from tuner.records import Trial
from tuner.statistics.confirmation.paired_gain import ALPHA, judge_pairs
from tuner.statistics.response_curve import Estimate

LEAST_BLOCKS = 3
"""Two differences say next to nothing of how far they spread (t = 12.7 for a single pair)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllPairs:
    """The ratio of each arm to each other one."""

    planned: int
    """Pairs among which the 5 % are divided; those without a measurement count, too."""
    estimates: Mapping[tuple[int, int], Estimate]
    """(over, under) → ratio of the first to the second; both ways round, where it is known."""
    blocks: Mapping[tuple[int, int], int]
    """(over, under) → blocks that held both."""

    def leaders(self, among: Sequence[int]) -> tuple[int, ...]:
        """Return those of some arms that are shown to be behind none of them; unmeasured ones do not lead."""
        measured = [each for each in among if any(each in pair for pair in self.estimates)]
        return tuple(each for each in measured if not any(self.is_ahead(other, each) for other in measured))

    def is_ahead(self, over: int, under: int) -> bool:
        """Return whether the whole interval of a ratio lies above 1."""
        estimate = self.estimates.get((over, under))
        return estimate is not None and estimate.low > 1


def judge_all_pairs(trials: Sequence[Trial], arms: Sequence[str]) -> AllPairs:
    """Compare every two arms by the blocks that hold both.

    Args:
        trials: of the arms, finished or not; those of one block belong to one session.
        arms: their names, in order.
    """
    blocks = _by_block(trials)
    pairs = list(combinations(range(len(arms)), 2))
    estimates: dict[tuple[int, int], Estimate] = {}
    counts: dict[tuple[int, int], int] = {}
    for under, over in pairs:
        names = arms[under], arms[over]
        logs = [
            (block[names[0]], block[names[1]]) for block in blocks if names[0] in block and names[1] in block
        ]
        counts[over, under] = counts[under, over] = len(logs)
        if len(logs) >= LEAST_BLOCKS:
            estimates[over, under] = found = _judge(logs, ALPHA / len(pairs))
            estimates[under, over] = _invert(found)
    return AllPairs(planned=len(pairs), estimates=estimates, blocks=counts)


def _by_block(trials: Sequence[Trial]) -> list[dict[str, float]]:
    """Return of each block its arms with what they gave, as logarithms."""
    found: dict[Hashable, dict[str, float]] = {}
    for trial in trials:
        if trial.counts and trial.log_value is not None:
            found.setdefault((trial.session, trial.block), {})[trial.arm] = trial.log_value
    return list(found.values())


def _judge(logs: Sequence[tuple[float, float]], alpha: float) -> Estimate:
    gain = judge_pairs(logs, total_alpha=alpha)
    return Estimate(ratio=gain.ratio, low=gain.low, high=gain.high)


def _invert(estimate: Estimate) -> Estimate:
    """Return the ratio the other way round."""
    return Estimate(ratio=1 / estimate.ratio, low=1 / estimate.high, high=1 / estimate.low)
