"""The port Server: a program or subsystem whose settings change.

What every adapter has is `Server`. One that can start a private instance is a `PrivateServer`, one that can
change the installed service is an `InstalledServer`; an adapter is one of them or both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import ClassVar, Protocol, runtime_checkable

from tuner.ports.host import Argv, Completed, CpuSet, FileReader, Files, Host, Process
from tuner.ports.load import HTTP1

HTTP = "http"
FASTCGI = "fastcgi"
"""https://fastcgi-archives.github.io/FastCGI_Specification.html"""
WEBSOCKET = "websocket"
"""RFC 6455: a request of HTTP/1.1 turns its connection into one of messages in both directions."""
PROTOCOLS = (HTTP, FASTCGI, WEBSOCKET)

Scalar = bool | int | float | str
Config = Mapping[str, Scalar]
"""One value for every active parameter (derived settings included), by parameter name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIn:
    """A directory of files that an installed server reads after its own."""

    directory: PurePosixPath
    enable: Argv
    """Switches the file on, as `a2enconf tuner-apache`, if need be; the file is tuner-SERVER.conf."""
    disable: Argv
    check: Argv
    restart: Argv
    note: str
    """Why a reload is not enough."""
    log_directory: str
    """What its files write for the directory of its logs."""
    elsewhere: str = ""
    """What has to be done by hand besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """How one packager lays a server out: a row of the table beside its adapter.

    Relative paths are below the prefix that the program was built with.
    """

    name: str
    """Who packages it: `Debian, Ubuntu`."""
    programs: tuple[str, ...]
    """Paths of its program."""
    says: Mapping[str, str] = field(default_factory=dict)
    """What the program prints of how it was built, as far as that tells this build from others."""
    directory: PurePosixPath = PurePosixPath()
    """Of its configuration."""
    modules: PurePosixPath | None = None
    """Directory of its modules; None where nothing is loaded from it by name."""
    users: tuple[str, ...] = ()
    """As whom it serves, the usual one first."""
    services: tuple[str, ...] = ()
    """Its unit of systemd, or its script of OpenRC, the usual name first."""
    installer: str = ""
    """Package manager that installs it; empty where none does."""
    package: str = ""
    """Its name for this package manager."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a server's installation on a host."""

    version: tuple[int, ...] = ()
    program: PurePosixPath = PurePosixPath()
    modules: frozenset[str] = frozenset()
    current: Mapping[str, Scalar] = field(default_factory=dict)
    """Active values before anything is changed, by parameter name (used by sysctl)."""
    withheld: Mapping[str, str] = field(default_factory=dict)
    """Parameter → why it is left alone on this host, as one that could not be put back for sure."""
    bounded: frozenset[str] = frozenset()
    """Settings of which the kernel may grant less than a file says, for as long as the program runs."""
    cores: int = 1
    port: int | None = 8080
    """Where a private instance accepts connections when no other server of the study does so there; None for
    what accepts none."""
    speaks: str = HTTP
    """The protocol in which a private instance is asked."""
    passes_to: frozenset[str] = frozenset()
    """Protocols in which a private instance can ask another server (`Site.backend`)."""
    needs_backend: bool = False
    """A private instance answers nothing itself: another server has to stand behind it."""
    offers: Mapping[str, str] = field(default_factory=dict)
    """What a private instance can be loaded with besides HTTP/1.1 in the clear (TLS, H2 and H2C of
    `tuner.ports.load`), each with what is missing for it here and which package has it; empty where nothing
    is."""
    has_thread_per_connection: bool = False
    """An open connection occupies a thread: settings then differ most when connections are not kept."""
    drop_in: DropIn | None = None
    """Where an installed server takes settings besides its own files; None where these have to be changed."""
    build: Build | None = None
    """Whose build it is, with its paths on this host; None where no table has it."""
    user: str = ""
    """As whom a private instance serves that root starts; empty where it does not change its user."""
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Where a private instance is asked by the server before it, inside their sandbox."""

    protocol: str = HTTP
    port: int = 0
    socket: PurePosixPath | None = None
    """A Unix socket instead of the port."""

    @property
    def address(self) -> str:
        """Return where it listens: `127.0.0.1:PORT`, or `unix:PATH`."""
        return f"127.0.0.1:{self.port}" if self.socket is None else f"unix:{self.socket}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The certificate that a private instance shows, made for its sandbox alone."""

    file: PurePosixPath
    """In PEM; clients check it by itself, as nobody else vouches for it."""
    key: PurePosixPath
    """Its private key, in PEM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where one private instance of a server lives."""

    directory: PurePosixPath
    document_root: PurePosixPath
    port: int = 8080
    protocol: str = HTTP1
    """What clients speak to it: HTTP1, H2C or H2."""
    certificate: Certificate | None = None
    """With which it speaks TLS; None where it speaks in the clear."""
    backend: Upstream | None = None
    """The server that the instance passes requests to; None where it answers all of them itself."""
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    """The configuration that it is started with, for servers whose commands hold values."""
    cpus: CpuSet = frozenset()
    """CPUs that the instance was given, for servers that pin their own workers; empty means all."""

    @property
    def error_log(self) -> PurePosixPath:
        """Where the instance writes what went wrong; what it prints is read, too."""
        return self.directory / "error.log"

    @property
    def access_log(self) -> PurePosixPath:
        """Where the instance writes its requests, if a configuration has it write them."""
        return self.directory / "access.log"


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
    restart: Argv | None = None
    """Restarts it along with what depends on it; None where it is stopped, and then started."""
    is_systemd: bool = False
    uses_environment: bool = True
    """Whether it may need the environment that it was started with."""
    pid_file: PurePosixPath = PurePosixPath()
    """Holds the id of its first process while it runs; systemd's own answer is taken where there is one."""
    title: str = ""
    """What the command line of its first process has in it; empty where that is not known."""
    stays: str = ""
    """What keeps its start command from returning, with its place; empty where it returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """An installed server as it is found on a host, before anything is changed."""

    facts: Facts
    """With `current`: the active values, by the names that the server's search space uses."""
    files: Files
    """Its configuration files that hold settings, as they are."""
    service: Service | None
    """None for what needs no process (sysctl)."""
    port: int | None = None
    """Where it answers; None when that cannot be told, or when it does not speak HTTP (php-fpm)."""
    log: PurePosixPath | None = None
    """Its error log."""
    sites: tuple[str, ...] = ()
    """URLs of its virtual hosts by their names, as its files give them: `http://shop.example/`."""
    passes_to: tuple[str, ...] = ()
    """Addresses of the programs behind it that answer the load by FastCGI, as its files name them
    (`unix:/run/php/php8.2-fpm.sock`, `127.0.0.1:9000`); for an installation that was aimed at requests."""
    layout: object = None
    """What the adapter has read in the files; for itself alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """One request of the load, as it reaches an installed server."""

    scheme: str
    addresses: tuple[str, ...]
    """Where the client connects to, in the order in which it tries; none when that is not known."""
    port: int
    host: str
    """The host that it names: a name, or an address without brackets."""
    server_name: str = ""
    """The name in the handshake of TLS; empty without TLS, and where the client connects to an address."""
    path: str = "/"
    """Path and query."""
    method: str = "GET"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a configuration needs of whatever starts the server; None where it makes no difference."""

    open_files: int | None = None
    """RLIMIT_NOFILE of its processes."""
    tasks: int | None = None
    """Processes and threads at the same time."""


class Server(Protocol):
    """What every server has."""

    name: ClassVar[str]
    package: ClassVar[str]
    """The Debian package to install when it is missing; empty for what the kernel gives."""
    denied: ClassVar[tuple[str, ...]]
    """Security settings that no space may tune: as whom the server runs, what it accepts as proof, whom it
    lets in. Patterns in lower case, as `ssl_verify*`."""

    def detect(self, host: Host) -> Facts:
        """Find version, program and modules. Raises TargetError naming the package."""

    def needs(self, config: Config) -> Needs:
        """Return the resources that a configuration needs. Pure."""

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        """Read what the check printed: one sentence for each value that was refused or would be changed."""

    def complaints(self, log: bytes) -> tuple[str, ...]:
        """Find the lines of the server's own log that explain a failure."""


@runtime_checkable
class PrivateServer(Server, Protocol):
    """A server of which tuner can start a private instance (mode: sandbox)."""

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        """Turn a configuration into the files that make it so. Pure."""

    def check(self, site: Site, facts: Facts) -> Argv | None:
        """Return the command that must accept the files before the start; None if there is none."""

    def start(self, site: Site, facts: Facts) -> Argv | None:
        """Return the command that serves in the foreground; None when nothing has to be started."""

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        """Read back what is really active, for those parameters that can be read back."""


@runtime_checkable
class BackendServer(PrivateServer, Protocol):
    """A private server with a say in how the server before it asks; others are asked on `Site.port`."""

    def upstream(self, config: Config, site: Site) -> Upstream:
        """Return where an instance with this configuration listens. Pure."""

    def page_errors(self, host: Host, page: bytes, log: bytes) -> tuple[str, ...]:
        """Find what a failed program left in a page, whatever its status, and in the servers' logs. Pure."""


@runtime_checkable
class StoppableServer(PrivateServer, Protocol):
    """A private server that is asked to end before its sandbox is closed; others end with it."""

    def stop(self, site: Site, facts: Facts) -> Argv | None:
        """Return the command that asks a running instance to end; None when there is none."""


@runtime_checkable
class InstalledServer(Server, Protocol):
    """A server that tuner can change where it is installed (mode: managed)."""

    def find(self, host: Host) -> Installation:
        """Find the installed service: layout, version, modules, files, active values, how it is started.

        Raises TargetError saying what was looked for, where, and what to install or to correct.
        """

    def rewrite(self, config: Config, installation: Installation) -> Files:
        """Return the files that make a configuration so, where they differ from what is installed. Pure.

        A parameter whose value is the active one (`facts.current`) changes nothing: the present
        configuration gives no file at all. Everything that is not changed stays byte for byte. One drop-in
        where the server allows it, otherwise the user's file with only the changed directives rewritten.

        Raises ConfigRejected for a value that cannot be one value of its directive (a newline, a quote, a
        brace, a semicolon): such a value never reaches a file.
        """

    def in_force(
        self, host: Host, look: FileReader, config: Config, installation: Installation, pid: int
    ) -> Config:
        """Read back what is really active, for those parameters that can be read back.

        Args:
            host: runs what has to be asked (ss, a status page).
            look: knows the files of the process tree of `pid`, and reads others.
            config: what was asked.
            installation: as it was found.
            pid: the service's first process; 0 where there is none.
        """


@runtime_checkable
class LookedAtServer(InstalledServer, Protocol):
    """An installed server whose own test of its configuration changes the host."""

    def find_running(self, host: Host, command: str) -> Installation:
        """Find what one process runs with, by its command line, and change nothing.

        It has no service where another configuration than that of the service is in use. Raises as `find`.
        """


@runtime_checkable
class LayeredServer(InstalledServer, Protocol):
    """An installed server in whose files a site or a path overrides what stands above it."""

    def find_overrides(self, config: Config, installation: Installation) -> Mapping[str, str]:
        """Return the settings that other sites or paths give otherwise, with the places where they do. Pure.

        `config` is what `rewrite` writes; what is written does not reach the requests of those places.
        """


@runtime_checkable
class PooledServer(InstalledServer, Protocol):
    """An installed server that answers at several addresses, with settings of its own at each."""

    def find_behind(self, host: Host, addresses: Sequence[str]) -> Installation:
        """Find the installed service, with the settings of what answers at one of these addresses.

        They are written as the web server before it names them (`Installation.passes_to`). Raises TargetError
        where nothing answers there.
        """


@runtime_checkable
class SiteServer(InstalledServer, Protocol):
    """An installed server whose settings may differ from site to site, and from path to path."""

    def aim(self, host: Host, installation: Installation, requests: Sequence[SentRequest]) -> Installation:
        """Return the installation with the settings that act on these requests; others are withheld.

        `facts.current`, `facts.withheld` and what `rewrite` changes are then those of the site and the path
        that answer. `host` is asked which files there are; nothing is changed.
        """
