"""Goodput against a cost: which configurations nobody beats in both (the Pareto front)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from tuner.ports import Config
from tuner.records import Role, Start
from tuner.statistics.control_level import Speedup
from tuner.statistics.ranking import Ranking, as_controls, config_key
from tuner.study.objective import METRICS

FEW_CONTROLS = 3
LEAST_VARIANCE = 1e-6
"""Of a cost's log ratio: clocks and counters are no finer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One configuration with what it gives and what it costs, both relative to the default."""

    config: Config
    goodput: Speedup
    cost: Speedup
    """Log ratio of the cost metric; below 0 is cheaper than the default."""
    starts: int


def costs(starts: Sequence[Start], metric: str) -> Mapping[int, Speedup]:
    """Return the cost of every start as a log ratio to that of the control starts, by start number.

    The noise of one start is that of the control starts among each other; with too few of them nothing is
    known, and nothing is given.
    """
    logs = {start.number: log for start in starts if (log := log_cost(start, metric)) is not None}
    controls = [
        logs[start.number]
        for start in as_controls(starts)
        if start.role is Role.CONTROL and start.number in logs
    ]
    if len(controls) < FEW_CONTROLS:
        return {}
    level, noise = fmean(controls), max(variance(controls), LEAST_VARIANCE)
    return {
        number: Speedup(log_ratio=log - level, variance=noise * (1 + 1 / len(controls)))
        for number, log in logs.items()
    }


def log_cost(start: Start, metric: str) -> float | None:
    """Return the log of a cost metric of one start; None where it was not measured."""
    if not start.counts or not start.role.is_under_study_load:
        return None
    value = METRICS[metric](start)
    return math.log(value) if value is not None and value > 0 else None


def find_front(
    starts: Sequence[Start], ranking: Ranking, default: Config, metric: str, *, winner: Config | None
) -> tuple[Choice, ...]:
    """Return the feasible configurations that no other beats in both, the default among them; fastest first.

    The winner is one of them in any case: what seems to beat it was not confirmed.
    """
    by_start = costs(starts, metric)
    of_config: dict[str, list[Speedup]] = {}
    for start in starts:
        if start.number in by_start:
            of_config.setdefault(config_key(start.config), []).append(by_start[start.number])
    nothing = Speedup(log_ratio=0.0, variance=0.0)
    found = [
        Choice(
            config=default, goodput=nothing, cost=nothing, starts=len(of_config.get(config_key(default), []))
        )
    ]
    for entry in ranking.entries:
        seen = of_config.get(entry.key)
        if seen:
            mean = fmean(each.log_ratio for each in seen)
            cost = Speedup(log_ratio=mean, variance=seen[0].variance / len(seen))
            found.append(Choice(config=entry.config, goodput=entry.posterior, cost=cost, starts=entry.starts))
    front = undominated(found)
    proven = [each for each in found if winner and dict(each.config) == dict(winner) and each not in front]
    return tuple(sorted([*front, *proven], key=lambda each: -each.goodput.log_ratio))


def undominated(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Drop whatever another choice beats in both respects; fastest first."""
    front: list[Choice] = []
    for choice in sorted(choices, key=lambda each: (-each.goodput.log_ratio, each.cost.log_ratio)):
        if not front or choice.cost.log_ratio < front[-1].cost.log_ratio:
            front.append(choice)
    return tuple(front)
