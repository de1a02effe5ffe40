"""What every host promises, the one in memory included: tests of the core may rely on it."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.waiting import wait_until
from tests.testbed.bed import open_testbed
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.hosts.ssh import SshHost
from tuner.errors import TargetError
from tuner.ports import ABSENT, Command, Completed, FileState, Host, Sandbox
from tuner.testing.fakes import MemoryHost, completed

ECHO = ("sh", "-c", "echo hello")
SLEEP = ("sh", "-c", "echo up; exec sleep 600")


def memory_host() -> MemoryHost:
    def echo(_host: MemoryHost, argv: tuple[str, ...], _stdin: bytes) -> Completed:
        _, is_exit, status = argv[-1].partition("exit ")
        return completed(argv, returncode=int(status or 0), stdout=b"" if is_exit else b"hello\n")

    def sleep(_host: MemoryHost, _argv: tuple[str, ...], process: object) -> None:
        process.printed = b"up\n"

    return MemoryHost(commands={"sh": echo}, programs={"sh": sleep})


@pytest.fixture(scope="module")
def ssh_host() -> Iterator[SshHost]:
    """Give a machine of its own, reached over SSH."""
    with open_testbed() as bed, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(bed.home))
        host = SshHost(bed.add_host("web").ssh_url)
        yield host
        host.close()


KINDS = ["local", "sandbox", "memory", "memory sandbox", "ssh", "ssh sandbox"]


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Host, PurePosixPath]]:
    """Give each host, and a directory in which it may write."""
    with ExitStack() as stack:
        match request.param:
            case "ssh sandbox":
                far = stack.enter_context(request.getfixturevalue("ssh_host").sandbox())
                yield far, far.directory
            case "ssh":
                host = request.getfixturevalue("ssh_host")
                host.run(["mkdir", "-p", str(tmp_path)], timeout_s=10)
                yield host, PurePosixPath(tmp_path)
            case "local":
                yield LocalHost(), PurePosixPath(tmp_path)
            case "sandbox":
                sandbox = stack.enter_context(LocalHost().sandbox())
                yield sandbox, sandbox.directory
            case "memory":
                yield memory_host(), PurePosixPath("/tmp")  # noqa: S108 - nothing is there
            case _:
                inside = stack.enter_context(memory_host().sandbox())
                yield inside, inside.directory


@pytest.fixture
def host(place: tuple[Host, PurePosixPath]) -> Host:
    return place[0]


@pytest.fixture
def path(place: tuple[Host, PurePosixPath]) -> PurePosixPath:
    return place[1] / "file"


def test_a_host_has_a_name(host: Host):
    assert host.name


def test_what_is_not_there_is_absent(host: Host, path: PurePosixPath):
    assert host.read(path) == ABSENT


def test_what_was_written_is_read(host: Host, path: PurePosixPath):
    state = FileState(content=b"a\x00b\n", mode=0o600, uid=os.getuid(), gid=os.getgid())

    host.write(path, state)

    assert host.read(path) == state


def test_mode_and_owner_are_kept_when_they_are_left_open(host: Host, path: PurePosixPath):
    host.write(path, FileState(content=b"old", mode=0o640))
    host.write(path, FileState(content=b"new"))

    found = host.read(path)
    assert (found.content, found.mode, found.uid) == (b"new", 0o640, os.getuid())


def test_writing_absence_removes_and_may_be_repeated(host: Host, path: PurePosixPath):
    host.write(path, FileState(content=b"x"))
    host.write(path, ABSENT)
    host.write(path, ABSENT)

    assert host.read(path) == ABSENT


def test_a_file_of_the_kernel_that_is_not_there_cannot_be_made(host: Host):
    with pytest.raises(TargetError, match="no_such_setting"):
        host.write(PurePosixPath("/proc/sys/net/core/no_such_setting"), FileState(content=b"1"))


def test_a_command_that_ends_gives_what_it_printed(host: Host):
    result = host.run(ECHO, timeout_s=30, cpus=frozenset({0}), open_files=100)

    assert (result.argv, result.returncode, result.stdout) == (ECHO, 0, b"hello\n")
    assert not result.timed_out


@pytest.mark.parametrize("verb", ["run", "start"])
def test_an_unknown_program_is_the_targets_fault(host: Host, verb: str):
    with pytest.raises(TargetError, match="there is no program 'no-such-program'"):
        host.run(["no-such-program"], timeout_s=5) if verb == "run" else host.start(["no-such-program"])


def test_a_started_program_runs_until_it_is_stopped(host: Host):
    process = host.start(SLEEP, cpus=frozenset({0}), open_files=100)
    try:
        assert process.pid > 1
        assert process.poll() is None
        wait_until(lambda: process.output() == b"up\n")
    finally:
        process.stop(timeout_s=5)

    assert process.poll() is not None
    process.stop(timeout_s=5)


@pytest.mark.parametrize("host", [LocalHost(), memory_host()], ids=["local", "memory"])
def test_what_was_started_in_a_sandbox_ends_with_it(host: Host):
    with host.sandbox() as sandbox:
        process = sandbox.start(SLEEP)
        assert process.poll() is None
        assert sandbox.pid > 0

    assert process.poll() is not None


@pytest.mark.parametrize("host", [LocalHost(), memory_host()], ids=["local", "memory"])
def test_what_was_written_in_a_sandbox_is_not_outside(host: Host):
    def write_inside(sandbox: Sandbox) -> PurePosixPath:
        sandbox.write(sandbox.directory / "file", FileState(content=b"x"))
        return sandbox.directory / "file"

    with host.sandbox() as sandbox:
        path = write_inside(sandbox)
        assert sandbox.read(path).content == b"x"
        assert host.read(path) == ABSENT


def test_commands_run_up_to_the_first_that_fails_and_may_not(host: Host):
    commands = [Command(argv=ECHO), Command(argv=("sh", "-c", "exit 3"), may_fail=True), Command(argv=ECHO)]
    done = host.run_all([*commands, Command(argv=("sh", "-c", "exit 4")), Command(argv=ECHO)])

    assert [each.returncode for each in done] == [0, 3, 0, 4]


def test_a_look_knows_what_it_read_and_what_is_absent(host: Host, path: PurePosixPath):
    host.write(path, FileState(content=b"x"))

    look = host.look([path, path.with_name("nothing")])

    assert look.read(path) == host.read(path)
    assert look.read(path.with_name("nothing")) == ABSENT
