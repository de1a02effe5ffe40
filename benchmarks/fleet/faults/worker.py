"""A worker on a simulated host that holds a real machine of its own, for faults to kill and to freeze.

Each configuration is written to a file and a setting of that machine through a lease, as a managed target is
changed, so that the machine's own watchdog has to give it back when this process does not.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from tests.integration.private_machine import CONFIGURATION, DEMO, SETTING, PrivateHost
from tests.integration.work_simulated import FastClock, work
from tests.unit.simulation import SMALL_PLAN, TUNED, SimulatedHost, space_of
from tuner.ports import Config
from tuner.restore.journal import Journal
from tuner.restore.lease import Lease
from tuner.study import load_study

SIZES = (0.20, 0.10, 0.0, -0.05, -0.12)
"""Log points that a change of each setting is worth; which has which is drawn."""
PLAN = replace(SMALL_PLAN, minutes=600, race_s=30, simplify_s=30)


def worth_of(seed: int, config: Config) -> float:
    """Return what a configuration is worth to the server of a seed, in log points over the default."""
    sizes = dict(zip(TUNED, Random(f"server {seed}").sample(SIZES, len(SIZES)), strict=True))  # noqa: S311
    return sum(sizes[name] for name in space_of(*TUNED).changes(config))


@dataclass
class ShiftedClock(FastClock):
    """A clock that is wrong by so many seconds."""

    offset_s: float

    def time(self) -> float:
        return super().time() + self.offset_s


@dataclass(kw_only=True)
class LeasedHost(SimulatedHost):
    """Changes a real machine at every start, under a lease."""

    machine: PrivateHost
    directory: Path
    name: str
    watchdog_s: float
    _lease: Lease | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Take the machine; leaving it puts everything back."""
        with Journal(self.directory) as journal:
            self._lease = Lease(self.machine, journal=journal, study=self.name, watchdog_s=self.watchdog_s)
            try:
                self._lease.arm([DEMO])
                yield
            finally:
                self._lease.restore()

    def deploy(self, config: Config) -> float:
        if self._lease is None:
            raise RuntimeError(f"{self.name}: hold the machine first")
        files = {
            CONFIGURATION: f"demo {space_of(*TUNED).changes(config)}\n".encode(),
            SETTING: b"%d\n" % (512 + config["worker_connections"] % 512),
        }
        self._lease.note_changed(self.machine.run_all([self._lease.command_to_change(files)]))
        return super().deploy(config)


def work_as_process(
    path: Path, name: str, speed: float, offset_s: float, first_pid: int, directory: Path, said: Path
) -> None:
    """Work until the study has its verdict; what is said goes to the end of a file."""
    with said.open("ab") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    settings = load_study(path)
    seed = sum(name.encode())
    host = LeasedHost(
        clock=ShiftedClock(speed, offset_s), seed=seed, level=lambda _: seed % 7 / 5,
        worth=lambda config: worth_of(settings.seed, config), machine=PrivateHost(first_pid),
        directory=directory, name=settings.name, watchdog_s=settings.target.watchdog_s,
    )  # fmt: skip
    work(settings, name, host, plan=PLAN, hold=host.hold)
