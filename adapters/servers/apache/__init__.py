"""Apache httpd 2.4: with the event, the worker or the prefork MPM, or with the MPM as one more setting.

Each MPM is a server of its own, because it is another program to tune: `apache` is event and stays so,
whatever else there is. A private instance is as Debian packages it, with other settings. An installed
service gets one drop-in. What that cannot change is missing in `facts.current`, and a configuration that has
it is refused: directives that a site or another part of the server sets for itself (CustomLog always), those
of modules that are not loaded, and the MPM itself.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from tuner.adapters.servers.apache import log_format, protocols
from tuner.adapters.servers.apache import status as status
from tuner.adapters.servers.apache.builds import BUILDS, build_of, find_build, write_place
from tuner.adapters.servers.apache.config import CONFIG_FILE, write_configuration
from tuner.adapters.servers.apache.drop_in import write_drop_in
from tuner.adapters.servers.apache.installation import (
    aim_installation,
    find_apache,
    read_refusals,
    read_version,
    tree_of,
)
from tuner.adapters.servers.apache.mpm import EVENT, PREFORK, WORKER, count_connections, count_own_threads
from tuner.adapters.servers.apache.read_back import read_printed
from tuner.errors import NotReady
from tuner.kit import programs, readback, services
from tuner.kit.builds import find_account, name_package, name_programs
from tuner.ports import (
    FASTCGI,
    HTTP,
    WEBSOCKET,
    Argv,
    Completed,
    Config,
    Facts,
    FileReader,
    Files,
    Host,
    Installation,
    LineFormat,
    LoggingServer,
    Needs,
    PrivateServer,
    Process,
    Scalar,
    SentRequest,
    Site,
    SiteServer,
)

# apachectl runs `ulimit -n 8192` first when it is root (/usr/sbin/apachectl, APACHE_ULIMIT_MAX_FILES).
OPEN_FILES = 8192
SPARE_FILES = 192
"""Of a process besides its connections: logs, listeners, pages that are being sent."""


_COMPLAINT = re.compile(
    # Saturation, as the prefork, worker and event MPMs word it.
    r"AH(?:00161|00162|00286|00287|00288|00484|00485|00486|10159|03490)\b"
    # Children that do not start or die, stack sizes that are not taken.
    r"|AH(?:02324|02325|00480|00481|02435|02436|00052|00051|00050)\b"
    # No listener, backends, errno 24, 11 and 12: open files, threads, memory.
    r"|AH(?:00015|00072|00076|00940|00941|00959|01079)\b|\((?:24|11|12)\)"
    r"|:(?:emerg|alert|crit|error)\]"
)
_STACK_REFUSED = re.compile(rb"AH0243[56]: WARNING: ThreadStackSize of \d+ is inappropriate, using default")
_LOG_PREFIX = re.compile(r"^\[[^\]]*\d{4}\] (?=\[)|\[pid \d+(?::tid \d+)?\] |\[client [^\]]*\] ")


class ApacheMpm:
    """The server adapter for Apache httpd with the MPM as a setting, as a private instance."""

    name: ClassVar[str] = "apache-mpm"
    mpm: ClassVar[str] = EVENT
    """Which one is loaded unless a configuration says another."""
    package: ClassVar[str] = name_package(BUILDS)
    denied: ClassVar[tuple[str, ...]] = (
        *("user", "group", "sslprotocol", "sslciphersuite", "sslverify*", "sslproxyverify*", "require*"),
        *(
            "sslhonorcipherorder",
            "sslcompression",
            "sslinsecurerenegotiation",
            "sslopensslconfcmd",
            "sslfips",
        ),
        *("sslcertificate*", "sslca*", "sslusestapling", "sslstrictsni*", "h2moderntlsonly"),
        *("limitrequest*", "traceenable", "allowoverride*", "options"),
    )

    def __init__(self, *, program: str = "") -> None:
        """Take the program at this path; without one it is looked for."""
        self._program = program

    def detect(self, host: Host) -> Facts:
        program, completed = programs.find_program(
            host, name_programs(BUILDS), "-V", package=self.package, named=self._program
        )
        build, shared = find_build(host, programs.decode(completed))
        user, group = find_account(host, build.users)
        compiled_in = programs.decode(host.run((program, "-l"), timeout_s=programs.COMMAND_TIMEOUT_S))
        modules = frozenset(re.findall(r"mod_(\w+)\.c", compiled_in))
        return Facts(
            version=read_version(completed, host),
            program=PurePosixPath(program),
            modules=modules,
            offers=protocols.name_missing(self.mpm, modules | shared, build),
            build=build,
            user=user,
            group=group,
            cores=programs.read_online_cpus(host),
            has_thread_per_connection=True,
            passes_to=frozenset({HTTP, FASTCGI, WEBSOCKET}),
        )

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        return {site.directory / CONFIG_FILE: write_configuration(config, site, facts, mpm=self.mpm).encode()}

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return (str(facts.program), "-t", "-f", str(site.directory / CONFIG_FILE))

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        return read_refusals(checked)

    def start(self, site: Site, facts: Facts) -> Argv | None:
        return (str(facts.program), "-f", str(site.directory / CONFIG_FILE), "-DFOREGROUND")

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        found = _read_status(host, site)
        sockets = readback.read_listening_sockets(host, site.port)
        found |= status.judge_listeners(sockets, config, facts.cores)
        if process is not None and process.pid:
            besides = protocols.count_http2_workers(config, site)
            counts = _await_children(host, config, process.pid, besides)
            found |= status.judge_children(counts, config, besides)
        # `-t` takes any stack size; only the log says that it was not used.
        if _STACK_REFUSED.search(host.read(site.error_log).content or b""):
            found["ThreadStackSize"] = 0
        found |= read_printed(host, config, facts, site)
        return {name: value for name, value in found.items() if name in config}

    def needs(self, config: Config) -> Needs:
        processes = int(config.get("ServerLimit", 0))
        tasks = processes * count_own_threads(config) + services.SPARE_TASKS
        return Needs(open_files=max(OPEN_FILES, count_connections(config) + SPARE_FILES), tasks=tasks)

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return programs.find_complaints(log, about=_COMPLAINT, prefix=_LOG_PREFIX)

    def usual_log_formats(self) -> tuple[LineFormat, ...]:
        return (log_format.VHOST_COMBINED,)

    def read_log_format(self, text: str) -> LineFormat | None:
        return log_format.read_log_format(text)

    def find_logs(self, installation: Installation) -> Mapping[PurePosixPath, str]:
        return log_format.find_logs(installation)


class Apache(ApacheMpm):
    """The server adapter for Apache httpd with the event MPM."""

    name: ClassVar[str] = "apache"

    def detect(self, host: Host) -> Facts:
        facts = super().detect(host)
        return replace(facts, drop_in=write_place(build_of(facts), self.name))

    def find(self, host: Host) -> Installation:
        return find_apache(host, self.package, self.mpm, named=self._program)

    def aim(self, host: Host, installation: Installation, requests: Sequence[SentRequest]) -> Installation:
        return aim_installation(installation, requests)

    def rewrite(self, config: Config, installation: Installation) -> Files:
        return write_drop_in(config, tree_of(installation), installation.facts)

    def in_force(
        self, host: Host, look: FileReader, config: Config, installation: Installation, pid: int
    ) -> Config:
        found = status.read_installed(host, look, config, installation, pid)
        return {name: value for name, value in found.items() if name in config}


class ApacheWorker(Apache):
    """The server adapter for Apache httpd with the worker MPM."""

    name: ClassVar[str] = "apache-worker"
    mpm: ClassVar[str] = WORKER


class ApachePrefork(Apache):
    """The server adapter for Apache httpd with the prefork MPM."""

    name: ClassVar[str] = "apache-prefork"
    mpm: ClassVar[str] = PREFORK


def _read_status(host: Host, site: Site) -> dict[str, Scalar]:
    """Read what the status page of an instance tells: its MPM, and how many workers it may have."""
    answer = readback.ask_status(host, site, status.PAGE, server="Apache")
    found = status.judge_status(answer)
    if not found:
        printed = programs.decode(answer)[:200]
        raise NotReady(
            f"apache: /server-status printed {printed!r} instead of a scoreboard. Read Apache's error log."
        )
    return found


def _await_children(host: Host, config: Config, parent: int, besides: int) -> list[int]:
    """Count threads when all children are complete, or no more become so.

    A child that still starts has fewer threads, and then for a moment one more, which starts the others.

    Args:
        host: where they run.
        config: what was asked.
        parent: process of which they are children.
        besides: threads of modules in each child.
    """
    threads = count_own_threads(config) + besides
    started = int(config.get("StartServers", 1))
    readback.settle(lambda: status.count_threads(host, parent).count(threads), started)
    return status.count_threads(host, parent)


if TYPE_CHECKING:
    _private: PrivateServer = ApacheMpm()
    _logging: LoggingServer = ApacheMpm()
    _installed: SiteServer = Apache()
