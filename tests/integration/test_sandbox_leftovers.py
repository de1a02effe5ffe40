import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.everybody import AS_NOBODY, python_for_everybody
from tests.integration.leftovers import processes_in, processes_with, wait_until_gone
from tests.integration.waiting import is_running, wait_until

pytestmark = pytest.mark.alone

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX shared memory is


@pytest.fixture
def marker() -> str:
    """Make a word by which the processes and files of one test can be found."""
    return f"marker-{uuid.uuid4().hex}"


def host_state() -> dict[str, object]:
    """Read what a sandbox could have changed of this machine and that does not change by itself."""
    settings = subprocess.run(
        ["sysctl", "-a", "-r", r"^net\.|^kernel\.(shm|msg|sem)"], capture_output=True, check=True
    ).stdout
    return {
        "settings": settings,
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "shared memory": Path("/proc/sysvipc/shm").read_text(),
        "queues": Path("/proc/sysvipc/msg").read_text(),
        "interface": Path("/sys/class/net/lo/flags").read_text(),
    }


@contextmanager
def running(*argv: str | Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a Python program of this checkout, and end it if the test has not."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen([sys.executable, *argv], stdout=subprocess.PIPE, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def test_kill_9_of_the_tuner_leaves_nothing_behind(marker: str):
    before = host_state()
    with running(HERE / "hold_sandbox.py", marker) as holder:
        held = json.loads(holder.stdout.readline() if holder.stdout else b"")
        # It is all really there before the kill, or its absence afterwards would prove nothing.
        assert held["somaxconn"].strip() == "12345"
        assert "0x" in held["shared_memory"]
        assert marker in held["mounts"]
        wait_until(lambda: len(processes_with(marker)) == 5)  # the holder, nsenter, and a tree of three
        assert processes_in({"net": held["namespaces"]["net"]})

        holder.kill()
        holder.wait()

    assert wait_until_gone(marker, held["namespaces"]) == []
    assert host_state() == before
    assert not [path for path in SHARED_MEMORY.rglob("*") if marker in path.name or path.name == "tuner"]


def test_kill_9_of_the_tuner_ends_a_command_on_the_host_too():
    code = """
from tuner.adapters.hosts.local import LocalHost
LocalHost().run(["sleep", "600"], timeout_s=600)
"""
    with running("-c", code) as holder:
        wait_until(lambda: len(children_of(holder.pid)) == 1)
        (child,) = children_of(holder.pid)
        wait_until(lambda: child.joinpath("cmdline").read_bytes().startswith(b"sleep"))

        holder.kill()
        holder.wait()

    wait_until(lambda: not is_running(int(child.name)))


def children_of(pid: int) -> list[Path]:
    return [Path("/proc") / child for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_an_ordinary_user_runs_nginx_with_kernel_settings_of_its_own(copy_for_everybody: Path):
    before = host_state()

    ran = subprocess.run(
        [*AS_NOBODY, python_for_everybody(), "-B", copy_for_everybody / "use_sandbox_as_user.py"],
        capture_output=True,
        check=False,
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
    )

    assert ran.returncode == 0, ran.stderr.decode()
    result = json.loads(ran.stdout)
    assert result["uid"] != 0
    assert result["page"] == "hello"
    assert result["somaxconn"] == "777"
    assert result["backlog"] == 777
    assert result["open_files"] == "500"
    assert "open files, and only" in result["refusal"]
    assert result["alive"]
    assert result["ended"]
    assert not result["sees_host"]
    assert host_state() == before


def test_namespaces_that_are_not_permitted_are_one_clear_error():
    code = """
from tuner.adapters.hosts.local import LocalHost
from tuner.errors import TargetError
try:
    LocalHost().sandbox().__enter__()
except TargetError as error:
    print(error)
"""
    # A user namespace may lower its own limits: no network namespace can be made in this one.
    forbid = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$0" -c "$1"'
    ran = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, sys.executable, code],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )

    said = ran.stdout.decode()
    assert said.startswith(
        "local: a sandbox cannot be opened: unshare: unshare failed: No space left on device"
    )
    assert "Run tuner as root" in said
    assert "kernel.unprivileged_userns_clone=1" in said
    assert said.count("\n") == 1
