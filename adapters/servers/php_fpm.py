"""php-fpm, the FastCGI process manager of PHP: one pool of an installed service.

It does not speak HTTP, so that a private instance of it alone could not be put under load: it is tuned in
place, behind the web server that is there. A drop-in opens the pool's section again; what it says wins.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar, NoReturn

from tuner.adapters.servers import _readback as readback
from tuner.adapters.servers._complaints import find_complaints
from tuner.adapters.servers._php_fpm_installation import (
    FIND_PROGRAMS,
    KEYS,
    SPARE,
    find_php_fpm,
    newest_program,
    pool_of,
    read_version,
)
from tuner.adapters.servers._php_fpm_pools import included_directories, read_entries
from tuner.errors import ConfigRejected, TargetError, UsageError
from tuner.ports import (
    Argv,
    Completed,
    Config,
    Facts,
    FileReader,
    Files,
    Host,
    Installation,
    InstalledServer,
    Needs,
    Process,
    Scalar,
    Server,
    Site,
)

NAME = "zz-tuner.conf"
BACKLOG = "pool.listen.backlog"
_HEAD = "; Written by tuner: overrides what is set before. Take this file away to undo it.\n"
_KINDS_OF_PM = ("static", "dynamic", "ondemand")
_ALLOWED_POOL = re.compile(r"[\w.-]+")
_LINE = re.compile(r"^(?:\[[^\]]*\] )?((?:WARNING|ERROR|ALERT): .*)$", re.MULTILINE)
_COMPLAINT = re.compile(
    r"max_children|seems busy|exited on signal|execution timed out|unable to|failed|ALERT|ERROR"
)
_LOG_PREFIX = re.compile(r"^\[[^\]]*\d{4} [^\]]*\] ")


# For the first process, helpers and those that are still ending.
SPARE_TASKS = 64


class PhpFpm:
    """The server adapter for php-fpm; for installed services only."""

    name: ClassVar[str] = "php-fpm"
    package: ClassVar[str] = "php-fpm"

    def detect(self, host: Host) -> Facts:
        listed = host.run(FIND_PROGRAMS, timeout_s=readback.COMMAND_TIMEOUT_S)
        program = newest_program(listed, host, self.package)
        about = host.run((program, "-v"), timeout_s=readback.COMMAND_TIMEOUT_S)
        return Facts(
            version=read_version(about),
            program=PurePosixPath(program),
            cores=readback.read_online_cpus(host),
        )

    def find(self, host: Host) -> Installation:
        return find_php_fpm(host, self.package)

    def rewrite(self, config: Config, installation: Installation) -> Files:
        current = installation.facts.current
        for name, value in config.items():
            _refuse_nonsense(name, value, current)
        changed = {name for name, value in config.items() if value != current[name]}
        if not changed:
            return {}
        if "pm" in changed:
            # What another kind of pool does not read may stand there with any value, or not at all.
            changed.update(name for name in SPARE if name in config)
        asked = {KEYS.get(name, name): config[name] for name in config if name in changed}
        lines = {key: f"{key} = {_show(value)}" for key, value in asked.items()}
        return _write_drop_in(lines, installation)

    def needs(self, config: Config) -> Needs:
        children = config.get("pm.max_children")
        return Needs(tasks=None if children is None else int(children) + SPARE_TASKS)

    def in_force(
        self, host: Host, look: FileReader, config: Config, installation: Installation, pid: int
    ) -> Config:
        main, pool = pool_of(installation.files)
        found: dict[str, Scalar] = {}
        backlog = int(config.get(BACKLOG, -1))
        # As it was found; net.core.somaxconn may be below it, and -1 means just that.
        if backlog not in {-1, installation.facts.current[BACKLOG]}:
            listen = [each.value for each in read_entries(installation.files, main)
                      if (each.section, each.key) == (pool, "listen")]  # fmt: skip
            found |= _read_queue(host, listen[-1] if listen else "")
        if pid:
            found |= _judge_children(look, config, pid, pool)
        return {name: value for name, value in found.items() if name in config}

    def refusals(self, checked: Completed) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_LINE.findall(readback.decode(checked))))

    def complaints(self, log: bytes) -> tuple[str, ...]:
        return find_complaints(log, about=_COMPLAINT, prefix=_LOG_PREFIX)

    def render(self, config: Config, site: Site, facts: Facts) -> Files:  # noqa: ARG002 - the port's signature
        _refuse_private_instance()

    def check(self, site: Site, facts: Facts) -> Argv | None:  # noqa: ARG002 - see render
        _refuse_private_instance()

    def start(self, site: Site, facts: Facts) -> Argv | None:  # noqa: ARG002 - see render
        _refuse_private_instance()

    def open_files(self, config: Config) -> int | None:  # noqa: ARG002 - see render
        _refuse_private_instance()

    def effective(
        self,
        host: Host,  # noqa: ARG002 - see render
        config: Config,  # noqa: ARG002
        site: Site,  # noqa: ARG002
        facts: Facts,  # noqa: ARG002
        process: Process | None,  # noqa: ARG002
    ) -> Config:
        _refuse_private_instance()


def _refuse_private_instance() -> NoReturn:
    raise UsageError(
        "php-fpm: it speaks FastCGI, not HTTP, so that a private instance cannot be put under load. Tune the "
        "installed service behind its web server: write `mode: managed` under `target:`."
    )


def _refuse_nonsense(name: str, value: Scalar, current: Mapping[str, Scalar]) -> None:
    """Refuse what is not one value of the setting: it never reaches a file."""
    if name not in current:
        raise ConfigRejected(
            f"php-fpm: {name[:80]!r} is no setting of a pool here whose value is known. "
            "Leave it out of the space with `without:`."
        )
    is_one = value in _KINDS_OF_PM if name == "pm" else type(value) is type(current[name])
    if not is_one:
        raise ConfigRejected(f"php-fpm: {name} = {str(value)[:80]!r} is not one value. Correct the space.")


def _show(value: Scalar) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _write_drop_in(lines: Mapping[str, str], installation: Installation) -> Files:
    """Write the file that is read last. Raises TargetError when none would be, or another comes after."""
    files = installation.files
    main, pool = pool_of(files)
    if not _ALLOWED_POOL.fullmatch(pool):
        raise TargetError(f"php-fpm: the pool {pool!r} has a name that cannot be written again. Rename it.")
    places = included_directories(files, main)
    if not places:
        raise TargetError(
            f"php-fpm: {main} includes no directory where settings could be added. Add a line at its end: "
            f"include={main.parent}/pool.d/*.conf"
        )
    place = places[0] / NAME
    kept = _kept_lines(files.get(place), lines)
    text = "".join(f"{line}\n" for line in (*kept, f"[{pool}]", *lines.values()))
    after = {**files, place: text.encode()}
    last = {entry.key: entry for entry in read_entries(after, main) if entry.section == pool}
    for key in lines:
        if last[key].path != place:
            raise TargetError(
                f"php-fpm: {last[key].path}:{last[key].line} sets {key} after {place} is read, and so wins. "
                "Move that line, or leave the setting out of the space with `without:`."
            )
    return {place: text.encode()}


def _kept_lines(installed: bytes | None, lines: Mapping[str, str]) -> list[str]:
    """Keep what a drop-in that is there already sets besides."""
    if installed is None:
        return [_HEAD.rstrip()]
    written = installed.decode(errors="replace").splitlines()
    return [line for line in written if line.partition("=")[0].strip() not in lines]


def _read_queue(host: Host, listen: str) -> dict[str, Scalar]:
    """Read the accept queue of the pool's socket: a path, a port, or an address with a port."""
    if listen.startswith("/"):
        listed = host.run(("ss", "-lxH", "src", listen), timeout_s=readback.COMMAND_TIMEOUT_S)
        printed = listed.stdout.decode(errors="replace")
        queues = tuple(map(int, re.findall(r"\bLISTEN\s+\d+\s+(\d+)", printed)))
    elif port := re.search(r"(?:^|:)(\d+)$", listen):
        queues = readback.read_listen_queues(host, int(port[1]))
    else:
        return {}
    return {BACKLOG: min(queues)} if queues else {}


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
    _conforms: Server = PhpFpm()
    _conforms_installed: InstalledServer = PhpFpm()
