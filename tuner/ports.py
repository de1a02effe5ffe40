"""The three ports of tuner, Host, Server and LoadGenerator, and the data they exchange.

An adapter is a pure function wrapped in facts about one program: it turns a configuration into file
contents and names commands. All effects happen once, in the core, through a Host.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import ClassVar, Protocol, runtime_checkable

Scalar = bool | int | float | str
Config = Mapping[str, Scalar]
"""One value for every active parameter (derived settings included), by parameter name."""
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
    """What gives files: a host, or what was read of one before."""

    def read(self, path: PurePosixPath) -> FileState:
        """Read a file whole, or say that it is absent."""


class Lookable(FileReader, Protocol):
    """What files can be read of, one by one or many at once."""

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        """Read many small files, over SSH in one round trip, and give a reader that knows them.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a server's installation on a host."""

    version: tuple[int, ...] = ()
    program: PurePosixPath = PurePosixPath()
    modules: frozenset[str] = frozenset()
    current: Mapping[str, Scalar] = field(default_factory=dict)
    """Values in force before anything is changed, by parameter name (used by sysctl)."""
    cores: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where one private instance of a server lives."""

    directory: PurePosixPath
    document_root: PurePosixPath
    port: int = 8080
    cpus: CpuSet = frozenset()
    """CPUs that the instance was given, for servers that pin their own workers; empty means all."""


class Clock(Protocol):
    """Where time comes from. The module `time` is one."""

    def time(self) -> float:
        """Return seconds since the epoch."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""

    def sleep(self, seconds: float, /) -> None:
        """Let so many pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How an installed program is checked, started and stopped. All of these commands need root."""

    name: str
    """Of its unit or init script: apache2, httpd, nginx, php8.2-fpm; for messages as well."""
    check: Argv | None
    """Must exit with 0 before the service is started again; None when there is nothing to check."""
    stop: Argv
    """Exits with 0 also when it is stopped already."""
    start: Argv
    reload: Argv | None
    """None when a reload is not possible."""
    is_systemd: bool = False
    pid_file: PurePosixPath = PurePosixPath()
    """Holds the id of its first process while it runs; systemd's own answer is taken where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """An installed server as it is found on a host, before anything is changed."""

    facts: Facts
    """With `current`: the values in force, by the names that the server's search space uses."""
    files: Files
    """Its configuration files that hold settings, as they are."""
    service: Service | None
    """None for what needs no process (sysctl)."""
    port: int | None = None
    """Where it answers; None when that cannot be told, or when it does not speak HTTP (php-fpm)."""
    log: PurePosixPath | None = None
    """Its error log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a configuration needs of the service manager; None where it makes no difference."""

    open_files: int | None = None
    """RLIMIT_NOFILE of its processes."""
    tasks: int | None = None
    """Processes and threads at the same time."""


@runtime_checkable
class InstalledServer(Protocol):
    """What a server adapter knows besides `Server` when it can tune an installed service (mode: managed)."""

    def find(self, host: Host) -> Installation:
        """Find the installed service: layout, version, modules, files, values in force, how it is started.

        Raises TargetError saying what was looked for, where, and what to install or to correct.
        """

    def rewrite(self, config: Config, installation: Installation) -> Files:
        """Give the files that make a configuration so, where they differ from what is installed. Pure.

        A parameter whose value is the one in force (`facts.current`) changes nothing: the present
        configuration gives no file at all. Everything that is not changed stays byte for byte. One drop-in
        where the server allows it, otherwise the user's file with only the changed directives rewritten.

        Raises ConfigRejected for a value that cannot be one value of its directive (a newline, a quote, a
        brace, a semicolon): such a value never reaches a file.
        """

    def needs(self, config: Config) -> Needs:
        """Say what a configuration needs of the service manager. Pure."""

    def in_force(
        self, host: Host, look: FileReader, config: Config, installation: Installation, pid: int
    ) -> Config:
        """Read back what is really in force, for those parameters that can be read back.

        Args:
            host: runs what has to be asked (ss, a status page).
            look: knows the files of the process tree of `pid`, and reads others.
            config: what was asked.
            installation: as it was found.
            pid: the service's first process; 0 where there is none.
        """


class Server(Protocol):
    """A program or subsystem whose settings change."""

    name: ClassVar[str]
    package: ClassVar[str]
    """The Debian package to install when it is missing; empty for what the kernel gives."""

    def detect(self, host: Host) -> Facts:
        """Find out version, program and modules. Raises TargetError naming the package."""

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        """Turn a configuration into the files that make it so. Pure."""

    def check(self, site: Site, facts: Facts) -> Argv | None:
        """Name the command that must accept the files before the start; None if there is none."""

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        """Read what the check printed: one sentence for each value that was refused or would be changed."""

    def start(self, site: Site, facts: Facts) -> Argv | None:
        """Name the command that serves in the foreground; None when nothing has to be started."""

    def open_files(self, config: Config) -> int | None:
        """Say how many open files the start needs; None for the host's own limit."""

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        """Read back what is really in force, for those parameters that can be read back."""

    def complaints(self, log: bytes) -> tuple[str, ...]:
        """Find the lines of the server's own log that explain a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What the load generator sends during one window."""

    url: str
    connections: int
    keepalive: bool
    duration_s: float
    threads: int = 1
    rate_rps: float | None = None
    """Requests per second over all connections; None sends as fast as answers come (closed loop)."""
    protocol: str = "http/1.1"
    """`http/1.1`, `h2c` (HTTP/2 over cleartext TCP, known beforehand) or `h2` (HTTP/2 over TLS)."""
    body_bytes: int | None = None
    """Length of the correct body; None accepts any."""
    response_bytes: int | None = None
    """Bytes of one whole correct response, header included, as probed in this start."""
    directory: PurePosixPath = PurePosixPath("/tmp")  # noqa: S108 - a default for parsing only
    """Where the generator may put its script and its raw data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Requests that got no correct response, by kind. Each failed request is counted once."""

    connect: int = 0
    read: int = 0
    write: int = 0
    timeout: int = 0
    status: int = 0
    length: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        return (
            self.connect + self.read + self.write + self.timeout
            + self.status + self.length + self.other
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Response times of one window in milliseconds."""

    quantiles_ms: Mapping[float, float]
    """Quantile (0.5, 0.99 …) → milliseconds."""
    samples: int
    corrected: bool = False
    """True when the generator added synthetic samples (wrk); comparable only with its like."""
    mean_ms: float | None = None
    max_ms: float | None = None
    histogram: Mapping[float, int] = field(default_factory=dict)
    """Upper bound of a bin in milliseconds → count; empty when the generator gives no raw data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectTime:
    """Time to establish a connection in milliseconds."""

    min_ms: float
    mean_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What one run of a load generator counted."""

    duration_s: float
    correct: int
    """Responses with the expected status and body length."""
    failures: Failures
    bytes: int = 0
    latency: Latency | None = None
    connect_time: ConnectTime | None = None
    aborted: str | None = None
    """Why the generator gave up before its time; None if it did not."""
    generator_fault: str | None = None
    """What the generator itself ran out of (local ports, open files); the server is not to blame for it."""

    @property
    def goodput_rps(self) -> float:
        return self.correct / self.duration_s if self.duration_s > 0 else 0.0


class LoadGenerator(Protocol):
    """A program that sends the workload and counts what comes back."""

    name: ClassVar[str]
    package: ClassVar[str]

    def version_command(self) -> Argv | None:
        """Name the command that prints its version; None when there is none."""

    def read_version(self, printed: Completed) -> str:
        """Find the version in what that command printed; empty when it is not there."""

    def files(self, workload: Workload) -> Files:
        """Give the files it needs in the workload's directory. Pure."""

    def command(self, workload: Workload) -> Argv:
        """Turn the workload into a command line. Pure. Raises UsageError for what it cannot send."""

    def outputs(self, workload: Workload) -> tuple[PurePosixPath, ...]:
        """Name the files that it writes and `parse` reads."""

    def parse(self, completed: Completed, outputs: Files, workload: Workload) -> LoadResult:
        """Read the counts. Pure. Raises LoadFailed with the output when it cannot be understood."""
