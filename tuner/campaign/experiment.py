"""A study while it is measured: its trials, what they say, and one trial more."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from statistics import median
from typing import TypeVar

from tuner.campaign.lost_trials import give_up, may_begin
from tuner.campaign.prepare import Setup
from tuner.campaign.progress import Leader, Progress
from tuner.campaign.schedule import Schedule
from tuner.campaign.trial import Executor
from tuner.campaign.trial_runner import TrialRunner
from tuner.campaign.turn import Turn
from tuner.errors import TooNoisy
from tuner.measure.trial import NO_JUDGES, Judges
from tuner.measure.validity import HEALTHY, BaselineFacts
from tuner.measure.validity.retries import LEAVE
from tuner.measure.window import Load
from tuner.optimize.optimizer import Optimizer
from tuner.ports import Clock
from tuner.records import CheckLoad, Role, State, Trial
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.noise import detectable_gain
from tuner.statistics.observations import LEARNS_FROM
from tuner.statistics.ranking import DEFAULT_ARM, LIKELY, Entry, Ranking, as_baselines, rank
from tuner.statistics.steady import declines
from tuner.study.facts import CONFIRMATION, MOVED_LOAD, PACE, ROBUSTNESS, Fact, MovedLoad, Pace
from tuner.study.presets import Plan
from tuner.study.storage import Opening, Storage

LEAST_PAUSE_S = 20.0
"""Waiting so long for a noisy host to calm down pays, however little time is left."""
LOOK_AGAIN_S = 0.5
"""A thread that waits for others looks so often at what they have decided, for each `LOOKING` hosts."""
LOOKING = 16
DECIDING_SHARE = 0.25
"""Of the time of all trials, in which somebody may be choosing; beyond, several are chosen at once."""
AT_LEAST_WORKERS = 4
"""For each configuration that is chosen at once."""
LAG = 1.5
"""So many times as many trials may there be as when they were ranked, where decisions have to be quick."""
LEADERS = 5
"""Configurations that are shown while a study runs."""


T = TypeVar("T")


class PlanChanged(Exception):
    """Another host's thread has ended a stage, or settled something that was planned."""


@dataclass(slots=True, kw_only=True)
class Shared:
    """What the experiments on all hosts of a study have in common, beside its storage."""

    turn: Turn = field(default_factory=Turn)
    ranked: tuple[list[Trial], Ranking] | None = None
    rank_s: float = 0.0
    """What it took last to rank all trials."""
    suggest_s: float = 0.0
    """What it took last to choose by that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The place of one experiment among those on several hosts."""

    host: str
    """Name of the target among those of the study."""
    executor: Executor | None
    """Runs trials there; None for this process."""
    shared: Shared
    """The first experiment reads the storage; the others find what it has read."""


class Experiment:
    """What all stages of a campaign share."""

    def __init__(  # noqa: PLR0913 - what a study is made of
        self,
        setup: Setup,
        plan: Plan,
        storage: Storage,
        optimizer: Optimizer,
        progress: Progress,
        *,
        session: str,
        seat: Seat | None = None,
        clock: Clock = time,
    ) -> None:
        """Take up the study where its storage left it.

        Args:
            setup: of the target.
            plan: of the study.
            storage: of the study.
            optimizer: chooses what to try.
            progress: told what happens.
            session: name of what this process does.
            seat: among the experiments on several hosts; None for one host, which this process measures.
            clock: tells the time.
        """
        self.clock = clock
        self.setup = self._begun_with = setup
        self.plan = plan
        self.storage = storage
        self.optimizer = optimizer
        self.progress = progress
        self.host = "" if seat is None else seat.host
        self.runner = TrialRunner(
            setup=setup, plan=plan, storage=storage, session=session, host=self.host,
            executor=None if seat is None else seat.executor,
        )  # fmt: skip
        self.default = setup.space.default()
        self.hosts = storage.hosts
        """Those for all of which the winner is to hold; None for one, or where any of several will do."""
        self.shared = Shared() if seat is None else seat.shared
        self.trials, self.pending = storage.known.ended, storage.known.running
        """Those that have ended, and those that others are at; the same lists for all hosts."""
        self._follow()
        if seat is None or not (self.trials or self.pending):
            self._read_trials()
        self._plans = storage.plans()
        self._may_lag = False
        self.schedule = Schedule(self)

    def settle(self, fact: Fact[T], value: T) -> None:
        """Settle by what trials are compared from now on, or under which load and for how long they are made.

        What was measured under another load, or in shorter windows, cannot be compared with what follows.
        """
        self.storage.remember(fact, value)
        if isinstance(value, MovedLoad | Pace):
            self.storage.known.forget_before(value.since)
            self._follow()
        self.trials[:] = map(self.storage.judge, self.trials)
        self.shared.ranked = None

    def _follow(self) -> None:
        """Take the load and the windows as they were settled."""
        moved, pace = self.storage.recall(MOVED_LOAD), self.storage.recall(PACE)
        self.setup = self._begun_with if moved is None else self._begun_with.move(moved)
        if pace is not None:
            self.setup, self.plan = self.setup.at_pace(pace), self.plan.at_pace(pace.window_s)
        self.runner.setup, self.runner.plan = self.setup, self.plan

    # One trial more

    def enter(self, stage: str, done: int, total: int) -> None:
        """Report how far a stage is."""
        self._may_lag = stage == "search" and self.count_ahead() > 1
        self.schedule.enter(stage, done, total)
        self.progress.stage(stage, done, total)

    def announce(self, role: Role, label: str) -> None:
        """Report that a trial begins, and how long it and all that follows will take."""
        self.progress.trial_begins(role, label)
        self.progress.time_left(self.schedule.expected_left_s())
        self.schedule.begin_trial()

    def make(
        self,
        opening: Opening,
        *,
        judges: Judges = NO_JUDGES,
        suggest_s: float = 0.0,
        plan: Plan | None = None,
        load: Load | None = None,
    ) -> Trial:
        """Make one trial, keep it and report it."""
        changed = len(self.setup.space.changes(opening.config))
        label = opening.arm or f"{changed} setting{'' if changed == 1 else 's'} changed"
        self.announce(opening.role, label)
        constraints = self.setup.settings.constraints
        judges = replace(
            _as_compared(judges, self.storage),
            spread=self.ranking().noise.sigma_window,
            baseline=self._baseline_facts(opening),
            # Where what bears the load is sought, the default need not.
            allow_no_response=opening.arm == DEFAULT_ARM
            and any(each.default_may_fail for each in constraints),
        )
        self._plans = self.storage.plans()
        trial = self._give_up(opening) or self.runner.make(
            opening, judges=judges, value=self._log_ratio, suggest_s=suggest_s, plan=plan, load=load,
            baselines=self.baselines(),
        )  # fmt: skip
        is_changed = self._catch_up()
        self.schedule.end_trial(trial)
        self._report(trial)
        self._wait_out_noise()
        if is_changed:
            raise PlanChanged
        return trial

    def make_under(self, check_loads: Sequence[CheckLoad], opening: Opening, *, window_s: float) -> Trial:
        """Make one trial under check loads, keep it and report it; it never enters the model."""
        self.announce(opening.role, opening.arm)
        self._plans = self.storage.plans()
        trial = self._give_up(opening) or self.runner.make_under(check_loads, opening, window_s=window_s)
        is_changed = self._catch_up()
        self.progress.trial_ends(trial, None)
        if is_changed:
            raise PlanChanged
        return trial

    def _give_up(self, opening: Opening) -> Trial | None:
        """Return a failed trial of what may not be begun a third time; None of what may."""
        is_default = dict(opening.config) == dict(self.default)
        if is_default or may_begin(self.storage, [*self.trials, *self.pending], opening.config):
            return None
        constraints, session = self.setup.settings.constraints, self.runner.session
        return give_up(
            self.storage, opening, space=self.setup.space, constraints=constraints, session=session,
            host=self.host,
        )  # fmt: skip

    # Others

    @property
    def is_alone(self) -> bool:
        """Return whether nothing was measured on another host so far, nor is now."""
        return all(trial.host == self.host for trial in (*self.trials, *self.pending))

    def is_taken(self, role: Role, block: int) -> bool:
        """Return whether another worker is at a block of trials."""
        return any(trial.role is role and trial.block == block for trial in self.pending)

    def count_ahead(self) -> int:
        """Return how many configurations are to be chosen at once, so that nobody waits long for the next.

        One, where few are at work or trials take long; never so many that much is learned in between.
        """
        workers = 1 + len(self.pending)
        deciding_s = self.shared.rank_s + self.shared.suggest_s
        wanted = workers * deciding_s / (DECIDING_SHARE * self.schedule.mean_cost_s())
        return max(1, min(workers // AT_LEAST_WORKERS, math.ceil(wanted)))

    def wait_for_others(self) -> bool:
        """Let others end what they are at; return False when they are at nothing.

        Raises:
            PlanChanged: one of them has ended the stage.
        """
        if not self.pending:
            return False
        before = self._seen
        while self._seen == before:
            self.wait_a_while()
        return True

    def wait_a_while(self) -> None:
        """Let others decide for a moment. Raises PlanChanged where one of them has ended the stage."""
        self._plans = self.storage.plans()
        hosts = len({trial.host for trial in self.trials})
        self.shared.turn.wait(LOOK_AGAIN_S * max(1.0, hosts / LOOKING))
        if self._catch_up():
            raise PlanChanged

    @property
    def _seen(self) -> tuple[int, list[int]]:
        """How many trials have ended, and which are being made."""
        return len(self.trials), [trial.number for trial in self.pending]

    def _catch_up(self) -> bool:
        """Follow what others have settled while they had the turn; return whether they settled anything."""
        before, self._plans = self._plans, self.storage.plans()
        if before == self._plans:
            return False
        self._follow()
        return True

    def _read_trials(self) -> None:
        """Read all trials; those that were cut off count when all their windows are there."""
        trials, constraints = self.storage.trials(), self.setup.settings.constraints
        baselines = [trial for trial in trials if trial.arm == DEFAULT_ARM and trial.counts]
        self.trials[:] = [trial for trial in trials if trial.state is not State.RUNNING]
        for trial in trials:
            if trial.state is State.RUNNING:
                self.storage.settle(
                    trial,
                    least_windows=_least_windows(self.storage, self.plan, trial.role),
                    constraints=constraints,
                    baselines=[baseline for baseline in baselines if baseline.host == trial.host],
                )

    def _baseline_facts(self, opening: Opening) -> BaselineFacts:
        """Return what the default showed last; its own trials are not excused by that."""
        if opening.arm == DEFAULT_ARM:
            return HEALTHY
        faults = [
            window.counters.get("server_faults_major", 0.0) / window.duration_s
            for baseline in self.baselines()
            for window in baseline.valid_windows
        ]
        last = [trial for trial in as_baselines(self.own_trials()) if trial.role is Role.BASELINE][-1:]
        return BaselineFacts(
            is_healthy=all(trial.state is not State.FAILED for trial in last),
            major_faults_per_s=median(faults) if faults else 0.0,
        )

    def _log_ratio(self, trial: Trial) -> float | None:
        """Return the log speedup of a trial as it is known when the trial ends."""
        posterior = self.ranking().posterior
        if trial.log_value is None or posterior is None:
            return 0.0 if trial.role is Role.BASELINE else None
        return posterior.speedups([trial])[0].log_ratio

    def _report(self, trial: Trial) -> None:
        ranking = self.ranking()
        self.progress.trial_ends(trial, self._speedup(trial))
        if declines(trial.valid_windows, spread=ranking.noise.sigma_window):
            self.progress.note(f"goodput fell throughout trial {trial.number}")
        likely = [entry for entry in ranking.entries if entry.p_feasible >= LIKELY]
        self.progress.leaders([self._lead(entry) for entry in likely[:LEADERS]])

    def _speedup(self, trial: Trial) -> Speedup | None:
        """Return the speedup of a trial, which may have been made after all were ranked."""
        ranking = self.ranking()
        if not self._may_lag or ranking.posterior is None or not trial.counts:
            return ranking.speedups.get(trial.number)
        return ranking.speedups.get(trial.number) or ranking.posterior.speedups([trial])[0]

    def _lead(self, entry: Entry) -> Leader:
        changes = self.setup.space.changes(entry.config)
        return Leader(changes=changes, speedup=entry.posterior, trials=entry.trials)

    def _wait_out_noise(self) -> None:
        """Wait until the host spoils no more windows. Raises TooNoisy when that takes too long."""
        plan, retries = self.plan, self.runner.retries
        provable = detectable_gain(self.ranking().noise, pairs=plan.pairs, windows=plan.windows[1])
        left_s = max(LEAST_PAUSE_S, self.schedule.time_left_s())
        noisy = retries.complain(provable_gain=provable, pause_s=left_s)
        if noisy is None:
            return
        if noisy.pause_s is None:
            raise TooNoisy(f"{noisy.found} {noisy.advice}")
        self.progress.note(f"{noisy.found} {noisy.advice}")
        self.progress.waits(noisy.pause_s)
        moment = self.clock.monotonic()
        is_quiet = self.runner.wait_until_quiet(noisy.pause_s)
        rested_s = self.clock.monotonic() - moment
        self.schedule.rest(rested_s)
        retries.rested(rested_s)
        if not is_quiet:
            raise TooNoisy(f"{noisy.found} The noise lasted longer than {noisy.pause_s:.0f} s. {LEAVE}")
        if self._catch_up():
            raise PlanChanged

    # What is known

    def ranking(self) -> Ranking:
        """Return what all trials so far say; computed once for each trial, since many ask.

        In the search of many workers, what most of the trials so far say.
        """
        if self.shared.ranked is None or not self._is_recent(self.shared.ranked[0]):
            return self.rank()
        return self.shared.ranked[1]

    def rank(self) -> Ranking:
        """Return what all trials so far say, those that ended just now included."""
        if self.shared.ranked is None or self.shared.ranked[0] != self.trials:
            moment = self.clock.monotonic()
            ranking = rank(self.setup.space, self.trials, self.setup.settings.constraints, self.hosts)
            self.shared.ranked = [*self.trials], ranking
            self.shared.rank_s = self.clock.monotonic() - moment
        return self.shared.ranked[1]

    def _is_recent(self, ranked: Sequence[Trial]) -> bool:
        """Return whether these trials are all, or enough to judge by where decisions have to be quick."""
        if ranked == self.trials:
            return True
        is_known = any(
            trial.host == self.host and trial.arm == DEFAULT_ARM and trial.counts for trial in ranked
        )
        return self._may_lag and is_known and len(self.trials) <= LAG * len(ranked)

    def own_trials(self) -> list[Trial]:
        """Return the trials that were made on this host; all of them in a study of one."""
        return [trial for trial in self.trials if trial.host == self.host]

    def pending_under_load(self) -> list[Trial]:
        """Return the trials that other workers are at and the model will learn from."""
        return [
            trial for trial in self.pending if trial.role in LEARNS_FROM and trial.role is not Role.BASELINE
        ]

    def baselines(self) -> list[Trial]:
        """Return the trials of the default on this host that are measurements."""
        return [
            trial for trial in as_baselines(self.own_trials()) if trial.role is Role.BASELINE and trial.counts
        ]

    def count_baselines(self) -> int:
        """Return how many trials of the default there are on all hosts, those that others are at included."""
        at_work = sum(trial.role is Role.BASELINE for trial in self.pending)
        return at_work + sum(
            trial.role is Role.BASELINE and trial.counts for trial in as_baselines(self.trials)
        )

    def random(self, purpose: str) -> Random:
        """Return a random source that is the same in every session of the study."""
        return Random(f"{self.setup.settings.seed}/{purpose}")  # noqa: S311 - no secret


def _as_compared(judges: Judges, storage: Storage) -> Judges:
    """Let judges see windows as the study compares them."""
    compared = partial(replace, metric=storage.metric, blend=storage.blend)
    return replace(
        judges,
        judge_warm_up=lambda window: judges.judge_warm_up(compared(window)),
        prune=lambda windows: judges.prune([compared(window) for window in windows]),
    )


def _least_windows(storage: Storage, plan: Plan, role: Role) -> int:
    """Return how many windows make a trial of a role whole."""
    if role is Role.CONFIRM:
        confirmation = storage.recall(CONFIRMATION)
        return confirmation.windows if confirmation else 1
    if role is Role.ROBUSTNESS:
        checks = storage.recall(ROBUSTNESS) or ()
        return max((len(each.check_loads) for each in checks), default=1)
    return 1 if role is Role.LATENCY else plan.windows[1]
