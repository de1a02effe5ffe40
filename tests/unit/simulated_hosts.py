"""A study with several simulated hosts in one process: a thread for each, always in the same order.

Each host has a clock of its own, which passes only as it is used. Whoever is furthest behind has the turn
next, once all have come to where they need it; so a study plays as it would on as many machines.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import optuna

from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import (
    SMALL_PLAN,
    SimulatedClock,
    SimulatedHost,
    make_campaign,
    write_study,
)
from tuner.campaign.campaign import run_campaign
from tuner.campaign.experiment import Experiment
from tuner.records import Start
from tuner.space import Space
from tuner.study import Study
from tuner.study.facts import HOSTS, VERDICT
from tuner.study.presets import Plan
from tuner.study.storage import Storage

T = TypeVar("T")


class Turns:
    """Who may decide: one at a time, the one whose clock is furthest behind."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, float] = {}
        self._busy: set[str] = set()
        """Workers that will need the turn, at a time that nobody knows yet."""

    def begin(self, names: Sequence[str]) -> None:
        self._busy.update(names)

    def take(self, name: str, now_s: float) -> None:
        with self._changed:
            self._busy.discard(name)
            self._waiting[name] = now_s
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_next(name))
            del self._waiting[name]
            self._busy.add(name)

    def pass_on(self, name: str, *, for_ever: bool = False) -> None:
        """Let go of the turn; the worker is busy until it takes it again."""
        with self._changed:
            if for_ever:
                self._busy.discard(name)
            self._changed.notify_all()

    def _is_next(self, name: str) -> bool:
        return not self._busy and min(self._waiting, key=lambda each: (self._waiting[each], each)) == name


@dataclass(kw_only=True)
class SimulatedCrew:
    """One worker of several, as `tuner.study.workers.crew.Crew` has it."""

    turns: Turns
    clock: SimulatedClock
    host: str
    at_work_on: set[str]
    worker: str = "simulated"
    is_shared: bool = True

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self.turns.take(self.host, self.clock.now_s)
        try:
            yield
        finally:
            self.at_work_on.discard(self.host)
            self.turns.pass_on(self.host, for_ever=True)

    @contextmanager
    def others_turn(self) -> Iterator[None]:
        self.turns.pass_on(self.host)
        try:
            yield
        finally:
            self.turns.take(self.host, self.clock.now_s)

    def alive(self, trial: int) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def require_turn(self) -> None: ...

    def insist(self, write: Callable[[], T]) -> T:
        return write()

    def silences(self) -> Mapping[int, float | None]:
        return {}

    def find_lost(self, running: Sequence[Start]) -> list[Start]:
        return [start for start in running if start.host == self.host or not self.is_at_work(start.host)]

    def is_at_work(self, host: str) -> bool:
        return host in self.at_work_on

    def is_any_at_work(self) -> bool:
        return bool(self.at_work_on)


@dataclass(kw_only=True)
class Played:
    """A study that came to its end."""

    settings: Study
    storage: Storage
    campaigns: Mapping[str, Experiment] = field(default_factory=dict)
    failures: dict[str, BaseException] = field(default_factory=dict)

    @property
    def verdict(self) -> str | None:
        return self.storage.recall(VERDICT)

    @property
    def experiment(self) -> Experiment:
        """The study as the first host's worker sees it at last."""
        first = next(iter(self.campaigns.values()))
        first._read_starts()
        return first


def write_targets(
    folder: Path, names: Sequence[str], more: str = "", *, optimizer: str = "tpe", seed: int = 1
) -> Study:
    """Write a study of several hosts and load it."""
    hosts = ", ".join(names)
    return write_study(folder, optimizer=optimizer, seed=seed, more=f"targets: [{hosts}]\n{more}")


def play(
    settings: Study,
    hosts: Mapping[str, SimulatedHost],
    *,
    plan: Plan = SMALL_PLAN,
    space: Space | None = None,
    absent: Sequence[str] = (),
) -> Played:
    """Play a study on all its hosts but the absent ones, to its verdict or until all have failed."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kept = optuna.storages.InMemoryStorage()
    turns, at_work_on = Turns(), {name for name in hosts if name not in absent}
    played: Played | None = None
    campaigns: dict[str, Experiment] = {}
    failures: dict[str, BaseException] = {}

    def work(name: str, host: SimulatedHost, storage: Storage) -> None:
        try:
            with storage.at_work():
                storage.claim(replace(FINGERPRINT, host=name), definition={"study": settings.name})
                if settings.hosts is not None and storage.hosts is None:
                    storage.remember(HOSTS, settings.hosts)
                campaigns[name] = make_campaign(
                    settings, host, storage, plan=plan, session=f"on {name}", space=space
                )
                storage.remember(VERDICT, run_campaign(campaigns[name]))
        except BaseException as error:  # noqa: BLE001 - told by whoever waits for it
            failures[name] = error

    study = optuna.create_study(storage=kept, study_name=settings.name, direction="maximize")
    threads = []
    for name, host in hosts.items():
        storage = Storage(kept, study, "memory", clock=host.clock)
        played = played or Played(settings=settings, storage=storage, campaigns=campaigns, failures=failures)
        if name in at_work_on:
            storage.crew = SimulatedCrew(turns=turns, clock=host.clock, host=name, at_work_on=at_work_on)
            threads.append(threading.Thread(target=work, args=(name, host, storage)))
    turns.begin(sorted(at_work_on))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert played is not None
    return played
