import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.waiting import PATIENCE_S, is_running, wait_until
from tuner.adapters.hosts.local import LocalHost
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import ABSENT, FileState, Sandbox

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX shared memory is
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


def processes_with(marker: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def namespace(pid: int | str, kind: str = "net") -> str:
    return str(Path(f"/proc/{pid}/ns/{kind}").readlink())


def processes_in(namespaces: dict[str, str]) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            for kind, name in namespaces.items():
                try:
                    if namespace(entry.name, kind) == name:
                        found.append(f"{entry.name} in {name}")
                except OSError:
                    continue
    return found


def wait_until_gone(marker: str, namespaces: dict[str, str]) -> list[object]:
    """Wait until nothing is left, and tell what is left when it does not go."""
    deadline = time.monotonic() + PATIENCE_S
    while left := [*processes_with(marker), *processes_in(namespaces)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return left


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


@pytest.fixture
def copy_for_everybody() -> Iterator[Path]:
    """Copy what a host adapter needs to where every user may read: the checkout may be private."""
    directory = Path(tempfile.mkdtemp(dir="/tmp"))  # pytest's own directories are private
    try:
        (directory / "tuner" / "adapters").mkdir(parents=True)
        for name in ("__init__.py", "errors.py", "ports.py"):
            shutil.copy(CHECKOUT / "tuner" / name, directory / "tuner" / name)
        shutil.copy(CHECKOUT / "adapters" / "__init__.py", directory / "tuner" / "adapters")
        shutil.copytree(CHECKOUT / "adapters" / "hosts", directory / "tuner" / "adapters" / "hosts")
        shutil.copy(HERE / "use_sandbox_as_user.py", directory)
        for path in (directory, *directory.rglob("*")):
            path.chmod(0o755)
        yield directory
    finally:
        shutil.rmtree(directory)


AS_NOBODY = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--")


def python_for_everybody() -> str:
    """Find a Python that nobody may run: this one may live in a private home."""
    # Through env, because setpriv itself still finds programs with the rights of root.
    for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        version = [*AS_NOBODY, "env", candidate, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        if subprocess.run(version, capture_output=True, check=False, cwd="/").returncode == 0:
            return candidate
    pytest.fail("no Python 3.11 or later that every user may run: install python3")


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
    assert "open files are needed" in result["refusal"]
    assert result["alive"]
    assert result["ended"]
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
    assert "run as root" in said
    assert "kernel.unprivileged_userns_clone=1" in said
    assert said.count("\n") == 1


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox):
    with pytest.raises(TargetError, match="there is no program 'no-such-server'"):
        sandbox.start(["no-such-server"])
    with pytest.raises(TargetError, match="there is no program 'no-such-server'"):
        sandbox.run(["no-such-server"], timeout_s=5)

    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TargetError, match="there is no program 'setpriv'"), LocalHost().sandbox():
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
    with pytest.raises(TargetError, match="is not the sandbox's own and would outlive it"):
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

    wait_until(lambda: not Path(f"/proc/{sandbox.pid}").exists())
    with pytest.raises(TargetError, match="sandbox"):
        sandbox.read(SOMAXCONN)
    with pytest.raises(TargetError, match=r"the sandbox ended by itself .* Look for what killed it"):
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
    with pytest.raises(ConfigRejected, match=r"local: 2000000000 open files are needed, \d+ are allowed"):
        sandbox.start(["sleep", "600"], open_files=2_000_000_000)


def test_the_deadline_ends_a_command_with_all_that_descends_from_it(sandbox: Sandbox, marker: str):
    completed = sandbox.run([sys.executable, "-c", SLEEP_IN_A_TREE, marker], timeout_s=0.5)

    assert completed.timed_out
    assert wait_until_gone(marker, {}) == []


def test_a_sandbox_cannot_hold_another(sandbox: Sandbox):
    with pytest.raises(TargetError, match="cannot hold another"):
        sandbox.sandbox()
