"""Measures configurations of one or several studies against each other, in interleaved blocks of starts."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial

from tuner.campaign.blocks import measure_blocks
from tuner.campaign.prepare import Setup
from tuner.campaign.progress import Progress
from tuner.campaign.schedule import cost_s
from tuner.campaign.start_runner import Starter
from tuner.commands.contests.compare import ComparedMetric
from tuner.commands.contests.interleaved import OF_THE_LOAD, start_s
from tuner.commands.session import name_session
from tuner.measure.garbage_collection import short_collections
from tuner.measure.gates import RetryBudget
from tuner.ports import Config
from tuner.records import Role, Start, State
from tuner.report.contest import CONTESTS, Contest, count_blocks, gather_contest
from tuner.report.wording import say_duration
from tuner.space import Space
from tuner.statistics.arms.faults import find_failure
from tuner.study.databases.storage_url import sqlite_url
from tuner.study.facts import CONTEST, FINGERPRINT, ContestPlan
from tuner.study.folder import make_folder, require_own_database
from tuner.study.open_storage import open_storage
from tuner.study.presets import PRESETS, Plan
from tuner.study.storage import Opening, Storage

BLOCKS: Mapping[str, int] = {"quick": 8, "standard": 12, "thorough": 20}
"""Under each preset, when nothing else is asked. Their number is settled before the first: who stops when the
intervals look good has other intervals."""


def hold_contest(
    planned: ContestPlan,
    setups: Mapping[str, Setup],
    *,
    maximized: ComparedMetric,
    preset: str,
    blocks: int | None = None,
    progress: Progress,
) -> Contest:
    """Measure the blocks that are missing, or read a contest that has them all.

    Its starts are kept in a storage of their own in the folder of the first study, from which no search
    learns. Whoever calls this holds the locks of all studies.

    Args:
        planned: the entrants.
        setups: of each study, by its name.
        maximized: what is compared.
        preset: for how long each start is loaded.
        blocks: how many there are to be; by default 8, with longer presets 12 or 20.
        progress: told what happens.

    Raises:
        TargetError: the machine cannot run it, or is too noisy.
    """
    plan = PRESETS[preset].under(setups[planned.studies[0]].settings.load.connections)
    storage = _open(planned, setups, plan)
    maximized.tell(storage)
    storage.remember(CONTEST, planned)
    holding = Holding(
        planned=planned, setups=setups, storage=storage, plan=plan, blocks=blocks or BLOCKS[preset],
        progress=progress,
    )  # fmt: skip
    holding.measure()
    settings = {name: setup.settings for name, setup in setups.items()}
    return gather_contest(settings, {name: setup.space for name, setup in setups.items()}, storage)


def say_lacks(space: Space, config: Config) -> tuple[str, ...]:
    """Return what an entrant holds less than the default, a sentence for each."""
    return tuple(f"it holds less than the default: {lack}" for lack in space.lacks(config))


def expect_s(entrants: int, preset: str, blocks: int | None = None) -> float:
    """Return the seconds that a contest is expected to take before anything was measured."""
    return entrants * (blocks or BLOCKS[preset]) * start_s(PRESETS[preset])


def _open(planned: ContestPlan, setups: Mapping[str, Setup], plan: Plan) -> Storage:
    """Open the storage of a contest; the same contest on the same machine has the same one."""
    first = setups[planned.studies[0]]
    definition = first.settings.definition(first.space)
    key = {
        "entrants": [(each.arm, dict(each.config)) for each in planned.entrants],
        "machines": [asdict(setup.fingerprint) for setup in setups.values()],
        "threads": first.load.shape.threads,
        "cpus": [sorted(first.placement.server_cpus), sorted(first.placement.generator_cpus)],
        "windows": [plan.warmup_s, plan.window_s, plan.windows[1]],
        "load": {part: definition[part] for part in OF_THE_LOAD if part in definition},
    }
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:10]
    folder = first.settings.folder / CONTESTS
    make_folder(folder)
    database = folder / f"{'-'.join(planned.studies)[:80]}-{digest}.db"
    require_own_database(database)
    storage = open_storage(sqlite_url(database), first.settings.name)
    storage.remember(FINGERPRINT, first.fingerprint)
    return storage


@dataclass(kw_only=True)
class Holding:
    """A contest while it is measured."""

    planned: ContestPlan
    setups: Mapping[str, Setup]
    storage: Storage
    plan: Plan
    blocks: int
    progress: Progress
    starts: list[Start] = field(init=False)
    starters: Mapping[str, Starter] = field(init=False)

    def __post_init__(self) -> None:
        """Take the contest up where it was left."""
        retries, session = RetryBudget(), name_session()
        self.starters = {
            name: Starter(setup=setup, plan=self.plan, storage=self.storage, session=session, retries=retries)
            for name, setup in self.setups.items()
        }
        self.starts = [
            self.storage.settle(start, least_windows=self.plan.windows[1], constraints=(), controls=())
            if start.state is State.RUNNING
            else start
            for start in self.storage.starts()
        ]

    @property
    def done(self) -> int:
        """Return how many blocks there are."""
        return count_blocks(self.planned, self.starts)

    def measure(self) -> None:
        """Measure the blocks that are missing."""
        if not self._choose({}):
            return
        left_s = (self.blocks - self.done) * len(self.planned.entrants) * self.expected_s()
        self.progress.note(
            f"{len(self.planned.entrants)} configurations against each other in {self.blocks} blocks of "
            f"fresh starts, about {say_duration(left_s)}"
        )
        first = max((start.block for start in self.starts if start.block is not None), default=-1) + 1
        seed = f"{self._first.settings.seed}/contest"
        with ExitStack() as held:
            for setup in self.setups.values():
                held.enter_context(setup.target.hold(self.progress.note))
            held.enter_context(short_collections())
            rest = partial(next(iter(self.starters.values())).sit_out_noise, self.progress.note)
            measure_blocks(self._choose, self._make, seed=seed, first=first, wait_until_quiet=rest)

    @property
    def _first(self) -> Setup:
        return self.setups[self.planned.studies[0]]

    def expected_s(self) -> float:
        """Return the seconds that a start is expected to take."""
        costs = [cost_s(start) for start in self.starts if start.counts]
        return sum(costs) / len(costs) if costs else start_s(self.plan)

    def _choose(self, failed: Mapping[str, str]) -> Sequence[str]:
        """Return the arms of the next block; none where all blocks are there, or a single arm is left."""
        arms = [each.arm for each in self.planned.entrants]
        live = [arm for arm in arms if arm not in failed and find_failure(arm, self.starts) is None]
        return live if self.done < self.blocks and len(live) > 1 else ()

    def _make(self, arm: str, block: int) -> Start:
        entrant = next(each for each in self.planned.entrants if each.arm == arm)
        self.progress.stage("contest", self.done, self.blocks)
        self.progress.start_begins(Role.CONTEST, arm)
        left = (self.blocks - self.done) * len(self.planned.entrants)
        self.progress.time_left(left * self.expected_s())
        opening = Opening(role=Role.CONTEST, config=entrant.config, arm=arm, block=block)
        self.starts.append(self.starters[entrant.study].make(opening))
        self.progress.start_ends(self.starts[-1], None)
        return self.starts[-1]
