"""The process table is full: the watchdog waits until it has room again, and puts the target back then."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.private_machine import PrivateHost, private_machine
from tests.integration.test_keeper import SHELLS, armed, change
from tests.integration.test_restoring import CHANGES
from tests.integration.waiting import wait_until
from tests.more import leave_to_more
from tuner.restore.journal import Journal

WATCHDOG_S = 1.0
STARVED_S = 4.0
"""Longer than the watchdog waits, and long enough for shells that try to fork for a while."""


@contextlib.contextmanager
def limited_processes() -> Iterator[Path]:
    """Make a group of processes whose number may be limited (cgroups(7), of version 1 or 2)."""
    places = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
    root = next(place for place in places if (place / "cgroup.procs").exists())
    controllers = root / "cgroup.subtree_control"
    if controllers.exists() and "pids" not in controllers.read_text().split():
        controllers.write_text("+pids")
    group = root / f"tuner-test-{time.monotonic_ns()}"
    group.mkdir()
    try:
        yield group
    finally:
        (group / "pids.max").write_text("max")
        wait_until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def processes_of(machine: PrivateHost) -> list[int]:
    """Return the processes of the watchdog, as they are known out here."""
    namespace = Path(f"/proc/{machine.first_pid}/ns/pid").readlink()
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_inside = (each / "ns/pid").readlink() == namespace
            if is_inside and b"/var/lib/tuner/keeper" in (each / "cmdline").read_bytes():
                found.append(int(each.name))
    return found


@pytest.mark.parametrize("shell", leave_to_more(SHELLS))
@pytest.mark.parametrize("number", [0, 1])
def test_the_watchdog_outlives_a_full_process_table(shell: str, number: int, tmp_path: Path):
    with limited_processes() as group, private_machine(shell) as machine, Journal(tmp_path) as journal:
        before = machine.everything()
        lease = armed(machine, journal, watchdog_s=WATCHDOG_S)
        change(lease, machine, CHANGES)
        machine.sh("/srv/demo stop; /srv/demo start")
        (group / "pids.max").write_text("0")
        for pid in processes_of(machine):
            with contextlib.suppress(ProcessLookupError):  # it was a step of the keeper, and has ended
                (group / "cgroup.procs").write_text(str(pid))
        if number:  # the one that counts is killed as well, and the other cannot start it again
            machine.sh("set -- $(cat /var/lib/tuner/run/watchdog); kill -9 $2")
        lease._heartbeat.stop()

        time.sleep(STARVED_S)
        assert "everything is back" not in machine.log()
        assert processes_of(machine)

        (group / "pids.max").write_text("max")
        deadline = time.monotonic() + 60  # bash waits for up to 16 s between its attempts
        while "everything is back" not in machine.log() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert machine.everything() == before
        wait_until(lambda: not processes_of(machine))
