"""A study on simulated hosts with a controller that is run again when it ends too early."""

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.integration.private_machine import PrivateHost, private_machine
from tests.integration.shared_study import Controller
from tests.unit.simulation import write_study
from tuner.records import Role
from tuner.study import Study, load_study
from tuner.study.open_storage import open_storage
from tuner.study.storage import Storage

SPEED = 20
"""Simulated seconds that pass in a real one."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine that the worker of a host holds."""

    host: str
    machine: PrivateHost
    before: str
    """All that has to be there again in the end."""


@dataclass(kw_only=True)
class Fleet:
    """One study, its controllers so far and its machines."""

    settings: Study
    machines: list[Machine]
    places: Path
    """File that names the machines to the controller."""
    controllers: list[Controller] = field(default_factory=list)

    @property
    def controller(self) -> Controller:
        """Return the one that was begun last."""
        return self.controllers[-1]

    def tend(self) -> bool:
        """Run the controller again where it has ended too early; return whether it is at work."""
        if self.controllers:
            status = self.controller.process.poll()
            if status in {None, 0}:
                return status is None
        program = ("benchmarks.fleet.faults.worker", str(self.settings.path), str(SPEED), str(self.places))
        self.controllers.append(Controller(self.settings, *program))
        return True

    def signal(self, host: str, number: signal.Signals) -> None:
        """Signal the worker of a host, where one is at work."""
        for pid in self.controller.find_workers(host):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def open_study(self) -> Storage:
        """Open the study as it is by now."""
        return open_storage(self.settings.storage_url, self.settings.name, create=False)

    def count_trials(self) -> int:
        """Return how many trials were begun, by what the controllers said."""
        roles = tuple(f"{role} ssh://" for role in Role)
        return sum(line.startswith(roles) for each in self.controllers for line in each.said)


@contextmanager
def open_fleet(seed: int, *, hosts: int, trials: int, watchdog_s: int = 5) -> Iterator[Fleet]:
    """Begin a study on so many hosts; all ends with it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-")))
        names = [f"ssh://web{number}" for number in range(hosts)]
        entries = ", ".join(f"{{host: '{name}', watchdog_s: {watchdog_s}}}" for name in names)
        written = write_study(folder, seed=seed, optimizer="noisy-gp", more=f"targets: [{entries}]\n")
        told = written.path.read_text().replace("{preset: quick}", f"{{preset: quick, trials: {trials}}}")
        written.path.write_text(told)
        machines = [stack.enter_context(private_machine()) for _ in names]
        places = folder / "machines.json"
        places.write_text(
            json.dumps(
                {
                    name: (machine.first_pid, str(folder / f"journal {number}"))
                    for number, (name, machine) in enumerate(zip(names, machines, strict=True))
                }
            )
        )
        fleet = Fleet(
            settings=load_study(written.path), places=places,
            machines=[
                Machine(host=name, machine=machine, before=machine.everything())
                for name, machine in zip(names, machines, strict=True)
            ],
        )  # fmt: skip
        stack.callback(lambda: [each.end() for each in fleet.controllers])
        fleet.tend()
        yield fleet
