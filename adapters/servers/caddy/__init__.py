"""Caddy (https://caddyserver.com/docs/): a private instance that serves files or passes requests on."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tuner.adapters.servers.caddy.builds import BUILDS
from tuner.adapters.servers.caddy.config import CONFIG_FILE, ENVIRONMENT_FILE, write_files
from tuner.adapters.servers.caddy.running import read_running
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
    Needs,
    PrivateServer,
    Process,
    Site,
)

# Messages are JSON objects, one a line; what ends the program comes last, in plain text.
_REFUSAL = re.compile(r"^Error: (.*)$", re.MULTILINE)
_COMPLAINT = re.compile(
    r'^Error: |"level":"(?:error|panic|fatal)"|too many open files|^(?:panic|fatal error):'
)
_LOG_PREFIX = re.compile(r'"ts":[\d.]+,')
# Go reads these variables before any program of its own runs, so that no option of Caddy's comes in time.
_WITH_ENVIRONMENT = '. "$0"; exec "$@"'


class Caddy:
    """The server adapter for Caddy 2.6."""

    name: ClassVar[str] = "caddy"
    package: ClassVar[str] = name_package(BUILDS)
    denied: ClassVar[tuple[str, ...]] = (
        *("admin*", "auto_https", "storage*", "tls*", "acme*", "pki*", "strict_sni_host", "basicauth*"),
        *("trusted_proxies*", "transport.tls*", "on_demand*"),
    )

    def __init__(self, *, program: str = "") -> None:
        """Take the program at this path; without one it is looked for."""
        self._program = program

    def detect(self, host: Host) -> Facts:
        facts = programs.detect_program(host, BUILDS, "version", before=r"\sv?", named=self._program)
        return replace(facts, passes_to=frozenset({HTTP}))

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        return write_files(config, site)

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return self._command(site, facts, "validate")

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_REFUSAL.findall(programs.decode(checked))))

    def start(self, site: Site, facts: Facts) -> Argv | None:
        return self._command(site, facts, "run")

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        return read_running(host, config, site, process.pid) if process is not None else {}

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return programs.find_complaints(log, about=_COMPLAINT, prefix=_LOG_PREFIX)

    def needs(self, config: Config) -> Needs:
        return Needs()

    def _command(self, site: Site, facts: Facts, verb: str) -> Argv:
        """Return the command that works with the environment and the configuration of the site."""
        directory = site.directory
        own = (str(facts.program), verb, "--config", str(directory / CONFIG_FILE))
        return ("sh", "-c", _WITH_ENVIRONMENT, str(directory / ENVIRONMENT_FILE), *own)


if TYPE_CHECKING:
    _private: PrivateServer = Caddy()
