"""What sweeps and load curves share: a storage beside the study's, and starts in blocks within a time."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, TypeVar

from tuner.campaign.prepare import Setup
from tuner.campaign.progress import UNKNOWN, Progress
from tuner.campaign.schedule import cost_s
from tuner.campaign.start_runner import Starter
from tuner.commands.session import name_session
from tuner.errors import UsageError
from tuner.measure.window import Load
from tuner.ports import Clock
from tuner.records import Start, State
from tuner.study import Study
from tuner.study.databases.storage_url import sqlite_url
from tuner.study.facts import FINGERPRINT, Fact
from tuner.study.folder import make_folder, require_own_database
from tuner.study.open_storage import open_storage
from tuner.study.presets import Plan
from tuner.study.storage import Opening, Storage

T = TypeVar("T")

LEAST_BLOCKS = 2
"""Without a second block nobody knows how noisy the host is."""
DEPLOY_S = 1.0
"""What a server is expected to take until it is ready, before one was started."""
WINDOW_COST_S = 0.1
"""What a window costs beside its length."""
OF_THE_LOAD = ("servers", "load", "loads", "load.command", "load.result", "load.script", "content")
"""Parts of a study's definition by which the starts of one can be told apart from those of another."""


def open_beside(
    settings: Study, setup: Setup, plan: Plan, *, folder: str, name: str, fact: Fact[T], asked: T
) -> Storage:
    """Open a storage beside the study's; what is asked again on the same machine has the same one.

    Args:
        settings: the study.
        setup: as prepared.
        plan: how long each start is loaded.
        folder: in the study's own.
        name: the beginning of the file's.
        fact: by which the storage knows what was asked.
        asked: that.
    """
    definition = settings.definition(setup.space)
    key: Mapping[str, Any] = {
        "plan": fact.to_json(asked), "machine": asdict(setup.fingerprint),
        "threads": setup.load.shape.threads,
        "cpus": [sorted(setup.placement.server_cpus), sorted(setup.placement.generator_cpus)],
        "windows": [plan.warmup_s, plan.window_s, plan.windows[1]],
        "load": {part: definition[part] for part in OF_THE_LOAD if part in definition},
    }  # fmt: skip
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:10]
    make_folder(settings.folder / folder)
    database: Path = settings.folder / folder / f"{name}-{digest}.db"
    require_own_database(database)
    storage = open_storage(sqlite_url(database), settings.name)
    storage.remember(fact, asked)
    storage.remember(FINGERPRINT, setup.fingerprint)
    return storage


def start_s(plan: Plan) -> float:
    """Return the seconds that a start is expected to take before one was made."""
    return DEPLOY_S + plan.warmup_s + plan.windows[1] * (plan.window_s + WINDOW_COST_S)


def refuse_too_little_time(arms: int, what: str, plan: Plan, minutes: float) -> None:
    """Raise UsageError when the time does not do for the least blocks, before anything is measured."""
    each_s = start_s(plan)
    least = LEAST_BLOCKS * arms * each_s / 60
    if minutes < least:
        raise UsageError(
            f"minutes: {minutes:g} are too few for {arms} {what}, of which each start takes about "
            f"{each_s:.1f} s. Give at least {ceil(10 * least) / 10:g}, fewer {what}, or --preset quick."
        )


@dataclass(kw_only=True)
class Interleaved:
    """Starts in blocks while they are measured."""

    setup: Setup
    storage: Storage
    plan: Plan
    progress: Progress
    minutes: float
    clock: Clock = time
    starts: list[Start] = field(init=False)
    starter: Starter = field(init=False)
    deadline_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Take up what was left."""
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

    @property
    def next_block(self) -> int:
        """Return the number of the next block. One that was cut off is not gone on with."""
        return max((start.block for start in self.starts if start.block is not None), default=-1) + 1

    def expected_s(self) -> float:
        """Return the seconds that a start is expected to take."""
        costs = [cost_s(start) for start in self.starts if start.counts]
        return sum(costs) / len(costs) if costs else start_s(self.plan)

    def time_left_s(self) -> float:
        return max(0.0, self.deadline_s - self.clock.monotonic())

    def has_time(self, starts: int = 1) -> bool:
        """Return whether so many more starts are likely to end in time."""
        return self.time_left_s() >= starts * self.expected_s()

    def wait_until_quiet(self) -> bool:
        """Wait for other programs to leave the host alone, in time that does not count."""
        begun_s = self.clock.monotonic()
        is_quiet = self.starter.sit_out_noise(self.progress.note)
        self.deadline_s += self.clock.monotonic() - begun_s
        return is_quiet

    def make(self, opening: Opening, label: str, *, load: Load | None = None) -> Start:
        """Make one start, keep it and report it.

        Args:
            opening: the configuration, and why it is measured.
            label: how the start is shown.
            load: instead of the study's.
        """
        self.progress.stage(opening.role.value, len(self.starts), UNKNOWN)
        self.progress.start_begins(opening.role, label)
        self.progress.time_left(self.time_left_s())
        self.starts.append(self.starter.make(opening, load=load))
        self.progress.start_ends(self.starts[-1], None)
        return self.starts[-1]
