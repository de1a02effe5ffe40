"""A worker of a study on a simulated host, as a process of its own that a test can kill.

Usage: work_simulated.py STUDY HOST SPEED [ROLE]. Prints a line for each start that begins, and the verdict at
last. With a role, it stops itself (SIGSTOP) in the middle of the first start that has it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import SMALL_PLAN, Log, SimulatedClock, SimulatedHost, make_campaign
from tuner.campaign.campaign import run_campaign
from tuner.campaign.start_runner import name_session
from tuner.commands.session import name_worker, outlast
from tuner.records import Role
from tuner.study import Study, load_study
from tuner.study.facts import HOSTS, VERDICT
from tuner.study.open_storage import open_storage
from tuner.study.presets import Plan

EPOCH_S = 1_767_225_600.0
STEPS_TO_FIRST_WINDOW = 2
"""Of a start, from its choice on: it has begun; its first window is written."""


@dataclass
class FastClock(SimulatedClock):
    """A clock that runs so many times as fast as others, the same in every process."""

    speed: float

    def time(self) -> float:
        return EPOCH_S + self.monotonic()

    def monotonic(self) -> float:
        return time.monotonic() * self.speed

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / self.speed)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Telling(Log):
    """Prints what begins."""

    def start_begins(self, role: Role, label: str) -> None:
        super().start_begins(role, label)
        say(role)

    def note(self, text: str) -> None:
        say(text)


@dataclass(kw_only=True)
class StoppingHost(SimulatedHost):
    """Stops its own process in the middle of a start, where its worker has passed the turn on."""

    stop_at: str
    """Role of the start; empty for none."""
    _steps_of_start: int | None = None

    def suggest(self, role: Role) -> float:
        if role == self.stop_at:
            self._steps_of_start = 0
        return super().suggest(role)

    def step(self) -> None:
        super().step()
        if self._steps_of_start is None:
            return
        self._steps_of_start += 1
        if self._steps_of_start == STEPS_TO_FIRST_WINDOW:
            self.stop_at, self._steps_of_start = "", None
            os.kill(os.getpid(), signal.SIGSTOP)


def main(path: str, name: str, speed: str, stop_at: str = "") -> None:
    # Hosts differ in level by more than any configuration is worth.
    level = (sum(name.encode()) % 7) / 5
    clock = FastClock(float(speed))
    work(
        load_study(Path(path)),
        name,
        StoppingHost(clock=clock, seed=sum(name.encode()), level=lambda _: level, stop_at=stop_at),
        plan=replace(SMALL_PLAN, race_s=10, simplify_s=10),
    )


def work(
    settings: Study,
    name: str,
    host: SimulatedHost,
    *,
    plan: Plan,
    hold: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Work on a study until it has its verdict, on a host that is held while the storage is there."""
    storage = open_storage(settings.storage_url, settings.name, clock=host.clock)
    storage.join(
        host=name, worker=name_worker(), patience_s=settings.target.watchdog_s, is_shared=settings.is_shared
    )

    def measure() -> None:
        with storage.at_work():
            storage.claim(replace(FINGERPRINT, host=name), definition={"study": settings.name})
            if settings.hosts is not None and storage.hosts is None:
                storage.remember(HOSTS, settings.hosts)
            of_study = replace(plan, trials=settings.trials or plan.trials)
            campaign = make_campaign(settings, host, storage, plan=of_study, session=name_session(name))
            campaign.progress = Telling()
            with hold():
                storage.remember(VERDICT, run_campaign(campaign))

    outlast(storage, measure, Telling().note)
    say(str(storage.recall(VERDICT)))


if __name__ == "__main__":
    main(*sys.argv[1:])
