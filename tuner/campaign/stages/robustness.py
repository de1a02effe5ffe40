"""Robustness checks: the candidate and the default under loads that nothing was tuned on.

A gain on one load may be bought from others: few big processes beat many small ones until clients are slow,
short queues are quick until connections come. The space guards the capacity that it knows; this measures it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean

from tuner.campaign.blocks import MAX_FAILURES
from tuner.campaign.experiment import Experiment
from tuner.campaign.pairs import Pairing, are_whole, measure_on_hosts, on_each_host, read_pairs
from tuner.measure.check_loads import WARM_UP_S, choose_check_loads, name_settling
from tuner.ports import Config
from tuner.records import CheckLoad, Role, State, Trial, Window
from tuner.records.blend import Hosts
from tuner.statistics.confirmation.robustness import (
    OUTAGE_SHARE,
    CheckedPairs,
    Robustness,
    judge_check_loads,
)
from tuner.statistics.noise import pair_sd
from tuner.statistics.ranking import DEFAULT_ARM
from tuner.study.facts import REJECTED, ROBUSTNESS, PlannedCheck
from tuner.study.objective import Constraint
from tuner.study.storage import Storage

CANDIDATE_ARM = "candidate"
LEAST_WINDOW_S, MOST_WINDOW_S = 1.0, 2.0
OVERHEAD_S = 0.2
"""Of one window, and of the slow clients: programs start, counters are read."""
LEAST_PAIRS, MOST_PAIRS = 2, 8
"""One pair rejects nothing: any trial may go wrong."""
MOST_EXTENSION = 3
"""Pairs that may follow while it is not clear whether a candidate fails."""
MOST_SHARE = 0.25
"""Of a study's time, for the checks of a slow application."""
TOO_SLOW = "the study has no time left for this check; allow more minutes"
NOT_MEASURED = "no pair could be measured under this load"
NOT_SERVED = "the default answers no request under this load"


def check_robustness(experiment: Experiment, config: Config) -> Robustness:
    """Measure a candidate and the default under check loads, which show what the study's load does not.

    What was measured of it already, in this session or in another, is not measured again. While it is not
    clear whether the candidate fails, another pair follows. A plan without time for this finds nothing.
    """
    storage, default, hosts = experiment.storage, experiment.default, experiment.hosts
    checks = storage.recall(ROBUSTNESS) or ()
    planned = _find(checks, config) or _plan(experiment, config, checks)
    most = planned.pairs + MOST_EXTENSION
    while True:
        _remember(storage, planned)
        _measure(experiment, planned)
        found = _judge(planned, experiment.trials, default, hosts)
        # Of several hosts, each has numbers of its own for its pairs; together they have enough of them.
        if hosts is not None or planned.pairs >= most or not _is_worth_a_pair(experiment, found):
            return found
        planned = replace(planned, pairs=planned.pairs + 1)


def _remember(storage: Storage, planned: PlannedCheck) -> None:
    """Keep a plan, in the place of the one with fewer pairs where there is one."""
    checks = storage.recall(ROBUSTNESS) or ()
    if _find(checks, planned.config) is None:
        storage.remember(ROBUSTNESS, (*checks, planned))
        return
    updated = (planned if each.config == planned.config else each for each in checks)
    storage.remember(ROBUSTNESS, tuple(updated))


def _is_worth_a_pair(experiment: Experiment, found: Robustness) -> bool:
    """Return whether another pair may reject a candidate, or tell in spare time whether it fails more."""
    schedule, made = experiment.schedule, sum(s.role is Role.ROBUSTNESS for s in experiment.own_trials())
    pair_s = 2 * schedule.spent_s(Role.ROBUSTNESS) / max(1, made)
    if found.is_open:
        return schedule.has_time_to_confirm(besides_s=pair_s)
    return found.is_unclear and schedule.has_spare_time(pair_s)


def _measure(experiment: Experiment, planned: PlannedCheck) -> None:
    """Measure the pairs of a plan that are missing."""
    pairings = _pairings(planned, experiment.default, experiment.hosts)
    own = pairings.get(experiment.host) or pairings[""]
    if planned.check_loads and _failure(experiment.trials, own) is None:
        measure_on_hosts(
            experiment, pairings,
            lambda opening: experiment.make_under(planned.check_loads, opening, window_s=planned.window_s),
            stage="robustness", has_ended=lambda: _has_failed(experiment.trials, pairings),
        )  # fmt: skip


def _has_failed(trials: Sequence[Trial], pairings: Mapping[str, Pairing]) -> bool:
    """Return whether the candidate failed on one of the hosts, which settles it for all of them."""
    return any(_failure(trials, each) is not None for each in pairings.values())


def read_robustness(storage: Storage, trials: Sequence[Trial], default: Config) -> tuple[Robustness, ...]:
    """Recompute what was found of every candidate from the stored windows; those that are complete."""
    checks = storage.recall(ROBUSTNESS) or ()
    return tuple(
        _judge(check, trials, default, storage.hosts)
        for check in checks
        for pairings in (_pairings(check, default, storage.hosts),)
        if _has_failed(trials, pairings) or are_whole(trials, pairings)
    )


def find_checked(experiment: Experiment) -> Config | None:
    """Return the candidate that was checked last, when it was not rejected since; None without one."""
    checks = experiment.storage.recall(ROBUSTNESS) or ()
    rejected = [dict(each.config) for each in experiment.storage.recall(REJECTED) or ()]
    return checks[-1].config if checks and dict(checks[-1].config) not in rejected else None


def _find(checks: Sequence[PlannedCheck], config: Config) -> PlannedCheck | None:
    return next((each for each in checks if dict(each.config) == dict(config)), None)


def _plan(experiment: Experiment, config: Config, before: Sequence[PlannedCheck]) -> PlannedCheck:
    setup, plan, hosts = experiment.setup, experiment.plan, experiment.hosts
    count = 1 if hosts is None else len(hosts.names)
    check_loads, left_out = choose_check_loads(
        setup.load, setup.settings.check_loads, is_private=not setup.settings.target.is_managed
    )
    own_s = experiment.schedule.window_s()
    is_slow = setup.load.response_s > 0
    window_s = own_s if is_slow else max(LEAST_WINDOW_S, min(own_s, MOST_WINDOW_S))
    if is_slow and 2 * LEAST_PAIRS * len(check_loads) * window_s > MOST_SHARE * 60 * plan.minutes:
        left_out = {**left_out, **dict.fromkeys((each.name for each in check_loads), TOO_SLOW)}
        check_loads = ()
    noise = experiment.ranking().noise
    slow = sum(each.slow_clients > 0 for each in check_loads)
    loads_s = len(check_loads) * (window_s + OVERHEAD_S) + slow * OVERHEAD_S
    trial_s = experiment.schedule.mean_deploy_s() + WARM_UP_S + loads_s
    wanted = round(plan.robustness_s / (2 * trial_s))
    # Windows of a plan may be longer than these, and so less noisy.
    longer = math.sqrt(own_s / window_s)
    return PlannedCheck(
        config=dict(config), check_loads=check_loads, left_out=left_out,
        pairs=max(LEAST_PAIRS, min(MOST_PAIRS, wanted)) if plan.robustness_s else 0,
        first_block=count * sum(each.pairs for each in before),
        window_s=window_s, pair_sd=longer * pair_sd(noise, 1),
        failure_limit=_failure_limit(setup.settings.constraints),
    )  # fmt: skip


def _failure_limit(constraints: Sequence[Constraint]) -> float:
    """Return the share of failed requests that is an outage: the study's own bound where it is a number."""
    bounds = (each.limit for each in constraints if each.metric == "failure_rate")
    return min((limit for limit in bounds if limit is not None), default=OUTAGE_SHARE)


def _pairings(check: PlannedCheck, default: Config, hosts: Hosts | None) -> Mapping[str, Pairing]:
    def pair(_host: str, number: int) -> Pairing:
        first = check.first_block + number * check.pairs
        return Pairing(
            role=Role.ROBUSTNESS, sides={DEFAULT_ARM: default, CANDIDATE_ARM: check.config},
            pairs=check.pairs, rng=Random(f"other loads {first}"), first_block=first,  # noqa: S311 - no secret
        )  # fmt: skip

    return on_each_host(hosts, pair)


def _failure(trials: Sequence[Trial], pairing: Pairing) -> str | None:
    """Return why the candidate gave no measurement when it failed as often as a side of a pair may."""
    reasons = [
        trial.failure.reason
        for trial in trials
        if trial.role is pairing.role and trial.arm == CANDIDATE_ARM and trial.block in pairing.blocks
        if trial.state is State.FAILED and trial.failure is not None
    ]
    return reasons[-1] if len(reasons) >= MAX_FAILURES else None


def _judge(check: PlannedCheck, trials: Sequence[Trial], default: Config, hosts: Hosts | None) -> Robustness:
    """Judge all pairs together, and those of each host: what one shows against the candidate counts."""
    pairings = _pairings(check, default, hosts)
    together = _judge_pairs(check, trials, [*pairings.values()])
    if hosts is None or together.is_rejected:
        return together
    apart = {host: _judge_pairs(check, trials, [each]) for host, each in pairings.items()}
    against = (replace(each, host=host) for host, each in apart.items() if each.is_rejected)
    return next(against, together)


def _judge_pairs(check: PlannedCheck, trials: Sequence[Trial], pairings: Sequence[Pairing]) -> Robustness:
    pairs = [pair for pairing in pairings for pair in read_pairs(trials, pairing)]
    measured, left_out = [], dict(check.left_out)
    for check_load in check.check_loads if check.pairs else ():
        sides = [(_windows(own, check_load), _windows(theirs, check_load)) for own, theirs in pairs]
        whole = [(own, theirs) for own, theirs in sides if own and theirs]
        served = [pair for pair in whole if any(window.correct for window in pair[0])]
        if served:
            settling_s = _settling_s(pairs, check_load)
            measured.append(CheckedPairs(check_load=check_load, pairs=served, settling_s=settling_s))
        else:
            left_out[check_load.name] = NOT_SERVED if whole else NOT_MEASURED
    checked = judge_check_loads(
        measured, count=len(check.check_loads), pair_sd=check.pair_sd,
        failure_limit=check.failure_limit,
    )  # fmt: skip
    return Robustness(
        config=check.config, checked=checked, left_out=left_out, pairs=len(pairs),
        failure=next((found for each in pairings if (found := _failure(trials, each))), None),
    )  # fmt: skip


def _settling_s(pairs: Sequence[tuple[Trial, Trial]], check_load: CheckLoad) -> tuple[float, float]:
    """Return how long default and candidate made room for what had come, each in its slowest trial.

    That is as long as they served less than half of what they serve then.
    """
    default, candidate = (
        [_settling_of(trial, check_load) for trial in trials] for trials in zip(*pairs, strict=True)
    )
    return max(default), max(candidate)


def _settling_of(trial: Trial, check_load: CheckLoad) -> float:
    settled_rps = fmean([each.goodput_rps for each in _windows(trial, check_load)] or [0.0])
    first = (each for each in trial.valid_windows if each.check_load == name_settling(check_load))
    return sum(each.duration_s for each in first if each.goodput_rps < settled_rps / 2)


def _windows(trial: Trial, check_load: CheckLoad) -> tuple[Window, ...]:
    return tuple(window for window in trial.valid_windows if window.check_load == check_load.name)
