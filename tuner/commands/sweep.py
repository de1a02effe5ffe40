"""Measures the response curve of one parameter: interleaved blocks of fresh starts at several values."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from pathlib import Path

from tuner.campaign.blocks import measure_blocks
from tuner.campaign.experiment import cost_s
from tuner.campaign.prepare import Setup
from tuner.campaign.progress import UNKNOWN, Progress, Silence
from tuner.campaign.start_runner import Starter
from tuner.commands.compare import prepare_as_begun
from tuner.commands.session import name_session
from tuner.commands.sweep_plan import plan_sweep
from tuner.errors import TargetError, UsageError
from tuner.interrupts import signals_interrupt
from tuner.measure.garbage_collection import short_collections
from tuner.ports import Clock, Scalar
from tuner.records import Role, Start, State
from tuner.report.sweep import SWEEPS, Sweep, gather_sweep
from tuner.report.wording import say_duration
from tuner.space.parameters import identifier
from tuner.statistics.ranking import DEFAULT_ARM
from tuner.statistics.sweep import Sweeping, judge_sweep
from tuner.study import Study
from tuner.study.facts import FINGERPRINT, SWEEP, SweepPlan
from tuner.study.folder import make_folder, require_own_database
from tuner.study.lock import locked
from tuner.study.presets import PRESETS, Plan
from tuner.study.storage import Opening, Storage, open_storage
from tuner.study.storage_url import sqlite_url

MINUTES: Mapping[str, float] = {"quick": 4.0, "standard": 20.0, "thorough": 60.0}
"""Of a sweep under each preset, when nothing else is asked."""
LEAST_BLOCKS = 2
"""Without a second block nobody knows how noisy the host is."""
DEPLOY_S = 1.0
"""What a server is expected to take until it is ready, before one was started."""
WINDOW_COST_S = 0.1
"""What a window costs beside its length."""
OF_THE_LOAD = ("servers", "load", "load.command", "load.result", "load.script", "content")
"""Parts of a study's definition by which the starts of a sweep can be told apart from another one's."""


def sweep(  # noqa: PLR0913 - given by name, and most are left out
    settings: Study,
    parameter: str,
    *,
    values: Sequence[Scalar] | None = None,
    around: str | None = None,
    at: str = DEFAULT_ARM,
    minutes: float | None = None,
    preset: str | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Measure the response curve of one parameter, go on with an interrupted one, or read a finished one.

    Its starts are kept in a storage of their own beside the study's, from which no search learns.

    Args:
        settings: the study whose space and load are used.
        parameter: what is varied; what follows from it follows.
        values: at which it is measured; by default a grid over its range, or all its choices.
        around: `default` or `winner`, for a finer grid around the value that it has there.
        at: `default` or `winner`: what the other settings are.
        minutes: wall time of the whole sweep; by default 4, with longer presets 20 or 60.
        preset: for how long each start is loaded; the study file's own by default.
        progress: told what happens.

    Raises:
        UsageError: there is no such parameter, or a value that is out of its range or that a rule forbids.
        TargetError: the machine cannot run it, or the control failed twice in a row.
    """
    progress = progress or Silence()
    name = preset or settings.preset
    with locked(settings), signals_interrupt():
        setup, maximized = prepare_as_begun(settings)
        planned = plan_sweep(settings, setup, parameter, values=values, around=around, at=at)
        plan, budget = PRESETS[name], minutes or MINUTES[name]
        _refuse_too_little_time(planned, plan, budget)
        storage = _open(settings, setup, planned, plan)
        maximized.tell(storage)
        measuring = Measuring(
            setup=setup, planned=planned, storage=storage, plan=plan, minutes=budget, progress=progress
        )
        if measuring.has_time_for_a_block():
            measuring.announce()
            with setup.target.hold(progress.note), short_collections():
                measuring.measure()
    return gather_sweep(settings, setup.space, storage)


def _open(settings: Study, setup: Setup, planned: SweepPlan, plan: Plan) -> Storage:
    """Open the storage of a sweep; the same sweep on the same machine has the same one."""
    definition = settings.definition(setup.space)
    key = {
        "plan": asdict(planned), "machine": asdict(setup.fingerprint), "threads": setup.load.shape.threads,
        "cpus": [sorted(setup.placement.server_cpus), sorted(setup.placement.generator_cpus)],
        "windows": [plan.warmup_s, plan.window_s, plan.windows[1]],
        "load": {part: definition[part] for part in (*OF_THE_LOAD, "loads") if part in definition},
    }  # fmt: skip
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:10]
    folder = settings.folder / SWEEPS
    make_folder(folder)
    database: Path = folder / f"{identifier(planned.parameter)}-{digest}.db"
    require_own_database(database)
    storage = open_storage(sqlite_url(database), settings.name)
    storage.remember(SWEEP, planned)
    storage.remember(FINGERPRINT, setup.fingerprint)
    return storage


def start_s(plan: Plan) -> float:
    """Return the seconds that a start is expected to take before one was made."""
    return DEPLOY_S + plan.warmup_s + plan.windows[1] * (plan.window_s + WINDOW_COST_S)


def _refuse_too_little_time(planned: SweepPlan, plan: Plan, minutes: float) -> None:
    """Raise UsageError when the time does not do for the least blocks, before anything is measured."""
    values, each_s = len(planned.values), start_s(plan)
    least = LEAST_BLOCKS * values * each_s / 60
    if minutes < least:
        raise UsageError(
            f"minutes: {minutes:g} are too few for {values} values, of which each start takes about "
            f"{each_s:.1f} s. Give at least {ceil(10 * least) / 10:g}, fewer values, or --preset quick."
        )


@dataclass(kw_only=True)
class Measuring:
    """A sweep while it is measured."""

    setup: Setup
    planned: SweepPlan
    storage: Storage
    plan: Plan
    progress: Progress
    minutes: float
    clock: Clock = time
    starts: list[Start] = field(init=False)
    starter: Starter = field(init=False)
    deadline_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Take the sweep up where it was left."""
        self.starter = Starter(setup=self.setup, plan=self.plan, storage=self.storage, session=name_session())
        constraints = self.setup.settings.constraints
        self.starts = [
            self.storage.settle(
                start, least_windows=self.plan.windows[1], constraints=constraints, controls=()
            )
            if start.state is State.RUNNING
            else start
            for start in self.storage.starts()
        ]
        self.deadline_s = self.clock.monotonic() + 60 * self.minutes - sum(map(cost_s, self.starts))

    def expected_s(self) -> float:
        """Return the seconds that a start is expected to take."""
        costs = [cost_s(start) for start in self.starts if start.counts]
        if costs:
            return sum(costs) / len(costs)
        return start_s(self.plan)

    def time_left_s(self) -> float:
        return max(0.0, self.deadline_s - self.clock.monotonic())

    def has_time(self) -> bool:
        """Return whether another start is likely to end in time."""
        return self.time_left_s() >= self.expected_s()

    def has_time_for_a_block(self) -> bool:
        """Return whether something is left to tell, and time enough to tell it."""
        wanted = self.judge().wanted()
        return bool(wanted) and self.time_left_s() >= len(wanted) * self.expected_s()

    def judge(self) -> Sweeping:
        return judge_sweep(
            self.planned, self.starts, self.setup.settings.constraints, seed=self.setup.settings.seed
        )

    def announce(self) -> None:
        """Say what is to come and how long it takes."""
        values, left_s = len(self.planned.values), self.time_left_s()
        self.progress.note(
            f"{self.planned.parameter}: {values} values in blocks of fresh starts, about "
            f"{int(left_s / self.expected_s())} starts in all, {say_duration(left_s)} at the most"
        )
        for said in self._doubts():
            self.progress.note(said)

    def _doubts(self) -> list[str]:
        """Return what makes a sweep less telling than it may seem."""
        space, settings = self.setup.space, self.setup.settings
        inert = {**space.inert, **space.inert_but_tuned}.get(self.planned.parameter)
        said = [f"{self.planned.parameter} cannot act under this load: {inert}"] if inert else []
        if settings.objective.cost is not None:
            said.append(f"of two objectives the first is swept; {settings.objective.cost} is shown beside it")
        return said

    def measure(self) -> None:
        """Measure block after block until nothing is left to tell or the time is over.

        Raises:
            TargetError: the control failed twice in a row.
        """
        control = self.planned.arms[self.planned.control]
        blocks = [start.block for start in self.starts if start.block is not None]
        failed = measure_blocks(
            self._choose, self._make, seed=f"{self.setup.settings.seed}/{self.planned.parameter}",
            first=max(blocks, default=-1) + 1, has_time=self.has_time,
        )  # fmt: skip
        if control in failed:
            raise TargetError(f"sweep: the {self.planned.at} failed twice in a row. {failed[control]}")

    def _choose(self, failed: Mapping[str, str]) -> Sequence[str]:
        arms = self.planned.arms
        if arms[self.planned.control] in failed:
            return ()
        return [arms[index] for index in self.judge().wanted() if arms[index] not in failed]

    def _make(self, arm: str, block: int) -> Start:
        index = self.planned.arms.index(arm)
        name, value = self.planned.parameter, self.planned.values[index]
        self.progress.stage("sweep", len(self.starts), UNKNOWN)
        self.progress.start_begins(Role.SWEEP, f"{name} {self.setup.space.show(name, value)}")
        self.progress.time_left(self.time_left_s())
        opening = Opening(role=Role.SWEEP, config=self.planned.configs[index], arm=arm, block=block)
        self.starts.append(self.starter.make(opening))
        self.progress.start_ends(self.starts[-1], None)
        return self.starts[-1]
