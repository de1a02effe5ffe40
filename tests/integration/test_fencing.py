"""A controller that was stopped, given up and goes on changes nothing any more: its services keep running."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.ssh_overhead import OWN_MACHINE
from tests.integration import hold_stopped
from tests.integration.private_machine import CONFIGURATION, DEMO, PrivateHost
from tests.integration.waiting import wait_until
from tuner.errors import TargetError
from tuner.ports import Completed
from tuner.restore.journal import Journal
from tuner.restore.keeper import replies
from tuner.restore.lease import Lease

STUDY = """\
study: stopped
servers: [nginx]
space: [nginx]
target: {host: local, mode: managed}
load: {path: /}
"""
ASK = ("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "http://127.0.0.1/")
NAMESPACES = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child")


@contextlib.contextmanager
def controller(folder: Path, number: int) -> Iterator[tuple["subprocess.Popen[str]", PrivateHost]]:
    """Start a controller on a machine of its own, which lives on after it has ended."""
    study = folder / "stopped.yaml"
    study.write_text(STUDY)
    inside = (sys.executable, hold_stopped.__file__, str(study), str(number))
    script = OWN_MACHINE.replace('exec "$@"', '"$@"\necho ended\nexec sleep infinity')
    with subprocess.Popen(
        [*NAMESPACES, "sh", "-euc", script, "own", *inside], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            wait_until(lambda: bool(children.read_text()))
            yield process, PrivateHost(int(children.read_text().split()[0]))
        finally:
            process.kill()


def find_child(pid: int, word: bytes) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return next(int(each) for each in children if word in Path(f"/proc/{each}/cmdline").read_bytes())


@pytest.mark.parametrize("number", [2, 3], ids=["before the check", "before the restart"])
def test_a_stopped_controller_that_was_given_up_does_not_touch_a_service(tmp_path: Path, number: int):
    with controller(tmp_path, number) as (process, machine):
        assert process.stdout is not None
        assert process.stdout.readline() == "stopped before activate\n"
        wait_until(lambda: "everything is back" in machine.log())
        os.kill(find_child(machine.first_pid, b"hold_stopped"), signal.SIGCONT)

        told = process.stdout.readline()
        assert told.startswith("TargetError local: This session has ended (no heartbeat of the controller")
        assert process.stdout.readline() == "ended\n"
        assert machine.run(ASK, timeout_s=10).stdout == b"200"
        assert machine.log().count("restoring: ") == 1


SHELLS = [shell for shell in ("dash", "busybox") if shutil.which(shell)]


def armed(machine: PrivateHost, journal: Journal, **commands: tuple[str, ...]) -> Lease:
    lease = Lease(machine, journal=journal, study="s")
    lease.arm([replace(DEMO, **commands)])
    return lease


def activate(machine: PrivateHost, lease: Lease, verb: str, name: str = "demo") -> Completed:
    (completed,) = machine.run_all((lease.command_to_activate(verb, name),))
    commands = {each: (each,) for each in ("check", "stop", "start", "reload")}
    return replies.read_activation("web1", completed, commands)


@pytest.mark.parametrize("status", [0, 1, 2, 23, 124, 127])
def test_what_a_command_prints_and_how_it_ends_is_told_apart_from_the_keepers_own(
    machine: PrivateHost, journal: Journal, status: int
):
    script = f"printf 'one\\n\\tend\\t2\\n'; printf 'two\\n three' >&2; exit {status}"
    lease = armed(machine, journal, check=("sh", "-c", script))

    ran = activate(machine, lease, "check")

    assert (ran.argv, ran.returncode) == (("check",), status)
    assert ran.stdout == b"one\n\tend\t2\n"
    assert ran.stderr == b"two\n three\n"
    lease.restore()


def test_a_service_that_does_not_stop_is_not_started(machine: PrivateHost, journal: Journal):
    lease = armed(machine, journal, stop=("sh", "-c", "echo no >&2; exit 3"))

    ran = activate(machine, lease, "restart")

    assert (ran.argv, ran.returncode, ran.stderr) == (("stop",), 3, b"no\n")
    assert machine.sh("cat /srv/demo.log") == "started\n"
    lease.restore()


def test_a_service_runs_as_it_does_when_its_administrator_starts_it(machine: PrivateHost, journal: Journal):
    script = (
        "umask; cat /proc/self/oom_score_adj; grep SigIgn /proc/self/status; ls -l /proc/self/fd |"
        " grep -c tuner"
    )
    lease = armed(machine, journal, check=("sh", "-c", script))

    umask, adjusted, ignored, files = activate(machine, lease, "check").stdout.splitlines()

    assert (umask, adjusted) == (b"0022", b"0")
    assert int(ignored.split()[1], 16) & 0b11 == 0  # SIGHUP, SIGINT
    assert int(files) <= 2  # what it prints
    lease.restore()


@pytest.mark.parametrize("name", ["other", "../services/demo", "", ".", "/etc/passwd"])
def test_only_services_that_were_named_at_first_are_touched(
    machine: PrivateHost, journal: Journal, name: str
):
    lease = armed(machine, journal)

    with pytest.raises(TargetError, match=r"service"):
        activate(machine, lease, "restart", name)

    assert machine.sh("cat /srv/demo.log") == "started\n"
    lease.restore()


def test_no_restore_comes_between_a_stop_and_a_start(machine: PrivateHost, journal: Journal):
    stop = ("sh", "-c", "/srv/demo stop; touch /srv/stopped; while [ -e /srv/stopped ]; do sleep 0.05; done")
    lease = armed(machine, journal, stop=stop)
    command = lease.command_to_activate("restart", "demo")
    lease.note_changed(machine.run_all((lease.command_to_change({CONFIGURATION: b"demo 2\n"}),)))
    with ThreadPoolExecutor() as pool:
        restarted = pool.submit(machine.run, command.argv, timeout_s=30)
        wait_until(lambda: machine.run(["test", "-e", "/srv/stopped"], timeout_s=5).returncode == 0)
        # Whoever restores takes this lock first.
        assert machine.run(["flock", "-n", "/var/lib/tuner/lock", "true"], timeout_s=5).returncode == 1
        machine.sh("rm /srv/stopped")
        assert restarted.result().returncode == 0
    assert machine.sh("cat /srv/in-force") == "demo 2\n"
    with ThreadPoolExecutor() as pool:
        restored = pool.submit(lease.restore)
        wait_until(lambda: machine.run(["rm", "/srv/stopped"], timeout_s=5).returncode == 0)
        assert restored.result() == (CONFIGURATION,)


def test_a_session_that_has_ended_restarts_nothing(machine: PrivateHost, journal: Journal):
    lease = armed(machine, journal)
    lease.restore()

    with pytest.raises(TargetError, match=r"This session has ended \(the tuner is done\)"):
        activate(machine, lease, "restart")

    assert machine.sh("cat /srv/demo.log") == "started\n"
