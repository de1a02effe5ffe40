import os
import resource
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.leftovers import namespace, processes_with, wait_until_gone
from tests.integration.waiting import wait_until
from tests.testbed.namespaces import runs
from tuner.adapters.hosts.local import LocalHost
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import ABSENT, FileState, Sandbox

SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")
SLEEP_IN_A_TREE = """
import os, time
os.fork() or os.fork() or os.setsid()
time.sleep(600)
"""


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with LocalHost().sandbox() as opened:
        yield opened


@pytest.fixture
def marker() -> str:
    """Make a word by which the processes and files of one test can be found."""
    return f"marker-{uuid.uuid4().hex}"


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox):
    with pytest.raises(TargetError, match="there is no program 'no-such-server'"):
        sandbox.start(["no-such-server"])
    with pytest.raises(TargetError, match="there is no program 'no-such-server'"):
        sandbox.run(["no-such-server"], timeout_s=5)

    monkeypatch.setenv("PATH", "/nowhere")
    with (
        pytest.raises(TargetError, match=r"there is no program 'setpriv' .* apt-get install util-linux"),
        LocalHost().sandbox(),
    ):
        pass


def test_a_sandbox_has_a_network_of_its_own_that_is_up(sandbox: Sandbox):
    interfaces = sandbox.run(["ip", "-brief", "address"], timeout_s=5).stdout.decode()

    assert interfaces.splitlines()[0].split()[:3] == ["lo", "UNKNOWN", "127.0.0.1/8"]
    assert len(interfaces.splitlines()) == 1
    assert namespace(sandbox.pid) != namespace("self")


def test_kernel_settings_are_the_sandboxs_own(sandbox: Sandbox):
    before = LocalHost().read(SOMAXCONN)

    sandbox.write(SOMAXCONN, FileState(content=b"999"))

    assert sandbox.read(SOMAXCONN).content == b"999\n"
    assert sandbox.run(["cat", str(SOMAXCONN)], timeout_s=5).stdout == b"999\n"
    assert LocalHost().read(SOMAXCONN) == before


def test_a_value_that_the_kernel_refuses_is_the_configurations_fault(sandbox: Sandbox):
    with pytest.raises(ConfigRejected, match=r"somaxconn: the kernel refused 'many': Invalid argument"):
        sandbox.write(SOMAXCONN, FileState(content=b"many"))
    with pytest.raises(ConfigRejected, match="the kernel refused 'no-such-algorithm'"):
        sandbox.write(
            PurePosixPath("/proc/sys/net/ipv4/tcp_congestion_control"),
            FileState(content=b"no-such-algorithm"),
        )


def test_a_setting_that_this_kernel_lacks_is_absent_and_cannot_be_written(sandbox: Sandbox):
    dead = PurePosixPath("/proc/sys/net/ipv4/tcp_tw_recycle")

    assert sandbox.read(dead) == ABSENT
    with pytest.raises(TargetError, match="tcp_tw_recycle cannot be written"):
        sandbox.write(dead, FileState(content=b"1"))


@pytest.mark.parametrize(
    "path",
    ["/etc/tuner-test", "/proc/sys/vm/swappiness", "/dev/shm/tuner/../escaped", "/tmp/tuner-test"],  # noqa: S108
)
def test_what_would_outlive_the_sandbox_is_not_written(sandbox: Sandbox, path: str):
    with pytest.raises(TargetError, match="is outside the sandbox"):
        sandbox.write(PurePosixPath(path), FileState(content=b"1"))


def test_a_server_cannot_write_to_the_hosts_files_either(sandbox: Sandbox):
    touched = sandbox.run(["touch", "/etc/tuner-test"], timeout_s=5)

    assert b"Read-only file system" in touched.stderr
    assert not Path("/etc/tuner-test").exists()


def test_files_of_a_sandbox_are_seen_by_its_programs_and_by_nobody_else(sandbox: Sandbox, marker: str):
    path = sandbox.directory / "deep" / marker

    sandbox.write(path, FileState(content=b"content", mode=0o640, uid=33, gid=33))

    assert sandbox.read(path) == FileState(content=b"content", mode=0o640, uid=33, gid=33)
    assert sandbox.run(["cat", str(path)], timeout_s=5).stdout == b"content"
    assert LocalHost().read(path) == ABSENT
    sandbox.write(path, ABSENT)
    assert sandbox.read(path) == ABSENT


def test_two_sandboxes_know_nothing_of_each_other(sandbox: Sandbox):
    with LocalHost().sandbox() as other:
        sandbox.write(sandbox.directory / "mine", FileState(content=b"x"))

        assert other.read(other.directory / "mine") == ABSENT
        assert other.pid != sandbox.pid


def test_a_shared_directory_is_read_only_and_needs_no_open_parents(tmp_path: Path):
    root = tmp_path / "private" / "www"
    root.mkdir(parents=True)
    (root / "index.html").write_text("hello")
    (tmp_path / "private").chmod(0o700)
    root.chmod(0o755)

    with LocalHost().sandbox(share=PurePosixPath(root)) as sandbox:
        shared = sandbox.directory / "shared"
        as_www = ("setpriv", "--reuid", "www-data", "--regid", "www-data", "--clear-groups", "--")
        assert sandbox.run([*as_www, "cat", str(shared / "index.html")], timeout_s=5).stdout == b"hello"
        assert b"Read-only" in sandbox.run(["touch", str(shared / "x")], timeout_s=5).stderr
        with pytest.raises(TargetError, match="shared/x cannot be written: Read-only file system"):
            sandbox.write(shared / "x", FileState(content=b"x"))

    assert [path.name for path in root.iterdir()] == ["index.html"]


def test_a_shared_directory_that_is_gone_is_one_clear_error():
    with (
        pytest.raises(TargetError, match="No such file or directory: '/no/such/directory'"),
        LocalHost().sandbox(share=PurePosixPath("/no/such/directory")),
    ):
        pass


def test_a_process_has_the_pid_that_the_controller_sees(sandbox: Sandbox, marker: str):
    process = sandbox.start(
        [sys.executable, "-c", "import time; time.sleep(600)", marker], cpus=frozenset({0})
    )

    wait_until(lambda: process.pid in processes_with(marker))
    assert namespace(process.pid) == namespace(sandbox.pid)
    assert sandbox.read(PurePosixPath(f"/proc/{process.pid}/status")).content is not None


def test_when_memory_runs_out_it_is_the_server_that_has_to_go(sandbox: Sandbox):
    process = sandbox.start(["sleep", "600"])

    assert Path(f"/proc/{process.pid}/oom_score_adj").read_text() == "500\n"


def test_leaving_a_sandbox_ends_everything_in_it(marker: str):
    with LocalHost().sandbox() as sandbox:
        process = sandbox.start([sys.executable, "-c", SLEEP_IN_A_TREE, marker])
        namespaces = {"net": namespace(sandbox.pid)}
        assert process.poll() is None

    assert process.poll() is not None
    assert wait_until_gone(marker, namespaces) == []


def test_a_sandbox_that_was_killed_says_so(sandbox: Sandbox):
    os.kill(sandbox.pid, 9)

    wait_until(lambda: not runs(sandbox.pid))
    with pytest.raises(TargetError, match="sandbox"):
        sandbox.read(SOMAXCONN)
    with pytest.raises(
        TargetError, match=r"the sandbox ended by itself .* Look for the cause in the kernel log"
    ):
        sandbox.run(["true"], timeout_s=5)


def test_open_files_are_raised_to_what_is_needed(sandbox: Sandbox):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        limit = sandbox.run(["sh", "-c", "ulimit -n"], timeout_s=5, open_files=1000)
        process = sandbox.start(["sleep", "600"], open_files=1001)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert limit.stdout == b"1000\n"
    limits = Path(f"/proc/{process.pid}/limits")
    wait_until(lambda: "1001 " in limits.read_text())  # when prlimit has become sleep


def test_more_open_files_than_the_kernel_allows_are_the_configurations_fault(sandbox: Sandbox):
    with pytest.raises(
        ConfigRejected, match=r"local: the load needs 2000000000 open files, and only \d+ are allowed"
    ):
        sandbox.start(["sleep", "600"], open_files=2_000_000_000)


def test_the_deadline_ends_a_command_with_all_that_descends_from_it(sandbox: Sandbox, marker: str):
    completed = sandbox.run([sys.executable, "-c", SLEEP_IN_A_TREE, marker], timeout_s=0.5)

    assert completed.timed_out
    assert wait_until_gone(marker, {}) == []


def test_a_sandbox_cannot_hold_another(sandbox: Sandbox):
    with pytest.raises(TargetError, match="cannot contain another"):
        sandbox.sandbox()
