"""nginx (https://nginx.org/en/docs/): a private instance as Debian packages it, with other settings."""

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from tuner.adapters.servers import _readback as readback
from tuner.adapters.servers._complaints import find_complaints
from tuner.adapters.servers._nginx_config import CONFIG_FILE, write_configuration
from tuner.errors import TargetError
from tuner.ports import Argv, Completed, Config, Facts, Files, Host, Process, Scalar, Server, Site

# `nginx -t` prints "nginx: [warn] …" before the error log is open, "date [warn] pid#tid: …" afterwards.
_CHECK_LINE = re.compile(r"\[(warn|error|crit|alert|emerg)\] (?:\d+#\d+: )?(?P<text>.*)")
_HARMLESS = re.compile(
    r'the "user" directive makes sense only|conflicting server name|could not build optimal'
)
_COMPLAINT = re.compile(
    r"\[(?:emerg|alert|crit|error)\]"
    r"|worker_connections (?:are not enough|exceed open file resource limit)"
    r"|thread pool .* queue overflow"
)
_LOG_PREFIX = re.compile(r"^(?:nginx:|\S+ \S+) (?=\[)|(?<=\] )\d+#\d+: (?:\*\d+ )?")
_WORKER_TITLE = "nginx: worker process"


class Nginx:
    """The server adapter for nginx."""

    name: ClassVar[str] = "nginx"
    package: ClassVar[str] = "nginx"

    def detect(self, host: Host) -> Facts:
        names = ("nginx", "/usr/sbin/nginx")
        program, completed = readback.find_program(host, names, "-V", package=self.package)
        printed = readback.decode(completed)
        version = re.search(r"nginx version: \S*?/([\d.]+)", printed)
        if version is None:
            unclear = f"{host.name}: `{program} -V` names no version: {printed[:200]!r}."
            raise TargetError(f"{unclear} Reinstall {self.package}.")
        return Facts(
            version=tuple(int(part) for part in version[1].split(".")),
            program=PurePosixPath(program),
            modules=frozenset(re.findall(r"--with-(\S+)", printed)),
            cores=readback.read_online_cpus(host),
        )

    def render(self, config: Config, site: Site, facts: Facts) -> Files:  # noqa: ARG002 - the port's signature
        return {site.directory / CONFIG_FILE: write_configuration(config, site).encode()}

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return (str(facts.program), "-t", "-c", str(site.directory / CONFIG_FILE))

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        texts = (line["text"].strip() for line in _CHECK_LINE.finditer(readback.decode(checked)))
        return tuple(dict.fromkeys(text for text in texts if not _HARMLESS.search(text)))

    def start(self, site: Site, facts: Facts) -> Argv | None:
        return (str(facts.program), "-c", str(site.directory / CONFIG_FILE))

    def open_files(self, config: Config) -> int | None:
        limit = config.get("worker_rlimit_nofile")
        return int(limit) if limit is not None else None

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        queues = readback.read_listen_queues(host, site.port)
        found: dict[str, Scalar] = {}
        if queues:
            found["listen_backlog"] = min(queues)
        if process is not None and process.pid:
            found |= self._read_workers(host, config, facts, process.pid, len(queues))
        return {name: value for name, value in found.items() if name in config}

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return find_complaints(log, about=_COMPLAINT, prefix=_LOG_PREFIX)

    def _read_workers(
        self, host: Host, config: Config, facts: Facts, master: int, listeners: int
    ) -> dict[str, Scalar]:
        asked = config.get("worker_processes", 1)
        expected = facts.cores if asked == "auto" else int(asked)
        count = readback.settle(lambda: len(_find_workers(host, master)), expected)
        workers = _find_workers(host, master)
        if not workers:
            return {"worker_processes": 0}
        found: dict[str, Scalar] = {"worker_processes": asked if count == expected else count}
        if (limit := readback.read_open_files_limit(host, workers[0])) is not None:
            found["worker_rlimit_nofile"] = limit
        if count > 1:  # one worker has one listener either way
            found["listen_reuseport"] = listeners == count
        if not _allowed(host, master).isdigit():  # on one CPU all workers share it either way
            pinned = all(_allowed(host, pid).isdigit() for pid in workers)
            found["worker_cpu_affinity"] = "auto" if pinned else "off"
        if "thread_pool_threads" in config:
            threads = int(config["thread_pool_threads"])
            found["thread_pool_threads"] = readback.settle(
                lambda: _count_threads(host, workers[0]) - 1, threads
            )
        return found


def _find_workers(host: Host, master: int) -> list[int]:
    pids = readback.walk_processes(host, master)
    return [pid for pid in pids if readback.read_command_line(host, pid).startswith(_WORKER_TITLE)]


def _allowed(host: Host, pid: int) -> str:
    return readback.read_status(host, pid, "Cpus_allowed_list") or ""


def _count_threads(host: Host, pid: int) -> int:
    return int(readback.read_status(host, pid, "Threads") or 1)


if TYPE_CHECKING:
    _conforms: Server = Nginx()
