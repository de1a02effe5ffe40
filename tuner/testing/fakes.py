"""A host in memory, for tests of adapters and of the core: files are a dictionary, programs are functions.

It keeps the promises of `tuner.ports.Host` and `Sandbox`: what is absent is ABSENT, an unknown program is a
TargetError, leaving a sandbox ends what was started in it. It shows what was done to it, and can be made to
fail at any step.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.ports import ABSENT, Argv, Completed, CpuSet, FileReader, FileState, Host
from tuner.ports import Command as SentCommand

SANDBOX_PID = 4242
KERNELS = (PurePosixPath("/proc"), PurePosixPath("/sys"))
NEW_FILE = FileState(content=b"", mode=0o644, uid=0, gid=0)
TABLE_HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
)

Command = Callable[["MemoryHost", Argv, bytes], Completed]
"""What a program does that is run to its end."""
Program = Callable[["MemoryHost", Argv, "MemoryProcess"], None]
"""What a program does when it is started: open a port, say something, end."""


class MemoryProcess:
    """A started program that runs until a test, or its sandbox, ends it."""

    def __init__(self, pid: int, argv: Argv, cpus: CpuSet | None, open_files: int | None) -> None:
        self.argv = argv
        self.cpus = cpus
        self.open_files = open_files
        self.printed = b""
        self.status: int | None = None
        self._pid = pid

    @property
    def pid(self) -> int:
        return self._pid

    def poll(self) -> int | None:
        return self.status

    def output(self) -> bytes:
        return self.printed

    def stop(self, *, timeout_s: float) -> None:
        self.end(-15 if timeout_s > 0 else -9)

    def end(self, status: int, printed: bytes = b"") -> None:
        """End it, unless it has ended."""
        self.printed += printed
        if self.status is None:
            self.status = status


@dataclass(kw_only=True)
class MemoryHost:
    """A machine of dictionaries."""

    name: str = "memory"
    files: dict[PurePosixPath, FileState] = field(default_factory=dict)
    commands: dict[str, Command] = field(default_factory=dict)
    """Program → what it does when it is run."""
    programs: dict[str, Program] = field(default_factory=dict)
    """Program → what it does when it is started."""
    ran: list[Argv] = field(default_factory=list)
    written: list[PurePosixPath] = field(default_factory=list)
    started: list[MemoryProcess] = field(default_factory=list)
    sandboxes: list["MemorySandbox"] = field(default_factory=list)
    listening: set[int] = field(default_factory=set)
    """TCP ports."""
    _pids: Iterator[int] = field(default_factory=lambda: itertools.count(5000))

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
        self.ran.append(tuple(argv))
        if argv[0] not in self.commands:
            raise TargetError(f"{self.name}: there is no program {argv[0]!r} that may be run.")
        return self.commands[argv[0]](self, tuple(argv), stdin)

    def start(
        self, argv: Sequence[str], *, cpus: CpuSet | None = None, open_files: int | None = None
    ) -> MemoryProcess:
        if argv[0] not in self.programs:
            raise TargetError(f"{self.name}: there is no program {argv[0]!r} that may be run.")
        process = MemoryProcess(next(self._pids), tuple(argv), cpus, open_files)
        self.started.append(process)
        self.programs[argv[0]](self, tuple(argv), process)
        return process

    def run_all(self, commands: Sequence[SentCommand]) -> tuple[Completed, ...]:
        ended: list[Completed] = []
        for each in commands:
            ended.append(self.run(each.argv, timeout_s=each.timeout_s, stdin=each.stdin))
            if ended[-1].returncode != 0 and not each.may_fail:
                break
        return tuple(ended)

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        return self

    def read(self, path: PurePosixPath) -> FileState:
        return self.files.get(path, ABSENT)

    def write(self, path: PurePosixPath, state: FileState) -> None:
        if any(path.is_relative_to(root) for root in KERNELS):
            state = self._value_for_the_kernel(path, state)
        self.written.append(path)
        if state.content is None:
            self.files.pop(path, None)
            return
        before = self.files.get(path, NEW_FILE)
        self.files[path] = FileState(
            content=state.content,
            mode=before.mode if state.mode is None else state.mode,
            uid=before.uid if state.uid is None else state.uid,
            gid=before.gid if state.gid is None else state.gid,
        )

    def _value_for_the_kernel(self, path: PurePosixPath, state: FileState) -> FileState:
        """Behave as /proc and /sys do: files come and go with the kernel, as do their mode and owner."""
        if path not in self.files or state.content is None:
            raise TargetError(f"{self.name}: {path} cannot be written.")
        return FileState(content=state.content)

    @contextmanager
    def sandbox(self, *, share: PurePosixPath | None = None) -> Iterator["MemorySandbox"]:
        inside = MemorySandbox(
            files=dict(self.files), commands=self.commands, programs=self.programs, share=share
        )
        self.sandboxes.append(inside)
        try:
            yield inside
        finally:
            inside.is_open = False
            for process in inside.started:
                process.end(-9)


@dataclass(kw_only=True)
class MemorySandbox(MemoryHost):
    """A copy of a host's files with a network of its own."""

    share: PurePosixPath | None = None
    is_open: bool = True

    @property
    def directory(self) -> PurePosixPath:
        return PurePosixPath("/sandbox")

    @property
    def pid(self) -> int:
        return SANDBOX_PID

    def read(self, path: PurePosixPath) -> FileState:
        if path == PurePosixPath(f"/proc/{SANDBOX_PID}/net/tcp"):
            rows = "".join(f"   0: 00000000:{port:04X} 00000000:0000 0A\n" for port in sorted(self.listening))
            return FileState(content=(TABLE_HEAD + rows).encode())
        return super().read(path)


@dataclass(kw_only=True)
class FailingHost(MemoryHost):
    """A host that raises `error` at its step number `fail_at`; a step is a read, or one half of a write."""

    error: BaseException = field(default_factory=lambda: TargetError("memory: the test wants a failure."))
    fail_at: int | None = None
    steps: int = 0

    def read(self, path: PurePosixPath) -> FileState:
        self._step()
        return super().read(path)

    def write(self, path: PurePosixPath, state: FileState) -> None:
        self._step()
        super().write(path, state)
        self._step()

    def _step(self) -> None:
        self.steps += 1
        if self.steps - 1 == self.fail_at:
            raise self.error


def completed(
    argv: Sequence[str] = (),
    *,
    returncode: int = 0,
    stdout: bytes = b"",
    stderr: bytes = b"",
    timed_out: bool = False,
) -> Completed:
    """Return the result of a command."""
    return Completed(
        argv=tuple(argv),
        returncode=returncode,
        stdout=stdout,
        stderr=stderr,
        duration_s=0.01,
        timed_out=timed_out,
    )


def curl_gets(status: int, body: bytes, *, header_bytes: int = 200) -> Command:
    """Return a `curl` that gets this answer whatever it asks for, as `tuner.deploy.readiness` calls it."""
    counts = f"\n{status} {len(body)} {header_bytes} 1.1".encode()
    return lambda _host, argv, _stdin: completed(argv, stdout=body, stderr=counts)


def tail(host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
    """Print a file of the host whole."""
    content = host.read(PurePosixPath(argv[-1])).content
    if content is None:
        return completed(argv, returncode=1, stderr=b"tail: cannot open: No such file or directory")
    return completed(argv, stdout=content)


def snapshot(host: Host, paths: Sequence[PurePosixPath]) -> Mapping[PurePosixPath, FileState]:
    """Read several files."""
    return {path: host.read(path) for path in paths}
