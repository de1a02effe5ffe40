"""h2o (https://h2o.examp1e.net/): a private instance as Debian packages it, or the installed service."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from tuner.adapters.servers.h2o.builds import BUILDS
from tuner.adapters.servers.h2o.config import CONFIG_FILE, write_configuration
from tuner.adapters.servers.h2o.installation import find_installed, find_overrides, rewrite_files
from tuner.kit import programs, readback
from tuner.kit.builds import name_package
from tuner.ports import (
    FASTCGI,
    H2,
    H2C,
    HTTP,
    TLS,
    Argv,
    Completed,
    Config,
    Facts,
    FileReader,
    Files,
    Host,
    Installation,
    LayeredServer,
    Needs,
    PrivateServer,
    Process,
    Scalar,
    Site,
)

_CHECK_LINE = re.compile(r"^(?!configuration OK|\[INFO\]|\s*$)(?P<text>.*)$", re.MULTILINE)
_COMPLAINT = re.compile(r"\bfailed\b|Too many open files|\[ERROR\]|\[WARNING\]|refusing to", re.IGNORECASE)
_NO_PREFIX = re.compile(r"(?!)")
_STATUS = "server-status/json"


class H2o:
    """The server adapter for h2o 2.2."""

    name: ClassVar[str] = "h2o"
    package: ClassVar[str] = name_package(BUILDS)
    denied: ClassVar[tuple[str, ...]] = (
        *("user", "minimum-version", "min-version", "max-version", "cipher-suite*", "cipher-preference"),
        *("certificate-file", "key-file", "dh-file", "neverbleed", "ocsp-*"),
    )

    def __init__(self, *, program: str = "") -> None:
        """Take the program at this path; without one it is looked for."""
        self._program = program

    def detect(self, host: Host) -> Facts:
        facts = programs.detect_program(
            host,
            BUILDS,
            "-v",
            before="h2o version ",
            named=self._program,
        )
        return replace(facts, passes_to=frozenset({HTTP, FASTCGI}), offers=dict.fromkeys((TLS, H2, H2C), ""))

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        return {site.directory / CONFIG_FILE: write_configuration(config, site).encode()}

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return (str(facts.program), "-t", "-c", str(site.directory / CONFIG_FILE))

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        texts = (line["text"].strip() for line in _CHECK_LINE.finditer(programs.decode(checked)))
        return tuple(dict.fromkeys(texts))

    def start(self, site: Site, facts: Facts) -> Argv | None:
        return (str(facts.program), "-c", str(site.directory / CONFIG_FILE))

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        if process is None:
            return {}
        return _parse_status(readback.ask_status(host, site, _STATUS, server="h2o"), config)

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return programs.find_complaints(log, about=_COMPLAINT, prefix=_NO_PREFIX)

    def find(self, host: Host) -> Installation:
        return find_installed(host, self.detect(host))

    def rewrite(self, config: Config, installation: Installation) -> Files:
        return rewrite_files(config, installation)

    def find_overrides(self, config: Config, installation: Installation) -> Mapping[str, str]:
        return find_overrides(config, installation)

    def needs(self, config: Config) -> Needs:
        return Needs()

    def in_force(
        self, host: Host, look: FileReader, config: Config, installation: Installation, pid: int
    ) -> Config:
        count = _count_threads(look, pid)
        found: dict[str, Scalar] = {} if count is None else {"num-threads": count}
        if installation.port is not None:
            asked = readback.status_command(installation.port, _STATUS)
            found |= _parse_status(host.run(asked, timeout_s=programs.COMMAND_TIMEOUT_S), config)
        return {name: value for name, value in found.items() if name in config}


def _parse_status(completed: Completed, config: Config) -> dict[str, Scalar]:
    """Parse the status page; an installed server may have none."""
    try:
        status = json.loads(completed.stdout)
    except ValueError:
        return {}
    names = {"num-threads": "worker-threads", "max-connections": "max-connections"}
    return {name: status[key] for name, key in names.items() if name in config and key in status}


def _count_threads(look: FileReader, pid: int) -> int | None:
    """Count the threads that serve: all but one, which waits for signals, of the youngest h2o.

    With TLS it has a child of its own, which alone holds the private keys (neverbleed).
    """
    pids = list(readback.walk_processes(look, pid)) if pid else []
    servers = [
        each
        for each in pids
        if PurePosixPath(readback.read_command_line(look, each).split(" ")[0]).name == "h2o"
    ]
    own = {str(each) for each in servers}
    servers = [each for each in servers if readback.read_status(look, each, "PPid") not in own]
    threads = readback.read_status(look, servers[-1], "Threads") if servers else None
    return int(threads) - 1 if threads else None


if TYPE_CHECKING:
    _private: PrivateServer = H2o()
    _installed: LayeredServer = H2o()
