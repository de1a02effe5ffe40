"""Goodput against a cost: which configurations nobody beats in both (the Pareto front)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.ranking import Ranking, as_baselines, config_key
from tuner.study.objective import METRICS

FEW_BASELINES = 3
LEAST_VARIANCE = 1e-6
"""Of a cost's log ratio: clocks and counters are no finer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontChoice:
    """One configuration with what it gives and what it costs, both relative to the default."""

    config: Config
    goodput: Speedup
    cost: Speedup
    """Log ratio of the cost metric; below 0 is cheaper than the default."""
    trials: int


def costs(trials: Sequence[Trial], metric: str) -> Mapping[int, Speedup]:
    """Return the cost of every trial as a log ratio to that of its host's baseline trials, by trial number.

    The noise of one trial is that of the baseline trials among each other, host by host; with too few of them
    nothing is known, and nothing is given.
    """
    logs = {trial.number: log for trial in trials if (log := log_cost(trial, metric)) is not None}
    levels = find_levels(
        (trial.host, logs[trial.number])
        for trial in as_baselines(trials)
        if trial.role is Role.BASELINE and trial.number in logs
    )
    if levels is None:
        return {}
    return {
        trial.number: Speedup(
            log_ratio=logs[trial.number] - levels.mean[trial.host],
            variance=levels.noise * (1 + 1 / levels.trials[trial.host]),
        )
        for trial in trials
        if trial.number in logs and trial.host in levels.mean
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLevels:
    """What the default costs on each host, as logarithms."""

    mean: Mapping[str, float]
    trials: Mapping[str, int]
    """How many each mean is of."""
    noise: float
    """Variance of one trial around its host's mean."""
    degrees: int
    """Degrees of freedom behind it."""


def find_levels(baselines: Iterable[tuple[str, float]]) -> CostLevels | None:
    """Return the levels of hosts by the log cost of each baseline trial; None with too few of them."""
    groups: dict[str, list[float]] = {}
    for host, log in baselines:
        groups.setdefault(host, []).append(log)
    several = [group for group in groups.values() if len(group) > 1]
    degrees = sum(len(group) - 1 for group in several)
    if sum(map(len, groups.values())) < FEW_BASELINES or not several:
        return None
    # Of one host it is that very number, without rounding.
    pooled = (
        fmean(variance(each) for each in several)
        if len(several) == 1
        else (sum(variance(each) * (len(each) - 1) for each in several) / degrees)
    )
    return CostLevels(
        mean={host: fmean(group) for host, group in groups.items()},
        trials={host: len(group) for host, group in groups.items()},
        noise=max(pooled, LEAST_VARIANCE),
        degrees=degrees,
    )


def log_cost(trial: Trial, metric: str) -> float | None:
    """Return the log of a cost metric of one trial; None where it was not measured."""
    if not trial.counts or not trial.role.is_under_study_load:
        return None
    value = METRICS[metric](trial)
    return math.log(value) if value is not None and value > 0 else None


def find_front(
    trials: Sequence[Trial], ranking: Ranking, default: Config, metric: str, *, winner: Config | None
) -> tuple[FrontChoice, ...]:
    """Return the feasible configurations that no other beats in both, the default among them; fastest first.

    The winner is one of them in any case: what seems to beat it was not confirmed.
    """
    by_trial = costs(trials, metric)
    of_config: dict[str, list[Speedup]] = {}
    for trial in trials:
        if trial.number in by_trial:
            of_config.setdefault(config_key(trial.config), []).append(by_trial[trial.number])
    nothing = Speedup(log_ratio=0.0, variance=0.0)
    found = [
        FrontChoice(
            config=default, goodput=nothing, cost=nothing, trials=len(of_config.get(config_key(default), []))
        )
    ]
    for entry in ranking.entries:
        seen = of_config.get(entry.key)
        if seen:
            mean = fmean(each.log_ratio for each in seen)
            cost = Speedup(log_ratio=mean, variance=seen[0].variance / len(seen))
            found.append(
                FrontChoice(config=entry.config, goodput=entry.posterior, cost=cost, trials=entry.trials)
            )
    front = undominated(found)
    proven = [each for each in found if winner and dict(each.config) == dict(winner) and each not in front]
    return tuple(sorted([*front, *proven], key=lambda each: -each.goodput.log_ratio))


def undominated(choices: Sequence[FrontChoice]) -> tuple[FrontChoice, ...]:
    """Drop whatever another choice beats in both respects; fastest first."""
    front: list[FrontChoice] = []
    for choice in sorted(choices, key=lambda each: (-each.goodput.log_ratio, each.cost.log_ratio)):
        if not front or choice.cost.log_ratio < front[-1].cost.log_ratio:
            front.append(choice)
    return tuple(front)
