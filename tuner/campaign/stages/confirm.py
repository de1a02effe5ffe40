"""The confirmation: fresh default/winner pairs, the only ones that are reported as the gain."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from tuner.campaign.experiment import Experiment
from tuner.campaign.pairs import Pairing, measure_on_hosts, on_each_host, read_pairs
from tuner.campaign.schedule import WRAP_UP_S
from tuner.errors import TooNoisy
from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.records.blend import Hosts
from tuner.statistics.age import find_age
from tuner.statistics.confirmation.paired_gain import (
    Gain,
    compare_tails,
    judge_hosts,
    judge_trials,
    needs_extension,
)
from tuner.statistics.feasibility import (
    GOODPUT_RPS,
    MAY_SHIP_AS_BEFORE,
    Assessment,
    Feasibility,
    judge_feasibility,
)
from tuner.statistics.posterior import estimate_gain
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM
from tuner.study.facts import CONFIRMATION, REJECTED, Confirmation
from tuner.study.objective import Constraint
from tuner.study.storage import Opening, Storage

CONFIRMED = "confirmed"
INFEASIBLE = "not confirmed: the winner"
FAILED = f"not confirmed: {WINNER_ARM}:"
FIRST_LOOK, LAST_LOOK = 0.8, 0.45
"""Probability with which a winner has to keep what the default has: after the pairs, or an extension follows
where there is time, and after the extension. Of 150 simulated winners that fail twice as often as the default
4.7 % ship so, of those that fail as often 89 %. With 0.5 for both looks it was 8.0 % and 89 %."""
LEAST_PAIRS = 3
"""Fewer say next to nothing: what all trials show is told instead."""


def confirm(experiment: Experiment, winner: Config) -> str:
    """Measure fresh default/winner pairs, and once more as many when they do not decide.

    How many pairs there are, and how many windows, is settled and kept before the first of them.
    """
    storage, constraints = experiment.storage, experiment.setup.settings.constraints
    planned = storage.recall(CONFIRMATION)
    if planned is None or dict(planned.config) != dict(winner):
        planned = _size(experiment, winner, after=planned)
        storage.remember(CONFIRMATION, planned)
    planned, failed = _measure_in_noise(experiment, planned)
    gain = read_gain(storage, experiment.trials, experiment.default, constraints)
    more = planned.extend_to - planned.pairs
    has_time = experiment.schedule.time_left_s() >= 2 * more * experiment.schedule.mean_cost_s()
    if more > 0 and failed is None and has_time and gain is not None and needs_extension(gain):
        experiment.progress.note("the pairs so far do not decide; tuner measures the planned further pairs")
        planned = replace(planned, pairs=planned.extend_to)
        storage.remember(CONFIRMATION, planned)
        planned, failed = _measure_in_noise(experiment, planned)
        gain = read_gain(storage, experiment.trials, experiment.default, constraints)
    if failed is not None:
        return f"not confirmed: {failed}"
    pairs = _judge(storage, experiment.trials, experiment.default)
    known = _judge_feasibility(experiment)
    if pairs is not None and (pairs.verdict == "improved" or known.default_fails):
        _measure_doubted(experiment, planned)
        gain = read_gain(storage, experiment.trials, experiment.default, constraints)
    known = _judge_feasibility(experiment)
    if doubts := known.doubts(planned.config, as_before=choose_bound(planned, experiment.trials)):
        verb = "breaks" if known.is_ruled_out(planned.config) else "may break"
        return f"{INFEASIBLE} {verb} {' and '.join(map(_describe, doubts))}"
    if gain is None:
        return "not proven"
    return CONFIRMED if gain.is_proven else gain.verdict


def _measure_in_noise(experiment: Experiment, planned: Confirmation) -> tuple[Confirmation, str | None]:
    """Measure the pairs; where the host becomes too noisy, plan no more than there are.

    Noise ended them, not what they gave: their interval is as good as that of planned ones.

    Raises:
        TooNoisy: there are too few, or the study has several hosts.
    """
    try:
        return planned, _measure(experiment, planned)
    except TooNoisy:
        seed, hosts = experiment.setup.settings.seed, experiment.hosts
        done = len(read_pairs(experiment.trials, _pairings(planned, experiment.default, None, seed)[""]))
        if done < LEAST_PAIRS or hosts is not None:
            raise
        cut = replace(planned, pairs=done, extend_to=done)
        experiment.storage.remember(CONFIRMATION, cut)
        return cut, None


def _describe(doubt: Assessment) -> str:
    """Name a constraint; what is no bound of the study file says its figures, too."""
    if doubt.metric != GOODPUT_RPS:
        return doubt.constraint
    return f"{doubt.constraint} (it {doubt.finding}, the default {doubt.finding_of_default})"


def speaks_against_winner(verdict: str) -> bool:
    """Return whether a confirmation ended because its winner must not ship, whatever it gains."""
    return verdict.startswith((INFEASIBLE, FAILED))


def find_planned(experiment: Experiment) -> Config | None:
    """Return what is planned to be confirmed and was not rejected since; None without such a plan."""
    planned = experiment.storage.recall(CONFIRMATION)
    rejected = [dict(each.config) for each in experiment.storage.recall(REJECTED) or ()]
    return None if planned is None or dict(planned.config) in rejected else planned.config


def _size(experiment: Experiment, winner: Config, *, after: Confirmation | None) -> Confirmation:
    """Plan the pairs by all that is known before them; `after` is the plan of a rejected finalist."""
    storage, plan, setup = experiment.storage, experiment.plan, experiment.setup
    gain = estimate_gain(
        setup.space, experiment.trials, winner, seed=setup.settings.seed, hosts=experiment.hosts
    )
    pairs, windows = experiment.schedule.plan_confirmation(gain)
    extend_to = max(pairs, plan.extend_to)
    return Confirmation(
        config=dict(winner), pairs=pairs, windows=windows, extend_to=extend_to,
        looks=2 if extend_to > pairs else 1,
        first_block=0 if after is None else after.first_block + _count_blocks(storage, after),
    )  # fmt: skip


def _judge_feasibility(experiment: Experiment) -> Feasibility:
    constraints = experiment.setup.settings.constraints
    return judge_feasibility(experiment.trials, constraints, experiment.default, experiment.hosts)


def _count_blocks(storage: Storage, planned: Confirmation) -> int:
    """Return how many numbers the pairs of a confirmation have: as many for each host."""
    hosts = storage.hosts
    return planned.extend_to * (1 if hosts is None else len(hosts.names))


def _measure(experiment: Experiment, planned: Confirmation) -> str | None:
    """Measure the pairs that are missing; returns the side that failed with its reason, or None.

    Where the winner is to hold on several hosts, each has pairs of its own, and waits for the others.
    """
    plan = replace(experiment.plan, windows=(planned.windows, planned.windows))
    pairings = _pairings(planned, experiment.default, experiment.hosts, experiment.setup.settings.seed)
    refuse_late = experiment.schedule.limit(
        "confirm", experiment.schedule.pairs_s(planned.pairs, planned.windows)
    )

    def make(opening: Opening) -> Trial:
        refuse_late()
        return experiment.make(opening, plan=plan)

    return measure_on_hosts(experiment, pairings, make, stage="confirm")


def _measure_doubted(experiment: Experiment, planned: Confirmation) -> None:
    """Measure winner and default once more as often as in the pairs, where these leave a constraint in doubt.

    How often is settled beforehand, and time alone ends it early, or that the winner is out: whoever looks
    after each trial, until it is shown that constraints are kept, is shown it in the end. These trials are no
    part of the gain: it comes from the planned pairs alone.
    """
    winner = planned.config
    openings = [
        Opening(role=Role.REPEAT, config=winner, point=experiment.setup.space.encode(winner)),
        Opening(role=Role.BASELINE, config=experiment.default, arm=DEFAULT_ARM),
    ]
    while (made := _count_since_pairs(experiment.own_trials())) < 2 * planned.pairs:
        known = _judge_feasibility(experiment)
        has_time = experiment.schedule.time_left_s() >= experiment.schedule.mean_cost_s() + WRAP_UP_S
        is_shown = made == 0 and known.may_ship(winner, as_before=FIRST_LOOK)
        if is_shown or known.is_ruled_out(winner) or not has_time:
            break
        experiment.make(openings[made % len(openings)])
    while experiment.hosts is not None and experiment.wait_for_others():
        pass  # they look at their own hosts


def choose_bound(planned: Confirmation, trials: Sequence[Trial]) -> float:
    """Return how surely a winner has to keep what the default has, by the looks that there were at it."""
    return LAST_LOOK if _count_since_pairs(trials) >= 2 * planned.pairs else MAY_SHIP_AS_BEFORE


def _count_since_pairs(trials: Sequence[Trial]) -> int:
    """Return how many repeats and baseline trials were made since the last trial of a pair."""
    last = max(
        (index for index, trial in enumerate(trials) if trial.role is Role.CONFIRM), default=len(trials)
    )
    return sum(trial.role in {Role.REPEAT, Role.BASELINE} for trial in trials[last:])


def _pairings(
    planned: Confirmation, default: Config, hosts: Hosts | None, seed: int = 0
) -> Mapping[str, Pairing]:
    def pair(host: str, number: int) -> Pairing:
        return Pairing(
            role=Role.CONFIRM, sides={DEFAULT_ARM: default, WINNER_ARM: planned.config}, pairs=planned.pairs,
            rng=Random("/".join(filter(None, (str(seed), "confirm", host)))),  # noqa: S311 - no secret
            first_block=planned.first_block + number * planned.extend_to,
        )  # fmt: skip

    return on_each_host(hosts, pair)


def read_gain(
    storage: Storage, trials: Sequence[Trial], default: Config, constraints: Sequence[Constraint]
) -> Gain | None:
    """Recompute the confirmed gain from the stored pairs; None before all of them are there.

    A winner that breaks a constraint, by all its trials, has improved nothing, nor has one of which it is not
    shown that it keeps them. One that keeps what the default breaks bears the load, however much it serves.
    """
    planned, gain = storage.recall(CONFIRMATION), _judge(storage, trials, default)
    if planned is None or gain is None:
        return None
    known = judge_feasibility(trials, constraints, default, storage.hosts)
    if known.is_ruled_out(planned.config):
        return replace(gain, verdict="infeasible")
    gain = credit_bearing(gain, known)
    as_before = choose_bound(planned, trials)
    is_shown = not gain.is_proven or known.may_ship(planned.config, as_before=as_before)
    return gain if is_shown else replace(gain, verdict="not proven")


def credit_bearing(gain: Gain, known: Feasibility) -> Gain:
    """Return the gain of a side that keeps what the default breaks: it bears the load."""
    bears = known.default_fails and gain.verdict not in {"improved", "overfitted"}
    return replace(gain, verdict="bears the load") if bears else gain


def _judge(storage: Storage, trials: Sequence[Trial], default: Config) -> Gain | None:
    """Return what the stored pairs show, whatever constraints say; None before all of them are there."""
    planned = storage.recall(CONFIRMATION)
    if planned is None:
        return None
    hosts = storage.hosts
    pairs = {host: read_pairs(trials, each) for host, each in _pairings(planned, default, hosts).items()}
    if any(len(each) < planned.pairs for each in pairs.values()):
        return None
    if hosts is None:
        gain = judge_trials(pairs[""], storage.blend, looks=planned.looks)
    else:
        gain = judge_hosts(pairs, storage.blend, hosts.across, looks=planned.looks)
    of_default, of_winner = ([pair[side] for each in pairs.values() for pair in each] for side in (0, 1))
    return replace(
        gain, metric=storage.metric, age=find_age(of_default, of_winner),
        p99=compare_tails(of_default, of_winner),
    )  # fmt: skip
