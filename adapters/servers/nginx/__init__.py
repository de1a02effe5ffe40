"""nginx (https://nginx.org/en/docs/): a private instance as Debian packages it, or the installed service."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from tuner.adapters.servers.nginx import log_format
from tuner.adapters.servers.nginx.builds import BUILDS, find_build
from tuner.adapters.servers.nginx.config import CONFIG_FILE, write_configuration
from tuner.adapters.servers.nginx.installation import aim_installation, find_installed, read_build
from tuner.adapters.servers.nginx.read_back import read_printed
from tuner.adapters.servers.nginx.rewrite import find_overrides, rewrite_files
from tuner.adapters.servers.nginx.running import read_running
from tuner.adapters.servers.nginx.settings import SSL, V2
from tuner.kit import programs, services
from tuner.kit.builds import find_account, name_package, name_programs
from tuner.ports import (
    FASTCGI,
    H2,
    H2C,
    HTTP,
    TLS,
    WEBSOCKET,
    Argv,
    Completed,
    Config,
    Facts,
    FileReader,
    Files,
    Host,
    Installation,
    LayeredServer,
    LineFormat,
    LoggingServer,
    LookedAtServer,
    Needs,
    PrivateServer,
    Process,
    SentRequest,
    Site,
    SiteServer,
)

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

_OFFERS = {TLS: frozenset({SSL}), H2: frozenset({SSL, V2}), H2C: frozenset({V2})}
"""What it can be loaded with → the modules that it takes."""


class Nginx:
    """The server adapter for nginx."""

    name: ClassVar[str] = "nginx"
    package: ClassVar[str] = name_package(BUILDS)
    denied: ClassVar[tuple[str, ...]] = (
        *("user", "ssl_protocols", "ssl_ciphers", "ssl_verify*", "proxy_ssl_verify*", "disable_symlinks"),
        *("ssl_prefer_server_ciphers", "ssl_ecdh_curve", "ssl_dhparam", "ssl_early_data", "ssl_conf_command"),
        *(
            "ssl_certificate*",
            "ssl_client_certificate",
            "ssl_trusted_certificate",
            "ssl_crl",
            "ssl_stapling*",
        ),
        *("allow", "deny", "auth_*", "limit_req*", "limit_conn*", "ssl_stapling*"),
    )

    def __init__(self, *, program: str = "") -> None:
        """Take the program at this path; without one it is looked for."""
        self._program = program

    def detect(self, host: Host) -> Facts:
        return self._detect(host)[0]

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        return {site.directory / CONFIG_FILE: write_configuration(config, site, facts).encode()}

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return (str(facts.program), "-t", "-c", str(site.directory / CONFIG_FILE))

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        texts = (line["text"].strip() for line in _CHECK_LINE.finditer(programs.decode(checked)))
        return tuple(dict.fromkeys(text for text in texts if not _HARMLESS.search(text)))

    def start(self, site: Site, facts: Facts) -> Argv | None:
        return (str(facts.program), "-c", str(site.directory / CONFIG_FILE))

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        pid = process.pid if process is not None else 0
        found = read_running(host, host, config, facts, port=site.port, master=pid, is_settled=False)
        return {**found, **read_printed(host, config, facts, site)}

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return programs.find_complaints(log, about=_COMPLAINT, prefix=_LOG_PREFIX)

    def usual_log_formats(self) -> tuple[LineFormat, ...]:
        return ()

    def read_log_format(self, text: str) -> LineFormat | None:
        return log_format.read_log_format(text)

    def find_logs(self, installation: Installation) -> Mapping[PurePosixPath, str]:
        return log_format.find_logs(installation)

    def find(self, host: Host) -> Installation:
        facts, printed = self._detect(host)
        return find_installed(host, facts, read_build(printed))

    def find_running(self, host: Host, command: str) -> Installation:
        facts, printed = self._detect(host)
        return find_installed(host, facts, read_build(printed), command=command)

    def aim(self, host: Host, installation: Installation, requests: Sequence[SentRequest]) -> Installation:
        return aim_installation(host, installation, requests)

    def rewrite(self, config: Config, installation: Installation) -> Files:
        return rewrite_files(config, installation)

    def find_overrides(self, config: Config, installation: Installation) -> Mapping[str, str]:
        return find_overrides(config, installation)

    def needs(self, config: Config) -> Needs:
        workers = config.get("worker_processes", 1)
        threads = int(config.get("thread_pool_threads", 0)) if config.get("aio") == "threads" else 0
        tasks = None if isinstance(workers, str) else services.SPARE_TASKS + int(workers) * (1 + threads)
        limit = config.get("worker_rlimit_nofile")
        return Needs(open_files=None if limit is None else int(limit), tasks=tasks)

    def in_force(
        self, host: Host, look: FileReader, config: Config, installation: Installation, pid: int
    ) -> Config:
        facts, port = installation.facts, installation.port
        found = read_running(host, look, config, facts, port=port, master=pid, is_settled=True)
        queue = facts.current.get("listen_backlog")
        if config.get("listen_backlog") == queue != found.get("listen_backlog"):
            # As it was found; net.core.somaxconn may have been below it all the time.
            return {name: value for name, value in found.items() if name != "listen_backlog"}
        return found

    def _detect(self, host: Host) -> tuple[Facts, str]:
        """Find the program, and what it says of how it was built."""
        program, completed = programs.find_program(
            host, name_programs(BUILDS), "-V", package=self.package, named=self._program
        )
        printed = programs.decode(completed)
        version = programs.read_version(completed, r"nginx version: \S*?/", host, package=self.package)
        build = find_build(read_build(printed))
        user, group = find_account(host, build.users)
        modules = frozenset(re.findall(r"--with-(\S+)", printed))
        facts = Facts(
            version=version,
            program=PurePosixPath(program),
            modules=modules,
            offers={offer: _name_missing(needed - modules) for offer, needed in _OFFERS.items()},
            # Beyond fs.nr_open setrlimit(2) fails, and the workers keep the limit of the first process.
            bounded=frozenset({"worker_rlimit_nofile"}),
            cores=programs.read_online_cpus(host),
            passes_to=frozenset({HTTP, FASTCGI, WEBSOCKET}),
            build=build,
            user=user,
            group=group,
        )
        return facts, printed


def _name_missing(modules: frozenset[str]) -> str:
    if not modules:
        return ""
    named = " and ".join(sorted(modules))
    return f"this nginx was built without {named}. Name the path of another build: `program:`"


if TYPE_CHECKING:
    _private: PrivateServer = Nginx()
    _logging: LoggingServer = Nginx()
    _installed: SiteServer = Nginx()
    _layered: LayeredServer = Nginx()
    _running: LookedAtServer = Nginx()
