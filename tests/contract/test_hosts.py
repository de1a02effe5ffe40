"""What every host promises, the one in memory included: tests of the core may rely on it."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

import pytest

from tests.fakes import MemoryHost, completed
from tests.integration.waiting import wait_until
from tuner.adapters.hosts.local import LocalHost
from tuner.errors import TargetError
from tuner.ports import ABSENT, Completed, FileState, Host, Sandbox

ECHO = (sys.executable, "-I", "-S", "-c", "print('hello')")
SLEEP = (sys.executable, "-I", "-S", "-c", "import time; print('up', flush=True); time.sleep(600)")


def memory_host() -> MemoryHost:
    def echo(_host: MemoryHost, argv: tuple[str, ...], _stdin: bytes) -> Completed:
        return completed(argv, stdout=b"hello\n")

    def sleep(_host: MemoryHost, _argv: tuple[str, ...], process: object) -> None:
        process.printed = b"up\n"

    return MemoryHost(commands={sys.executable: echo}, programs={sys.executable: sleep})


@pytest.fixture(params=["local", "sandbox", "memory", "memory sandbox"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Host, PurePosixPath]]:
    """Give each host, and a directory in which it may write."""
    with ExitStack() as stack:
        match request.param:
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
