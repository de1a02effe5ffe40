"""What happens to a managed run, and what has to be so afterwards."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from benchmarks.faults.forked import Forked
from benchmarks.faults.look import is_armed
from benchmarks.faults.servers import SERVERS, ServerOnHost
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tests.testbed.namespaces import kill_each
from tests.testbed.shim import Shim

QUIET_S = 0.6
QUIET_TIMEOUT_S = 20.0


class Promise(Enum):
    """What a fault leaves possible, and so has to be."""

    BACK = "back"
    """The host puts everything back by itself, in time, with the fault still there."""
    LATER = "later"
    """What serves goes on serving, what is left is named, and `tuner restore` completes without the fault."""
    EDIT_STAYS = "edit stays"
    """The run ends, another hand's version stays and is named, and `tuner restore --accept` completes."""


class Machine(Enum):
    """What kind of test host a fault needs."""

    PLAIN = "init scripts"
    SYSTEMD = "systemd"
    FORGETFUL = "systemd, and a disk that loses what was not synced"


@dataclass(slots=True, kw_only=True)
class Run:
    """One managed run that something happens to."""

    bed: Testbed
    host: TestHost
    server: ServerOnHost
    process: Forked
    rng: random.Random
    shims: tuple[Shim, ...] = ()
    """Of the host and of the controller, where a fault needs them."""
    others: set[str] = field(default_factory=set)
    """Files that the fault itself has put there."""
    edited: dict[str, bytes] = field(default_factory=dict)
    """Files that another hand has edited, as it left them."""
    setting: bytes = b""
    """What net.core.somaxconn was then."""
    found: Mapping[str, bytes] = field(default_factory=dict)
    """Contents of the files in /etc, before the study."""
    originals: dict[str, bytes | None] = field(default_factory=dict)
    """Those files, and settings, as the study found them; None where there was none."""
    merged: dict[str, bytes | None] = field(default_factory=dict)
    """What the other hand wants there in the end."""
    served: bool = False
    """Whether the page answered when the fault came, and nobody was about to restart the server."""
    notes: list[str] = field(default_factory=list)
    """What was seen meanwhile and must not be."""

    def end(self) -> None:
        """End the tuner, politely or not."""
        self.process.send_signal(self.rng.choice([signal.SIGKILL, signal.SIGTERM]))

    def answers(self) -> bool:
        """Check whether the page is served."""
        return self.host.status_of(self.server.page) == 200

    def await_quiet(self) -> None:
        """Wait until the page answers, and has done so for a moment in which nothing was changed."""
        deadline = time.monotonic() + QUIET_TIMEOUT_S
        quiet_since_s = time.monotonic()
        while time.monotonic() < deadline and self.process.poll() is None:
            if processes_of_step(self.host, "change") or not self.answers():
                quiet_since_s = time.monotonic()
            elif time.monotonic() - quiet_since_s > QUIET_S:
                self.served = True
                return
            time.sleep(0.02)


Strike = Callable[[Run], None]


def nothing_to_mend(_run: Run) -> None:
    """Leave the host alone: there is nothing that could be taken away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of fault."""

    strike: Strike
    promise: Promise = Promise.BACK
    mend: Strike = nothing_to_mend
    """Takes the fault away, where healing the network and the disk is not enough."""
    machine: Machine = Machine.PLAIN
    is_shimmed: bool = False
    needs_change: bool = False
    """Whether something has to be changed already when it happens."""
    servers: tuple[str, ...] = tuple(SERVERS)
    prepare: Callable[[TestHost, ServerOnHost], None] = lambda _host, _server: None
    """What is done to the host before the study begins."""


def kill_controller(run: Run) -> None:
    """Kill -9 of the tuner."""
    run.process.kill()


def cut_link(run: Run) -> None:
    """Nothing goes through any more; the tuner lives on at its end."""
    run.host.cut()


def kill_sshd(run: Run) -> None:
    """All sessions end, and no new one begins."""
    run.host.kill_sshd()


def kill_watchdog(run: Run) -> None:
    """The watchdog goes first; the tuner, which lives, has to put everything back itself."""
    kill_each(_find_keepers(run.host))
    run.process.terminate()


def fill_disk(run: Run) -> None:
    """No space is left when the tuner dies."""
    run.host.fill_disk()
    run.process.kill()


def interrupt_twice(run: Run) -> None:
    """An impatient person."""
    run.process.send_signal(signal.SIGINT)
    time.sleep(run.rng.random() * 0.3)
    run.process.send_signal(signal.SIGINT)


def refuse_to_start(run: Run) -> None:
    """The server's program is gone for a moment while the tuner ends: the restore cannot start it at once."""
    program = run.server.program
    run.host.run(["mv", str(program), f"{program}.away"])
    run.process.terminate()
    time.sleep(run.rng.random())
    run.host.run(["mv", f"{program}.away", str(program)])


def cut_power(run: Run) -> None:
    """The host is gone in the middle of whatever it did, and boots from what had reached its disk."""
    run.host = run.bed.restart(run.host)


def remove_state(run: Run) -> None:
    """The keeper, its journal and its log go while the run goes on."""
    run.host.run(["rm", "-rf", "/var/lib/tuner"])
    run.end()


def remove_run_directory(run: Run) -> None:
    """The keeper stays, and has forgotten everything."""
    run.host.run(["rm", "-rf", "/var/lib/tuner/run"])
    run.end()


OLDER: Mapping[str, Kind] = {
    "controller killed": Kind(strike=kill_controller),
    "link cut": Kind(strike=cut_link),
    "sshd killed": Kind(strike=kill_sshd),
    "watchdog killed, controller ended": Kind(strike=kill_watchdog),
    "disk full, controller killed": Kind(strike=fill_disk),
    "Ctrl-C twice": Kind(strike=interrupt_twice),
    "server does not start": Kind(strike=refuse_to_start),
    "power cut": Kind(strike=cut_power, machine=Machine.FORGETFUL),
    "state directory removed": Kind(strike=remove_state, promise=Promise.LATER),
    "run directory removed": Kind(strike=remove_run_directory, promise=Promise.LATER),
}


def heal(host: TestHost) -> None:
    """Take away what was done to the network, the disk and sshd."""
    host.heal()
    with contextlib.suppress(FileNotFoundError):
        host.free_disk()
    if not host.processes("sshd"):
        host.start_sshd()


def watchdog_has_fired(host: TestHost) -> bool:
    """Check whether the host has put itself back, or is about to."""
    log = host.root / "var/lib/tuner/log"
    with contextlib.suppress(OSError):
        return "no heartbeat" in log.read_text() or not is_armed(host)
    return True


def _find_keepers(host: TestHost) -> list[int]:
    found = []
    for pid in host.processes():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"/var/lib/tuner/keeper" in words and (b"watch" in words or b"guard" in words):
                found.append(pid)
    return found


def processes_of_step(host: TestHost, step: str) -> list[int]:
    """List the processes of the keeper that do a step."""
    found = []
    for pid in host.processes():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"/var/lib/tuner/keeper" in words and os.fsencode(step) in words:
                found.append(pid)
    return found
