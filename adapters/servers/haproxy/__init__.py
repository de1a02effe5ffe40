"""HAProxy (https://www.haproxy.org/): a private instance as Debian packages it, before another server."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from tuner.adapters.servers.haproxy.builds import BUILDS
from tuner.adapters.servers.haproxy.config import CONFIG_FILE, write_configuration
from tuner.adapters.servers.haproxy.log_format import HTTP_LOG
from tuner.adapters.servers.haproxy.running import read_running
from tuner.kit import programs
from tuner.kit.builds import name_package
from tuner.ports import (
    HTTP,
    Argv,
    Completed,
    Config,
    Facts,
    Files,
    Host,
    Installation,
    LineFormat,
    LoggingServer,
    Needs,
    PrivateServer,
    Process,
    Site,
)

_CHECK_LINE = re.compile(r"^\[(?:ALERT|WARNING)\]\s+\(\d+\) : (?P<text>.*)$", re.MULTILINE)
# What an [ALERT] says last repeats that there was one before.
_REPEATED = re.compile(r"config : (?:Error\(s\) found in configuration file|Fatal errors found)")
_COMPLAINT = re.compile(r"^\[(?:ALERT|WARNING)\]|\bDOWN\b|no server available")
_LOG_PREFIX = re.compile(r"^\[\w+\]\s+\(\d+\) : ")
# One log line for each request goes to the standard output; there it must not pass through a pipe.
_LOG_TO_FILE = 'exec "$@" >>"$0"'


class Haproxy:
    """The server adapter for HAProxy 2.6."""

    name: ClassVar[str] = "haproxy"
    package: ClassVar[str] = name_package(BUILDS)
    denied: ClassVar[tuple[str, ...]] = (
        *("user", "group", "uid", "gid", "chroot", "ssl-*", "ca-*", "crt*", "tune.ssl.*", "stats*", "acl"),
        *("http-request*", "tcp-request*", "insecure-*", "lua-*", "external-check*", "unix-bind", "userlist"),
    )

    def __init__(self, *, program: str = "") -> None:
        """Take the program at this path; without one it is looked for."""
        self._program = program

    def detect(self, host: Host) -> Facts:
        facts = programs.detect_program(
            host,
            BUILDS,
            "-v",
            before="HAProxy version ",
            named=self._program,
        )
        return replace(facts, passes_to=frozenset({HTTP}), needs_backend=True)

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        return {site.directory / CONFIG_FILE: write_configuration(config, site).encode()}

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return (str(facts.program), "-c", "-f", str(site.directory / CONFIG_FILE))

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        texts = (line["text"].strip() for line in _CHECK_LINE.finditer(programs.decode(checked)))
        return tuple(dict.fromkeys(text for text in texts if not _REPEATED.match(text)))

    def start(self, site: Site, facts: Facts) -> Argv | None:
        serve = (str(facts.program), "-db", "-f", str(site.directory / CONFIG_FILE))
        return ("sh", "-c", _LOG_TO_FILE, str(site.access_log), *serve)

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        return read_running(host, config, site) if process is not None else {}

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return programs.find_complaints(log, about=_COMPLAINT, prefix=_LOG_PREFIX)

    def usual_log_formats(self) -> tuple[LineFormat, ...]:
        return (HTTP_LOG,)

    def read_log_format(self, text: str) -> LineFormat | None:
        return HTTP_LOG if text == HTTP_LOG.name else None

    def find_logs(self, installation: Installation) -> Mapping[PurePosixPath, str]:
        return {}  # its messages go to syslog

    def needs(self, config: Config) -> Needs:
        if isinstance(config.get("maxconn", "auto"), str):  # then it takes what it is given
            return Needs()
        each = 2 * int(config["maxconn"]) + 2 * int(config.get("maxpipes", 0))
        return Needs(open_files=each + SPARE_FILES)


SPARE_FILES = 512
"""Open files beside two for each connection and each pipe: three for each thread, listeners, the log."""


if TYPE_CHECKING:
    _private: PrivateServer = Haproxy()
    _logging: LoggingServer = Haproxy()
