"""The port Host: a machine on which commands run and files are read and written."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

Argv = tuple[str, ...]
CpuSet = frozenset[int]
Files = Mapping[PurePosixPath, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A command that ended, or was ended at its deadline."""

    argv: Argv
    returncode: int
    stdout: bytes
    stderr: bytes
    duration_s: float
    timed_out: bool = False
    cpu_s: float = 0.0
    """User and system CPU seconds of the command itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """What is at a path: content with mode and owner, or nothing (`content` is None)."""

    content: bytes | None
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None


ABSENT = FileState(content=None)


class Process(Protocol):
    """A program that was started and runs on."""

    @property
    def pid(self) -> int:
        """Process id as the controller's /proc shows it (0 on a remote host)."""

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""

    def output(self) -> bytes:
        """Return what it has printed so far, stdout and stderr together."""

    def stop(self, *, timeout_s: float) -> None:
        """End it: SIGTERM, then SIGKILL after the timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One of several commands that are sent together."""

    argv: Argv
    timeout_s: float = 10.0
    stdin: bytes = b""
    as_root: bool = False
    may_fail: bool = False
    """Whether the commands after it run all the same when it exits with another status than 0."""


class FileReader(Protocol):
    """A source of files: a host, or what was read of one before."""

    def read(self, path: PurePosixPath) -> FileState:
        """Read a whole file; ABSENT when there is none."""


class Lookable(FileReader, Protocol):
    """A source of files that reads many at once."""

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        """Read many small files, over SSH in one round trip, and return a reader that knows them.

        Args:
            paths: files, for the most part of /proc; one that is absent is known to be.
            trees: processes; of each and of all its descendants, those files of /proc/PID are read that tell
                its children, times, threads, limits and command line.

        What was not read here the reader reads when it is asked for. A local host reads everything only then.
        """


class Host(Lookable, Protocol):
    """A machine on which commands run and files are read and written."""

    @property
    def name(self) -> str:
        """Which machine it is: in messages, and in the journal of originals."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cpus: CpuSet | None = None,
        stdin: bytes = b"",
        open_files: int | None = None,
        as_root: bool = False,
    ) -> Completed:
        """Run a command to its end; it is killed with its children at the deadline.

        `open_files` sets its RLIMIT_NOFILE: a load generator needs one for each connection and some more.
        `as_root` runs it through sudo, unless the user is root already.
        Raises TargetError when the program does not exist or may not be run.
        """

    def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        """Run commands one after the other, over SSH in one round trip.

        What comes after the first that fails is not run, unless that one may fail: then the result is
        shorter. Raises TargetError as `run` does.
        """

    def start(
        self, argv: Sequence[str], *, cpus: CpuSet | None = None, open_files: int | None = None
    ) -> Process:
        """Start a program in the foreground; `open_files` raises its RLIMIT_NOFILE."""

    def write(self, path: PurePosixPath, state: FileState) -> None:
        """Write a file: atomic, except under /proc and /sys, where it is one write; ABSENT removes it."""

    def sandbox(self, *, share: PurePosixPath | None = None) -> AbstractContextManager["Sandbox"]:
        """Open a private place on this host; all that runs in it ends with it.

        `share` is a directory of this host, seen inside as `directory / "shared"`, read-only.
        """


class Sandbox(Host, Protocol):
    """A host of its own: fresh network, process, IPC and mount namespaces, on the same machine."""

    @property
    def directory(self) -> PurePosixPath:
        """An empty directory that only this sandbox sees."""

    @property
    def pid(self) -> int:
        """The sandbox's first process: /proc/PID/net shows its network."""


class Clock(Protocol):
    """Where time comes from. The module `time` is one."""

    def time(self) -> float:
        """Return seconds since the epoch."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""

    def sleep(self, seconds: float, /) -> None:
        """Wait so many seconds."""
