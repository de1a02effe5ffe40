"""A study with several simulated hosts in one process: a thread for each, always in the same order.

Each host has a clock of its own, which passes only as it is used. Whoever is furthest behind has the turn
next, once all have come to where they need it; so a study plays as it would on as many machines.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

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
from tuner.campaign.experiment import Experiment, Seat, Shared
from tuner.space import Space
from tuner.study import Study
from tuner.study.facts import HOSTS, VERDICT
from tuner.study.presets import Plan
from tuner.study.storage import Storage


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
class SimulatedTurn:
    """The turn as `tuner.campaign.turn.Turn` has it; each thread has the name of its host."""

    turns: Turns
    clocks: Mapping[str, SimulatedClock]

    @property
    def now_s(self) -> float:
        return self.clocks[threading.current_thread().name].now_s

    def time(self) -> float:
        return self.now_s

    @contextmanager
    def taken(self) -> Iterator[None]:
        name = threading.current_thread().name
        self.turns.take(name, self.now_s)
        try:
            yield
        finally:
            self.turns.pass_on(name, for_ever=True)

    @contextmanager
    def others_turn(self) -> Iterator[None]:
        name = threading.current_thread().name
        self.turns.pass_on(name)
        try:
            yield
        finally:
            self.turns.take(name, self.now_s)

    def wait(self, seconds: float) -> None:
        with self.others_turn():
            self.clocks[threading.current_thread().name].sleep(seconds)


@dataclass(kw_only=True)
class Played:
    """A study that came to its end."""

    settings: Study
    storage: Storage
    campaigns: dict[str, Experiment] = field(default_factory=dict)
    failures: dict[str, BaseException] = field(default_factory=dict)

    @property
    def verdict(self) -> str | None:
        return self.storage.recall(VERDICT)

    @property
    def experiment(self) -> Experiment:
        """The study as the first host's worker sees it at last."""
        return next(iter(self.campaigns.values()))


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
) -> Played:
    """Play a study on all its hosts, to its verdict or until all have failed."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kept = optuna.storages.InMemoryStorage()
    study = optuna.create_study(storage=kept, study_name=settings.name, direction="maximize")
    turns = Turns()
    turn: Any = SimulatedTurn(turns=turns, clocks={name: host.clock for name, host in hosts.items()})
    storage = Storage(kept, study, "memory", clock=turn)
    storage.claim(replace(FINGERPRINT, host=next(iter(hosts))), definition={"study": settings.name})
    if settings.hosts is not None:
        storage.remember(HOSTS, settings.hosts)
    shared = Shared(turn=turn)
    played = Played(settings=settings, storage=storage)

    def work(name: str, host: SimulatedHost) -> None:
        try:
            with turn.taken():
                campaign = make_campaign(
                    settings, host, storage, plan=plan, session=f"on {name}", space=space,
                    seat=Seat(host=name, executor=None, shared=shared),
                )  # fmt: skip
                played.campaigns[name] = campaign
                storage.remember(VERDICT, run_campaign(campaign))
        except BaseException as error:  # noqa: BLE001 - told by whoever waits for it
            played.failures[name] = error

    threads = [threading.Thread(target=work, name=name, args=(name, host)) for name, host in hosts.items()]
    turns.begin(sorted(hosts))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return played
