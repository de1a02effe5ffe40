"""The keeper is killed before any one of its steps: the next restore leads back to where it began."""

from pathlib import PurePosixPath

import pytest

from tests.integration.private_machine import CONFIGURATION, DEMO, SERVED, SETTING, PrivateHost
from tuner.ports import Command
from tuner.restore.keeper import requests

SESSION = "0123456789abcdef"
STEPS = """
steps=0
trap 'steps=$((steps + 1)); [ "$steps" -ne "$KILLED_AT" ] || kill -9 "$$" "$BASHPID"' DEBUG
. "$0"
"""
"""Runs a program of the shell, and kills it before its step number KILLED_AT; in a subshell that one too."""
WRITES_KILLED = """
trap '[ "${FUNCNAME[0]:-}" != exchange ] || kill -9 "$BASHPID"' DEBUG
. "$0"
"""
"""Runs a program of the shell, and kills the subshell of each file just before that gets its new name."""
INCOMPLETE = 24
ORIGINAL = {CONFIGURATION: b"demo 1\n", PurePosixPath("/srv/available/site"): b"site\n"}
FILES = {
    CONFIGURATION: b"demo 2, longer\n",
    SERVED / "new.d" / "tuner.conf": b"more\n",
    SETTING: b"512\n",
    PurePosixPath("/srv/available/site"): b"another site\n",
}

ORIGINALS = {path: requests.checksum(ORIGINAL.get(path)) for path in FILES}


def killed(machine: PrivateHost, command: Command, killed_at: int) -> bool:
    """Run a step of the keeper and kill it there; tell whether it came so far."""
    return traced(machine, command, f"KILLED_AT={killed_at}{STEPS}") == -9


def traced(machine: PrivateHost, command: Command, program: str) -> int:
    """Run a step of the keeper by a program that sees each of its commands; return its exit status."""
    argv = ("bash", "--posix", "-T", "-c", program, *command.argv[1:])
    return machine.run(argv, timeout_s=30, stdin=command.stdin).returncode


def run(machine: PrivateHost, command: Command) -> None:
    ended = machine.run(command.argv, timeout_s=30, stdin=command.stdin)
    assert ended.returncode == 0, ended


def arming() -> Command:
    owner = (("by", "a test"), ("controller", "c"), ("study", "s"))
    return requests.arming("run", session=SESSION, owner=owner, watchdog_s=120, services=[DEMO], urls=[])


def restoring() -> Command:
    return requests.step("restore", "run", "session", SESSION)


def changing() -> Command:
    return requests.change("run", SESSION, put=FILES, back=[], originals=ORIGINALS)


@pytest.fixture
def before(machine: PrivateHost) -> str:
    machine.sh(
        f"mkdir /srv/available; echo site > /srv/available/site; ln -s /srv/available/site {SERVED}/site"
    )
    machine.run_all(requests.installation())
    return everything(machine)


def everything(machine: PrivateHost) -> str:
    return machine.everything() + machine.sh(f"cat {SERVED}/site; find /srv/available {SERVED} | sort")


def restore_and_compare(machine: PrivateHost, before: str) -> None:
    run(machine, restoring())
    assert everything(machine) == before
    assert set(machine.sh("ls -A /var/lib/tuner/run").split()) <= {
        "ended",
        "sessions",
        "watchdog",
        "watching",
    }


def test_an_arm_that_is_killed_leaves_nothing_that_stands_in_the_way(machine: PrivateHost, before: str):
    for killed_at in range(60, 200, 60):
        assert killed(machine, arming(), killed_at)
        run(machine, requests.step("restore", "run", "hand", "c"))

        run(machine, arming())
        restore_and_compare(machine, before)


def test_a_change_that_is_killed_is_undone(machine: PrivateHost, before: str):
    for killed_at in range(40, 360, 90):
        run(machine, arming())
        assert killed(machine, changing(), killed_at)
        machine.sh("/srv/demo stop")

        restore_and_compare(machine, before)


def test_a_restore_that_is_killed_is_completed_by_the_next(machine: PrivateHost, before: str):
    for killed_at in range(60, 360, 90):
        run(machine, arming())
        run(machine, changing())
        machine.sh("/srv/demo stop; /srv/demo start")
        assert killed(machine, restoring(), killed_at)

        restore_and_compare(machine, before)


def test_a_write_that_is_killed_is_no_full_disk_where_a_file_would_be_written_in_place(
    machine: PrivateHost, before: str
):
    run(machine, arming())
    run(machine, changing())
    machine.sh("/srv/demo stop; /srv/demo start")
    assert traced(machine, restoring(), WRITES_KILLED) == INCOMPLETE

    restore_and_compare(machine, before)
