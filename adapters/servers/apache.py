"""Apache httpd 2.4 with the event MPM: a private instance as Debian packages it, with other settings."""

import re
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from tuner.adapters.servers import _readback as readback
from tuner.adapters.servers._apache_config import CONFIG_FILE, ERROR_LOG, write_configuration
from tuner.adapters.servers._complaints import find_complaints
from tuner.errors import NotReady, TargetError
from tuner.ports import Argv, Completed, Config, Facts, Files, Host, Process, Scalar, Server, Site

# apachectl runs `ulimit -n 8192` first when it is root (/usr/sbin/apachectl, APACHE_ULIMIT_MAX_FILES).
OPEN_FILES = 8192
# A child runs its workers, one listener and the main thread (server/mpm/event/event.c, start_threads).
THREADS_BESIDE_WORKERS = 2

_WARNING = re.compile(r"^(?:\[.*?\] )*(AH\d{5}: WARNING: .*)$", re.MULTILINE)
_SYNTAX_ERROR = re.compile(r"^.*(Syntax error on line \d+ of .*(?:\n.*)?)", re.MULTILINE)
_HARMLESS = re.compile(r"AH00558")
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


class Apache:
    """The server adapter for Apache httpd."""

    name: ClassVar[str] = "apache"
    package: ClassVar[str] = "apache2"

    def detect(self, host: Host) -> Facts:
        names = ("apache2", "/usr/sbin/apache2")
        program, completed = readback.find_program(host, names, "-v", package=self.package)
        printed = readback.decode(completed)
        version = re.search(r"Server version: Apache/([\d.]+)", printed)
        if version is None:
            unclear = f"{host.name}: `{program} -v` names no version: {printed[:200]!r}."
            raise TargetError(f"{unclear} Reinstall {self.package}.")
        compiled_in = readback.decode(host.run((program, "-l"), timeout_s=readback.COMMAND_TIMEOUT_S))
        return Facts(
            version=tuple(int(part) for part in version[1].split(".")),
            program=PurePosixPath(program),
            modules=frozenset(re.findall(r"mod_(\w+)\.c", compiled_in)),
            cores=readback.read_online_cpus(host),
        )

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        return {site.directory / CONFIG_FILE: write_configuration(config, site, facts).encode()}

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return (str(facts.program), "-t", "-f", str(site.directory / CONFIG_FILE))

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        printed = readback.decode(checked)
        errors = (text.replace("\n", " ") for text in _SYNTAX_ERROR.findall(printed))
        found = (*_WARNING.findall(printed), *errors)
        return tuple(dict.fromkeys(text.strip() for text in found if not _HARMLESS.search(text)))

    def start(self, site: Site, facts: Facts) -> Argv | None:
        return (str(facts.program), "-f", str(site.directory / CONFIG_FILE), "-DFOREGROUND")

    def open_files(self, config: Config) -> int | None:  # noqa: ARG002 - the port's signature
        return OPEN_FILES

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        queues = readback.read_listen_queues(host, site.port)
        found: dict[str, Scalar] = {"MaxRequestWorkers": len(_read_scoreboard(host, site.port))}
        if queues:
            found["ListenBacklog"] = min(queues)
            found |= _buckets_in_force(config, facts.cores, len(queues))
        if process is not None and process.pid:
            found |= _read_children(host, config, process.pid)
        # `-t` takes any stack size; only the log says that it was not used.
        if _STACK_REFUSED.search(host.read(site.directory / ERROR_LOG).content or b""):
            found["ThreadStackSize"] = 0
        return {name: value for name, value in found.items() if name in config}

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return find_complaints(log, about=_COMPLAINT, prefix=_LOG_PREFIX)


def _read_scoreboard(host: Host, port: int) -> str:
    """Read the scoreboard: one character per worker slot that MaxRequestWorkers allows (mod_status.c)."""
    url = f"http://127.0.0.1:{port}/server-status?auto"
    try:
        completed = host.run(("curl", "-sS", "--max-time", "5", url), timeout_s=readback.COMMAND_TIMEOUT_S)
    except TargetError as error:
        missing = f"{host.name}: curl is needed to read Apache's status ({error}). apt-get install curl"
        raise TargetError(missing) from error
    printed = readback.decode(completed)
    found = re.search(r"^Scoreboard: (\S+)", printed, re.MULTILINE)
    if found is None:
        raise NotReady(f"apache: /server-status gave no scoreboard but {printed[:200]!r}. See its error log.")
    return found[1]


def _buckets_in_force(config: Config, cores: int, listeners: int) -> dict[str, Scalar]:
    asked = int(config.get("ListenCoresBucketsRatio", 0))
    expected = max(1, cores // asked) if asked else 1
    return {"ListenCoresBucketsRatio": asked if listeners == expected else cores // listeners}


def _read_children(host: Host, config: Config, parent: int) -> dict[str, Scalar]:
    started = int(config.get("StartServers", 1))
    threads = int(config.get("ThreadsPerChild", 1)) + THREADS_BESIDE_WORKERS
    # A child that still starts has fewer threads, and then for a moment one more, which starts the others.
    complete = readback.settle(lambda: _count_threads(host, parent).count(threads), started)
    counts = _count_threads(host, parent)
    if not counts:
        return {"StartServers": 0}
    usual = threads if complete >= started else Counter(counts).most_common(1)[0][0]
    return {
        # MinSpareThreads may already have added children to those of the start.
        "StartServers": min(max(len(counts), complete), started),
        "ThreadsPerChild": usual - THREADS_BESIDE_WORKERS,
    }


def _count_threads(host: Host, parent: int) -> list[int]:
    """Count the threads of each child process of the server."""
    servers = [pid for pid in readback.walk_processes(host, parent) if _is_server(host, pid)]
    return [int(readback.read_status(host, pid, "Threads") or 0) for pid in servers[1:]]


def _is_server(host: Host, pid: int) -> bool:
    return "-DFOREGROUND" in readback.read_command_line(host, pid)


if TYPE_CHECKING:
    _conforms: Server = Apache()
