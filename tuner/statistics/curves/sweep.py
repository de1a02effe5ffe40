"""What a sweep of one parameter has shown: its response curve, the best value, the range that is as good."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.records import Trial
from tuner.statistics.arms.faults import find_faults
from tuner.statistics.ranking import LIKELY
from tuner.statistics.response_curve import Cell, Estimate, ResponseCurve
from tuner.study.facts import SweepPlan
from tuner.study.objective import Constraint

NEAR = 0.03
"""A value that loses no more than that against the best one is as good."""
CERTAIN = 0.975
"""Probability from which on it is settled that a value is as good, or that it is not."""
TOLERANCE_CHANCE = 0.9
"""Probability with which every value of the tolerance range loses at most `TOLERANCE_SLACK` × `NEAR`."""
TOLERANCE_SLACK = 1.5
WHOLE_BLOCKS = 3
"""Blocks that hold every value, before any is named best; later ones hold what is not settled."""
NARROW = 0.05
"""Half-width of the intervals with which a sweep ends before its time, when nothing else is left to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One value of a sweep and what is known of it."""

    index: int
    """Of the plan's values."""
    estimate: Estimate | None
    """Ratio to the baseline; None where no trial gave a measurement."""
    trials: int
    fault: str = ""
    """Why it may not be named best; empty when it may."""
    is_out: bool = False
    """Whether it fails, and so is measured no more."""
    chance_best: float = 0.0
    chance_near: float = 0.0
    """Probability that it loses at most `NEAR` against the best one."""
    is_tolerated: bool = False
    """Whether it is in the range around the best one that is as good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeping:
    """All trials of a sweep judged together."""

    plan: SweepPlan
    tried: tuple[Tried, ...]
    best: int | None
    """Index of the value that is most likely as good as the best; None before one was measured."""
    blocks: int

    def wanted(self) -> tuple[int, ...]:
        """Return which values the next block should hold; none when nothing is left to tell."""
        live = [each for each in self.tried if not each.is_out]
        if self.blocks < WHOLE_BLOCKS or self.best is None:
            return tuple(each.index for each in live)
        open_ones = {
            each.index for each in live if not each.fault and 1 - CERTAIN < each.chance_near < CERTAIN
        }
        wide = {each.index for each in live if each.estimate and each.estimate.half_width > NARROW}
        asked = open_ones | {self.best} if open_ones else wide
        if not asked or asked <= {self.plan.control}:
            return ()
        return tuple(each.index for each in live if each.index in asked | {self.plan.control})


def judge_sweep(
    plan: SweepPlan, trials: Sequence[Trial], constraints: Sequence[Constraint], *, seed: int = 0
) -> Sweeping:
    """Judge all trials of a sweep.

    A relative bound is one by what the baseline has.

    Args:
        plan: of the sweep.
        trials: of the sweep, finished or not.
        constraints: of the study.
        seed: of the draws from the posterior.
    """
    arms = {arm: index for index, arm in enumerate(plan.arms)}
    mine = [trial for trial in trials if trial.arm in arms]
    cells = [
        Cell(block=(trial.session, trial.block), arm=arms[trial.arm], log=trial.log_value or 0.0)
        for trial in mine
        if trial.counts
    ]
    counts = [sum(cell.arm == index for cell in cells) for index in range(len(plan.values))]
    faults = {
        arms[arm]: fault
        for arm, fault in find_faults(
            dict(zip(plan.arms, plan.configs, strict=True)), plan.configs[plan.control], mine, constraints
        ).items()
    }
    tried = [
        Tried(
            index=index, estimate=None, trials=counts[index], is_out=index in faults,
            fault=faults.get(index, plan.lacks.get(index, "")),
        )
        for index in range(len(plan.values))
    ]  # fmt: skip
    blocks = len({cell.block for cell in cells})
    if not counts[plan.control]:
        return Sweeping(plan=plan, tried=tuple(tried), best=None, blocks=blocks)
    response = ResponseCurve.fit(cells, places_of(plan), seed=seed)
    return _conclude(plan, tried, response, blocks)


def _conclude(plan: SweepPlan, tried: Sequence[Tried], response: ResponseCurve, blocks: int) -> Sweeping:
    # Of fewer blocks the best one is the luckiest.
    is_told = blocks >= WHOLE_BLOCKS
    candidates = [each.index for each in tried if each.trials and not each.fault and is_told]
    near, first, slack = (
        response.chances_within(share, candidates) if candidates else {}
        for share in (NEAR, 0.0, TOLERANCE_SLACK * NEAR)
    )
    best = max(candidates, key=lambda index: (near[index], response.means[index]), default=None)
    good = {index for index in candidates if near[index] >= LIKELY and slack[index] >= TOLERANCE_CHANCE}
    tolerated = set() if best is None else _find_range(plan, best, good)
    found = tuple(
        Tried(
            index=each.index, trials=each.trials, fault=each.fault, is_out=each.is_out,
            estimate=estimate if each.trials else None,
            chance_best=first.get(each.index, 0.0), chance_near=near.get(each.index, 0.0),
            is_tolerated=each.index in tolerated,
        )
        for each, estimate in zip(tried, response.against(plan.control), strict=True)
    )  # fmt: skip
    return Sweeping(plan=plan, tried=found, best=best, blocks=blocks)


def _find_range(plan: SweepPlan, best: int, good: set[int]) -> set[int]:
    """Return the best value with the good ones beside it on its scale, up to the first that is not."""
    numbers = [index for index in range(len(plan.values)) if index not in plan.special]
    if best not in numbers:
        return {best} | (good & set(plan.special))
    numbers.sort(key=lambda index: float(plan.values[index]))
    at = numbers.index(best)
    found = {best}
    for side in (numbers[at + 1 :], numbers[:at][::-1]):
        for index in side:
            if index not in good:
                break
            found.add(index)
    return found


def places_of(plan: SweepPlan) -> list[float | None]:
    """Return where on its scale each value lies, from 0 to 1; None for what lies on none."""
    numbers = {
        index: float(value)
        for index, value in enumerate(plan.values)
        if index not in plan.special and not isinstance(value, str)
    }
    if plan.is_log:
        numbers = {index: math.log(number) for index, number in numbers.items()}
    low, high = min(numbers.values(), default=0.0), max(numbers.values(), default=0.0)
    width = (high - low) or 1.0
    return [(numbers[index] - low) / width if index in numbers else None for index in range(len(plan.values))]
