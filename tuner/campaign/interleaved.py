"""Experiments beside a study's campaign: arms in interleaved blocks of trials, in a storage of their own.

`compare`, `versus`, `sweep`, `curve`, `gate` and `verify` name their arms, and give a rule that chooses those
of the next block by all trials so far. Everything else is the same for all of them, and stands here.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from tuner.campaign.blocks import Order, measure_blocks
from tuner.campaign.prepare import Setup
from tuner.campaign.progress import UNKNOWN, Progress
from tuner.campaign.schedule import cost_s
from tuner.campaign.trial_runner import TrialRunner, name_session
from tuner.errors import UsageError
from tuner.measure.garbage_collection import short_collections
from tuner.measure.validity import RetryBudget
from tuner.measure.window import Load
from tuner.ports import Clock, Config
from tuner.records import Role, State, Trial
from tuner.statistics.arms.faults import count_whole_blocks
from tuner.study.databases.storage_url import sqlite_url
from tuner.study.facts import FINGERPRINT
from tuner.study.folder import make_folder, require_own_database
from tuner.study.open_storage import open_storage
from tuner.study.presets import Plan
from tuner.study.storage import Opening, Storage

LEAST_BLOCKS = 2
"""Without a second block nobody knows how noisy the host is."""
DEPLOY_S = 1.0
"""What a server is expected to take until it is ready, before one was started."""
WINDOW_COST_S = 0.1
"""What a window costs beside its length."""
OF_THE_LOAD = ("servers", "load", "loads", "load.command", "load.result", "load.script", "content")
"""Parts of a study's definition by which the trials of one can be told apart from those of another."""

Rule = Callable[[Sequence[Trial], Mapping[str, str]], Sequence[str]]
"""Chooses the arms of the next block by all trials so far, and by the arms that failed with the reason; none
ends the experiment."""


def open_beside(
    setup: Setup, plan: Plan, *, folder: str, name: str, asked: Mapping[str, object] | None = None
) -> Storage:
    """Open a storage beside a study's; the same question on the same machine has the same one.

    Args:
        setup: of the study.
        plan: how long each trial is loaded.
        folder: in the study's own.
        name: of the file, or its beginning.
        asked: what is measured, and on which machines; None for a storage that nobody resumes.
    """
    settings = setup.settings
    if asked is not None:
        definition = settings.definition(setup.space)
        key = {
            **asked,
            "threads": setup.load.shape.threads,
            "cpus": [sorted(setup.placement.server_cpus), sorted(setup.placement.generator_cpus)],
            "windows": [plan.warmup_s, plan.window_s, plan.windows[1]],
            "load": {part: definition[part] for part in OF_THE_LOAD if part in definition},
        }
        name += f"-{hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:10]}"
    database = settings.folder / folder / f"{name}.db"
    make_folder(database.parent)
    require_own_database(database)
    storage = open_storage(sqlite_url(database), settings.name)
    storage.remember(FINGERPRINT, setup.fingerprint)
    return storage


def trial_s(plan: Plan) -> float:
    """Return the seconds that a trial is expected to take before one was made."""
    return DEPLOY_S + plan.warmup_s + plan.windows[1] * (plan.window_s + WINDOW_COST_S)


def refuse_too_little_time(arms: int, what: str, plan: Plan, minutes: float) -> None:
    """Raise UsageError when the time does not do for the least blocks, before anything is measured."""
    each_s = trial_s(plan)
    least = LEAST_BLOCKS * arms * each_s / 60
    if minutes < least:
        raise UsageError(
            f"minutes: {minutes:g} minutes are too few for {arms} {what}, because a trial takes about "
            f"{each_s:.1f} s. Allow at least {math.ceil(10 * least) / 10:g} minutes, give fewer {what}, or "
            "use --preset quick."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """What is measured under the name of an arm."""

    setup: Setup
    config: Config
    label: str = ""
    """How it is shown while it is measured; the name of the arm by default."""
    load: Load | None = None
    """Instead of the study's."""


@dataclass(kw_only=True)
class Interleaved:
    """Arms in interleaved blocks while they are measured. Whoever uses it holds the locks of the studies."""

    treatments: Mapping[str, Treatment]
    """By the names of their arms."""
    storage: Storage
    plan: Plan
    progress: Progress
    role: Role
    choose: Rule
    seed: str
    """Of the order within the blocks."""
    order: Order | None = None
    """Of the arms in each block; by default at random."""
    stage: str = ""
    """Its name while it is measured; that of the role by default."""
    blocks: int = UNKNOWN
    """How many are planned, where a number is."""
    minutes: float | None = None
    """Wall time, what was measured before included; None without a limit."""
    clock: Clock = field(default_factory=lambda: time)
    trials: list[Trial] = field(init=False)
    _runners: Mapping[int, TrialRunner] = field(init=False)
    _deadline_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Take up what was left."""
        retries, session = RetryBudget(), name_session()
        setups = {id(each.setup): each.setup for each in self.treatments.values()}
        self._runners = {
            key: TrialRunner(
                setup=setup, plan=self.plan, storage=self.storage, session=session, retries=retries
            )
            for key, setup in setups.items()
        }  # fmt: skip
        self.trials = [self._settle(trial) for trial in self.storage.trials()]
        budget_s = math.inf if self.minutes is None else 60 * self.minutes
        self._deadline_s = self.clock.monotonic() + budget_s - sum(map(cost_s, self.trials))

    def _settle(self, trial: Trial) -> Trial:
        """Return a trial as it ended; one that was cut off counts when all its windows are there."""
        if trial.state is not State.RUNNING:
            return trial
        constraints = self.treatments[trial.arm].setup.settings.constraints
        return self.storage.settle(
            trial, least_windows=self.plan.windows[1], constraints=constraints, baselines=()
        )

    @property
    def is_open(self) -> bool:
        """Return whether something is left to measure, and time enough for a block of it."""
        arms = self.choose(self.trials, {})
        return bool(arms) and self.has_time(len(arms))

    @property
    def done(self) -> int:
        """Return how many blocks hold every arm that did not fail."""
        return count_whole_blocks(self.trials, list(self.treatments))

    def expected_s(self) -> float:
        """Return the seconds that a trial is expected to take."""
        costs = [cost_s(trial) for trial in self.trials if trial.counts]
        return sum(costs) / len(costs) if costs else trial_s(self.plan)

    def left_s(self) -> float:
        """Return the seconds that are left: of the time, or for the planned blocks."""
        if self.minutes is not None:
            return max(0.0, self._deadline_s - self.clock.monotonic())
        return (self.blocks - self.done) * len(self.treatments) * self.expected_s()

    def has_time(self, trials: int = 1) -> bool:
        """Return whether so many more trials are likely to end in time."""
        return self._deadline_s - self.clock.monotonic() >= trials * self.expected_s()

    def measure(self) -> Mapping[str, str]:
        """Hold the targets, and measure blocks until rule or time ends it; return the arms that failed.

        Raises:
            TargetError: a machine cannot run it, or is too noisy.
        """
        # One that was cut off is not resumed: hours may lie between.
        first = max((trial.block for trial in self.trials if trial.block is not None), default=-1) + 1
        with ExitStack() as held:
            for runner in self._runners.values():
                held.enter_context(runner.setup.target.hold(self.progress.note))
            held.enter_context(short_collections())
            return measure_blocks(
                lambda failed: self.choose(self.trials, failed), self._make, seed=self.seed,
                order=self.order, first=first, has_time=self.has_time,
                wait_until_quiet=self._wait_until_quiet,
            )  # fmt: skip

    def _wait_until_quiet(self) -> bool:
        """Wait for other programs to leave the host alone, in time that does not count."""
        begun_s = self.clock.monotonic()
        is_quiet = next(iter(self._runners.values())).sit_out_noise(self.progress.waits)
        self._deadline_s += self.clock.monotonic() - begun_s
        return is_quiet

    def _make(self, arm: str, block: int) -> Trial:
        """Make one trial, keep it and report it."""
        treatment = self.treatments[arm]
        opening = Opening(role=self.role, config=treatment.config, arm=arm, block=block)
        done = self.done if self.blocks else len(self.trials)
        self.progress.stage(self.stage or self.role.label, done, self.blocks)
        self.progress.trial_begins(self.role, treatment.label or arm)
        self.progress.time_left(self.left_s())
        trial = self._runners[id(treatment.setup)].make(opening, load=treatment.load)
        self.trials.append(trial)
        self.progress.trial_ends(trial, None)
        return trial
