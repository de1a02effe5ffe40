"""A study on several simulated hosts, with its controller as a process that a test can kill.

Usage: python -m tests.integration.simulated_fleet STUDY SPEED. Prints a line for each trial that begins, and
the verdict at last. Everything but the hosts is real: the scheduler, the workers' processes, the storage.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import quote

from distributed.security import Security

from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import (
    SMALL_PLAN,
    TUNED,
    Log,
    SimulatedClock,
    SimulatedExecutor,
    SimulatedHost,
    make_setup,
    space_of,
)
from tuner.campaign.prepare import Setup
from tuner.commands.fleet.control import Request, drive_all, lane_here
from tuner.commands.fleet.engine import open_engine
from tuner.commands.fleet.process import Work
from tuner.commands.fleet.worker import Introduction, Place, serve_place
from tuner.interrupts import signals_interrupt
from tuner.records import Role
from tuner.space import SpaceFacts, facts_to_json
from tuner.study import Study, load_study
from tuner.study.facts import VERDICT
from tuner.study.file import for_each_target
from tuner.study.lock import locked
from tuner.study.open_storage import open_storage
from tuner.study.presets import Plan

HELD = "held"
"""Folder of the study with a file for each host that is held, as its watchdog would see it."""


@dataclass
class FastClock(SimulatedClock):
    """A clock on which everything takes so many times as long as it does."""

    speed: float

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic() * self.speed

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / self.speed)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Telling(Log):
    """Prints what begins."""

    def trial_begins(self, role: Role, label: str) -> None:
        super().trial_begins(role, label)
        say(f"{role} {label}")

    def note(self, text: str) -> None:
        say(text)


def name_of(host: str) -> str:
    return quote(host, safe="")


Hold = Callable[[Callable[[str], None]], AbstractContextManager[None]]


def set_up(settings: Study) -> Setup:
    """Return the setup of a simulated host, alike on all."""
    facts = facts_to_json(SpaceFacts(names={}, load={"pages": 1}), {})
    fingerprint = replace(FINGERPRINT, host=settings.target.host)
    return replace(make_setup(settings, space_of(*TUNED)), fingerprint=fingerprint, space_facts=facts)


def work(settings: Study, host: SimulatedHost, hold: Hold, address: str, security: Security | None) -> None:
    """Be the worker of a simulated host, and leave a file in the study's folder while that is held."""
    name = settings.target.host
    trace = settings.folder / HELD / f"{name_of(name)} {os.getpid()}"

    @contextmanager
    def hold_and_tell(warn: Callable[[str], None]) -> Iterator[None]:
        trace.parent.mkdir(exist_ok=True)
        trace.touch()
        try:
            with hold(warn):
                yield
        finally:
            trace.unlink()

    with suppress(KeyboardInterrupt), signals_interrupt():
        introduction = Introduction(setup=set_up(settings).described(), identity=(name.encode(),))
        place = Place(executor=SimulatedExecutor(host=host), hold=hold_and_tell, introduction=introduction)
        serve_place(name, place, address, security, patience_s=settings.target.watchdog_s)


@dataclass(frozen=True)
class Simulated:
    """The work of a process that simulates a host; see `worker_process`."""

    speed: float

    def __call__(
        self, settings: Study, address: str, security: Security | None, _telling: Connection
    ) -> None:
        # Hosts differ in level by more than any configuration is worth.
        seed = sum(settings.target.host.encode())
        host = SimulatedHost(clock=FastClock(self.speed), seed=seed, level=lambda _: seed % 7 / 5)
        work(settings, host, lambda _: nullcontext(), address, security)


def control(settings: Study, work_there: Work, plan: Plan) -> None:
    """Control a study whose workers do this, to its verdict."""
    with locked(settings), signals_interrupt():
        setups = list(map(set_up, for_each_target(settings)))
        formed = Request(settings=settings, progress=Telling()).form_team(setups)
        if formed is not None:
            team, setups = formed
            team = replace(team, plan=replace(plan, trials=settings.trials or plan.trials))
            with open_engine(settings.target.watchdog_s) as engine:
                drive_all(team, [lane_here(team, engine, each, work_there) for each in setups])
    say(str(open_storage(settings.storage_url, settings.name, create=False).recall(VERDICT)))


if __name__ == "__main__":
    control(
        load_study(Path(sys.argv[1])), Simulated(float(sys.argv[2])),
        replace(SMALL_PLAN, race_s=10, ablation_s=10),
    )  # fmt: skip
