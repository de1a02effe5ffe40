"""php-fpm, the FastCGI process manager of PHP: one pool, behind the web server that passes requests to it.

A private instance has a pool as Debian packages it. Of an installed service a drop-in opens the pool's
section again; what it says wins.
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from tuner.adapters.servers.php_fpm import private as private
from tuner.adapters.servers.php_fpm.builds import BUILDS, find_build
from tuner.adapters.servers.php_fpm.drop_in import write_drop_in
from tuner.adapters.servers.php_fpm.installation import (
    TO_STDERR,
    find_php_fpm,
    layout_of,
    list_programs,
    read_refusals,
    read_version,
)
from tuner.kit import programs, readback, services
from tuner.kit.builds import find_account, name_package
from tuner.kit.packages import Package, say_install
from tuner.ports import (
    FASTCGI,
    Argv,
    BackendServer,
    Completed,
    Config,
    Facts,
    FileReader,
    Files,
    Host,
    Installation,
    Needs,
    PooledServer,
    Process,
    Scalar,
    Site,
    Upstream,
)

_KINDS = r"(?:PHP )?((?:Fatal|Parse|Recoverable fatal) error|Warning)"
_IN_PAGE = re.compile(
    rf"(?:<b>)?{_KINDS}(?:</b>)?:\s+(.{{1,300}}?) in (?:<b>)?(/.*?)(?:</b>)?(?: on line (?:<b>)?|:)(\d+)"
)
# A warning is logged by many a page that is right.
_IN_LOG = re.compile(
    r"PHP ((?:Fatal|Parse|Recoverable fatal) error): +(.{1,300}?) in (\S+?)(?: on line |:)(\d+)"
)
_NO_CLASS = re.compile(r"Class [\"\\]*(\w+)[\"\\]* not found")
_PACKAGES = {
    "SQLite3": Package(
        "php-sqlite3", dnf="php-pdo", zypper="php8-sqlite", apk="php84-sqlite3", pacman="php-sqlite"
    ),
    "PDO": Package("php-common", dnf="php-pdo", zypper="php8-pdo", apk="php84-pdo", pacman="php"),
    "mysqli": Package("php-mysql", dnf="php-mysqlnd", zypper="php8-mysql", apk="php84-mysqli", pacman="php"),
    "Redis": Package("php-redis", zypper="php8-redis", apk="php84-redis", pacman="php-redis"),
}
"""Class → package of the extension that has it."""


PORT = 9000
"""Where PHP's own documentation lets it listen."""
BACKLOG = "pool.listen.backlog"
_COMPLAINT = re.compile(
    r"max_children|seems busy|exited on signal|execution timed out|unable to|failed|ALERT|ERROR"
)
_LOG_PREFIX = re.compile(r"^\[[^\]]*\d{4} [^\]]*\] ")


def find_page_errors(host: Host, page: bytes, log: bytes) -> tuple[str, ...]:
    """Return one sentence for each error, each once; with the package of an extension that is missing."""
    found = (*_IN_PAGE.findall(_text(page)), *_IN_LOG.findall(_text(log)))
    return tuple(dict.fromkeys(_describe(host, *each) for each in found))


def _text(output: bytes) -> str:
    return output.decode(errors="replace")


def _describe(host: Host, kind: str, message: str, file: str, line: str) -> str:
    missing = _NO_CLASS.search(message)
    package = _PACKAGES.get(missing[1]) if missing else None
    remedy = f" ({say_install(host, package)})" if package else ""
    return f"{kind}: {message.strip()} in {file} on line {line}{remedy}"


class PhpFpm:
    """The server adapter for php-fpm."""

    name: ClassVar[str] = "php-fpm"
    package: ClassVar[str] = name_package(BUILDS)
    denied: ClassVar[tuple[str, ...]] = (
        *("user", "group", "listen.owner", "listen.group", "listen.mode", "listen.acl*", "chroot"),
        *("listen.allowed_clients", "security.*", "*open_basedir*", "*disable_functions*"),
        *("*cgi.fix_pathinfo*", "*allow_url_*"),
    )

    def __init__(self, *, program: str = "") -> None:
        """Take the program at this path; without one it is looked for."""
        self._program = program

    def detect(self, host: Host) -> Facts:
        program = list_programs(host, self.package, self._program)[0]
        version = read_version(host.run((program, "-v"), timeout_s=programs.COMMAND_TIMEOUT_S))
        told = host.run((program, "-i"), timeout_s=programs.COMMAND_TIMEOUT_S)
        build = find_build(program, programs.decode(told), version)
        user, group = find_account(host, build.users)
        return Facts(
            version=version,
            build=build,
            user=user,
            group=group,
            program=PurePosixPath(program),
            cores=programs.read_online_cpus(host),
            port=PORT,
            speaks=FASTCGI,
        )

    def render(self, config: Config, site: Site, facts: Facts) -> Files:
        return private.write_files(config, site, facts)

    def check(self, site: Site, facts: Facts) -> Argv | None:
        return private.command(site, facts, "-t", *TO_STDERR)

    def start(self, site: Site, facts: Facts) -> Argv | None:
        return private.command(site, facts, "--nodaemonize")

    def upstream(self, config: Config, site: Site) -> Upstream:
        return private.upstream_of(config, site)

    def page_errors(self, host: Host, page: bytes, log: bytes) -> tuple[str, ...]:
        return find_page_errors(host, page, log)

    def effective(
        self, host: Host, config: Config, site: Site, facts: Facts, process: Process | None
    ) -> Config:
        found = _read_queue(host, str(private.upstream_of(config, site).socket or f":{site.port}"))
        if found:  # something listens on the kind of socket that was asked for
            found[private.SOCKET] = config.get(private.SOCKET, "unix")
        if int(config.get(BACKLOG, -1)) == -1:  # net.core.somaxconn, whatever that is
            found.pop(BACKLOG, None)
        if process is not None and process.pid:
            found |= _settled_children(host, config, process.pid)
        found |= private.read_directives(host, config, site, facts)
        return {name: value for name, value in found.items() if name in config}

    def find(self, host: Host) -> Installation:
        return find_php_fpm(host, self.package, named=self._program)

    def find_behind(self, host: Host, addresses: Sequence[str]) -> Installation:
        return find_php_fpm(host, self.package, addresses, named=self._program)

    def rewrite(self, config: Config, installation: Installation) -> Files:
        return write_drop_in(config, installation)

    def needs(self, config: Config) -> Needs:
        children = config.get("pm.max_children")
        return Needs(tasks=None if children is None else int(children) + services.SPARE_TASKS)

    def in_force(
        self, host: Host, look: FileReader, config: Config, installation: Installation, pid: int
    ) -> Config:
        layout = layout_of(installation)
        found: dict[str, Scalar] = {}
        backlog = int(config.get(BACKLOG, -1))
        # As it was found; net.core.somaxconn may be below it, and -1 means just that.
        if backlog not in {-1, installation.facts.current[BACKLOG]}:
            found |= _read_queue(host, layout.pools[layout.pool])
        if pid:
            found |= _judge_children(look, config, pid, layout.pool)
        return {name: value for name, value in found.items() if name in config}

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        return read_refusals(checked)

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return programs.find_complaints(log, about=_COMPLAINT, prefix=_LOG_PREFIX)


def _read_queue(host: Host, listen: str) -> dict[str, Scalar]:
    """Read the accept queue of the pool's socket: a path, a port, or an address with a port."""
    if listen.startswith("/"):
        listed = host.run(("ss", "-lxH", "src", listen), timeout_s=programs.COMMAND_TIMEOUT_S)
        printed = listed.stdout.decode(errors="replace")
        queues = tuple(map(int, re.findall(r"\bLISTEN\s+\d+\s+(\d+)", printed)))
    elif port := re.search(r"(?:^|:)(\d+)$", listen):
        queues = readback.read_listen_queues(host, int(port[1]))
    else:
        return {}
    return {BACKLOG: min(queues)} if queues else {}


def _settled_children(host: Host, config: Config, parent: int) -> dict[str, Scalar]:
    """Tell what was asked of a private pool once all processes of its start are there."""
    judge = partial(_judge_children, host, config, parent, private.POOL)
    name = "pm.max_children" if config.get("pm") == "static" else "pm.start_servers"
    readback.settle(lambda: int(judge().get(name, 0)), int(config.get(name, 0)))
    return judge()


def _judge_children(look: FileReader, config: Config, parent: int, pool: str) -> dict[str, Scalar]:
    """Tell from the pool's processes what was asked of it; ondemand has none until a request comes."""
    title = f"php-fpm: pool {pool}"
    pids = [
        pid for pid in readback.walk_processes(look, parent) if readback.read_command_line(look, pid) == title
    ]
    found: dict[str, Scalar] = {}
    if config.get("pm") == "static":
        found["pm.max_children"] = len(pids)
    elif config.get("pm") == "dynamic":
        # Load may have added to those of the start, and never leaves fewer.
        found["pm.start_servers"] = min(len(pids), int(config.get("pm.start_servers", len(pids))))
    if pids and config.get("rlimit_files"):
        limit = readback.read_open_files_limit(look, pids[0])
        found |= {} if limit is None else {"rlimit_files": limit}
    return found


if TYPE_CHECKING:
    _private: BackendServer = PhpFpm()
    _installed: PooledServer = PhpFpm()
