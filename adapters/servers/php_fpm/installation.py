"""Find an installed php-fpm, as Debian, Ubuntu (php-fpm8.2) and RHEL-likes (php-fpm) install it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.adapters.servers.php_fpm.pools import read_entries
from tuner.errors import TargetError
from tuner.kit import programs
from tuner.kit.services import describe_service, probe_service
from tuner.ports import Command, Completed, Facts, Files, Host, Installation, Scalar

CONFIGURATIONS = ("/etc/php", "/etc/php-fpm.conf", "/etc/php-fpm.d")
"""Where distributions keep its files: Debian below /etc/php/VERSION/fpm, RHEL-likes the others."""
USUAL_POOL = "www"
SPARE = ("pm.start_servers", "pm.min_spare_servers", "pm.max_spare_servers")
"""What only `pm = dynamic` reads, and then needs."""

FIND_PROGRAMS = ("find", "/usr/sbin", "/usr/local/sbin", "-maxdepth", "1", "-name", "php-fpm*")
KEYS: Mapping[str, str] = {"pool.listen.backlog": "listen.backlog"}
"""Parameter → its key, where they differ: nginx has a parameter listen_backlog."""
PROTECTIONS = frozenset({"clear_env", "process.dumpable", "rlimit_core"})
"""What keeps secrets of the application in; it is never traded for speed, whatever a space says."""

_FIND_FILES = ("find", *CONFIGURATIONS, "-name", "*.conf")
# Otherwise every test of the configuration is written into the service's own error log, too.
TO_STDERR = ("--nodaemonize", "--force-stderr")
_PROGRAM = re.compile(r"^/\S*/php-fpm(\d+\.\d+)?$", re.MULTILINE)
_VERSION = re.compile(r"^PHP (\d+(?:\.\d+)*)", re.MULTILINE)
_REFUSAL = re.compile(r"^(?:\[[^\]]*\] )?((?:WARNING|ERROR|ALERT): .*)$", re.MULTILINE)
# What an error says last repeats that there was one before.
_REPEATED = re.compile(r"ERROR: (?:failed to (?:load|post process)|FPM initialization failed)")
_DUMPED = re.compile(r"NOTICE: (?:\[(?P<section>[^\]]+)\]|\t(?P<key>[^=]+?) = (?P<value>.*))$", re.MULTILINE)
_MAIN_FILE = re.compile(r"NOTICE: configuration file (.+) test is successful")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """What `-tt` printed: every value in force, by section."""

    main: PurePosixPath
    sections: Mapping[str, Mapping[str, str]]


def find_php_fpm(host: Host, package: str) -> Installation:
    """Find the service, its files and what is in force of one pool.

    Of several installed versions the newest is taken, of several pools the one named www.
    """
    listed = host.run(FIND_PROGRAMS, timeout_s=programs.COMMAND_TIMEOUT_S)
    program = newest_program(listed, host, package)
    name = PurePosixPath(program).name
    service_name = f"php{name.removeprefix('php-fpm')}-fpm" if name != "php-fpm" else name
    about, dumped, found, *probed = host.run_all(
        (
            Command(argv=(program, "-v")),
            Command(argv=(program, "-tt", *TO_STDERR), as_root=True, may_fail=True),
            Command(argv=_FIND_FILES, may_fail=True),
            *probe_service(service_name),
        )
    )
    dump = _read_dump(dumped, host, program)
    paths = [PurePosixPath(path) for path in sorted(found.stdout.decode(errors="replace").splitlines())]
    look = host.look((dump.main, *paths, programs.ONLINE_CPUS))
    files = {
        path: content for path in (dump.main, *paths) if (content := look.read(path).content) is not None
    }
    _, pool = pool_of(files)
    read = {dump.main, *(entry.path for entry in read_entries(files, dump.main))}
    log = dump.sections["global"].get("error_log", "")
    return Installation(
        facts=Facts(
            version=read_version(about),
            program=PurePosixPath(program),
            current=_in_force(dump.sections[pool]),
            cores=programs.read_online_cpus(look),
        ),
        files={path: content for path, content in files.items() if path in read},
        service=describe_service(
            service_name,
            probed,
            check=(program, "-t", *TO_STDERR),
            start=(program, "--daemonize"),
            reload=None,
            title="php-fpm: master process",
            pid_file=PurePosixPath(dump.sections["global"].get("pid", "")),
        ),
        log=PurePosixPath(log) if log.startswith("/") else None,
    )  # fmt: skip


def newest_program(listed: Completed, host: Host, package: str) -> str:
    """Pick the program of the highest version. Raises TargetError when there is none."""
    found = _PROGRAM.finditer(listed.stdout.decode(errors="replace"))
    versions = {each[0]: tuple(map(int, (each[1] or "0").split("."))) for each in found}
    if not versions:
        raise TargetError(
            f"{host.name}: there is no php-fpm in /usr/sbin. Install it with: apt-get install {package} "
            "(RHEL-likes: dnf install php-fpm)"
        )
    return max(versions, key=lambda program: versions[program])


def read_refusals(checked: Completed) -> tuple[str, ...]:
    """Return the warnings and errors of a test of the configuration, each with its file and line."""
    said = _REFUSAL.findall(programs.decode(checked))
    return tuple(dict.fromkeys(each for each in said if not _REPEATED.search(each)))


def read_version(printed: Completed) -> tuple[int, ...]:
    """Read the version out of what `-v` printed; empty when it is not there."""
    version = _VERSION.search(programs.decode(printed))
    return tuple(int(part) for part in version[1].split(".")) if version else ()


def pool_of(files: Files) -> tuple[PurePosixPath, str]:
    """Say which file is the main one, and which pool is tuned. Raises TargetError when that is not clear."""
    main = next(iter(files))
    pools = dict.fromkeys(entry.section for entry in read_entries(files, main) if entry.section != "global")
    if USUAL_POOL in pools:
        return main, USUAL_POOL
    if len(pools) == 1:
        return main, next(iter(pools))
    raise TargetError(
        f"php-fpm: {main} has the pools {', '.join(pools) or '(none)'} and none called {USUAL_POOL}, so that "
        f"it is not clear which to tune. Call that one {USUAL_POOL}."
    )


def _read_dump(dumped: Completed, host: Host, program: str) -> Dump:
    printed = programs.decode(dumped)
    main = _MAIN_FILE.search(printed)
    if dumped.returncode != 0 or main is None:
        said = programs.quote_check(read_refusals(dumped), dumped)
        raise TargetError(f"{host.name}: `{program} -tt` refuses the configuration that is there: {said}")
    sections: dict[str, dict[str, str]] = {"global": {}}
    section = "global"
    for each in _DUMPED.finditer(printed):
        if each["section"] is not None:
            section = each["section"]
        elif each["value"] != "undefined":
            sections.setdefault(section, {})[each["key"]] = each["value"]
    return Dump(main=PurePosixPath(main[1]), sections=sections)


def _in_force(pool: Mapping[str, str]) -> dict[str, Scalar]:
    """Turn what was printed into values: whole numbers, seconds, yes and no, and the kind of `pm`."""
    values: dict[str, Scalar] = {}
    names = {key: name for name, key in KEYS.items()}
    for key, text in pool.items():
        name = names.get(key, key)
        if key in PROTECTIONS:
            continue
        if key == "pm":
            values[name] = text
        elif text in {"yes", "no"}:
            values[name] = text == "yes"
        elif number := re.fullmatch(r"(-?\d+)s?", text):
            values[name] = int(number[1])
    if values.get("pm") != "dynamic":
        values |= _spare_if_dynamic(values)
    return values


def _spare_if_dynamic(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Say what the pool would start from with `pm = dynamic`; what it does not read may not be possible."""
    most = int(values.get("pm.max_children", 1))
    start, least, spare = (int(values.get(key, 0)) for key in SPARE)
    if 1 <= least <= start <= spare <= most:
        return {}
    # Half of the room, as where start_servers is not set (fpm_conf_process_all_pools).
    return dict(zip(SPARE, (1 + (most - 1) // 2, 1, most), strict=True))
