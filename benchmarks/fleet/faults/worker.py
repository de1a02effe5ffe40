"""The controller of a study on simulated hosts whose workers hold real machines, for faults to break.

Usage: python -m benchmarks.fleet.faults.worker STUDY SPEED MACHINES, the last a file of JSON: host → first
process of its machine, and folder of its journal. Each configuration is written to a file and a setting of
the machine through a lease, as a managed target is changed, so that the machine's own watchdog has to give
it back when the worker does not.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from distributed.security import Security

from tests.integration.private_machine import CONFIGURATION, DEMO, SETTING, PrivateHost
from tests.integration.simulated_fleet import FastClock, control, work
from tests.unit.simulation import SMALL_PLAN, TUNED, SimulatedHost, space_of
from tuner.ports import Config
from tuner.restore.journal import Journal
from tuner.restore.lease import Lease
from tuner.study import Study, load_study

SIZES = (0.20, 0.10, 0.0, -0.05, -0.12)
"""Log points that a change of each setting is worth; which has which is drawn."""
PLAN = replace(SMALL_PLAN, minutes=600, race_s=30, ablation_s=30)


def worth_of(seed: int, config: Config) -> float:
    """Return what a configuration is worth to the server of a seed, in log points over the default."""
    sizes = dict(zip(TUNED, Random(f"server {seed}").sample(SIZES, len(SIZES)), strict=True))  # noqa: S311
    return sum(sizes[name] for name in space_of(*TUNED).changes(config))


@dataclass(kw_only=True)
class LeasedHost(SimulatedHost):
    """Changes a real machine at every trial, under a lease."""

    machine: PrivateHost
    directory: Path
    name: str
    watchdog_s: float
    _lease: Lease | None = None

    @contextmanager
    def hold(self, warn: Callable[[str], None]) -> Iterator[None]:
        """Take the machine; leaving it puts everything back."""
        with Journal(self.directory) as journal:
            self._lease = Lease(self.machine, journal=journal, study=self.name, watchdog_s=self.watchdog_s)
            try:
                self._lease.arm([DEMO])
                yield
            finally:
                self._lease.restore(warn)

    def deploy(self, config: Config) -> float:
        if self._lease is None:
            raise RuntimeError(f"{self.name}: hold the machine first")
        self._lease.check_alive()
        files = {
            CONFIGURATION: f"demo {space_of(*TUNED).changes(config)}\n".encode(),
            SETTING: b"%d\n" % (512 + config["worker_connections"] % 512),
        }
        self._lease.note_changed(self.machine.run_all([self._lease.command_to_change(files)]))
        return super().deploy(config)


@dataclass(frozen=True)
class Leased:
    """The work of a process that simulates a host and holds a machine."""

    speed: float
    machines: Mapping[str, tuple[int, str]]

    def __call__(self, settings: Study, address: str, security: Security | None, telling: Connection) -> None:
        name, seed = settings.target.host, sum(settings.target.host.encode())
        first_pid, directory = self.machines[name]
        host = LeasedHost(
            clock=FastClock(self.speed), seed=seed, level=lambda _: seed % 7 / 5,
            worth=lambda config: worth_of(settings.seed, config), machine=PrivateHost(first_pid),
            directory=Path(directory), name=settings.name, watchdog_s=settings.target.watchdog_s,
        )  # fmt: skip
        with telling:
            work(settings, host, host.hold, address, security)


if __name__ == "__main__":
    control(
        load_study(Path(sys.argv[1])),
        Leased(float(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text())),
        PLAN,
    )
