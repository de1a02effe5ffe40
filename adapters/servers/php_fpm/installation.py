"""Find an installed php-fpm, whoever built it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tuner.adapters.servers.php_fpm.builds import DIRECTORIES, find_build
from tuner.adapters.servers.php_fpm.pools import GLOBAL, INCLUDE, Layout, find_pool
from tuner.errors import TargetError
from tuner.kit import programs
from tuner.kit.config_files import list_matching
from tuner.kit.packages import say_install
from tuner.kit.services import describe_service, name_service, probe_service
from tuner.ports import Command, Completed, Facts, Files, Host, Installation, Scalar

USUAL_POOL = "www"
SPARE = ("pm.start_servers", "pm.min_spare_servers", "pm.max_spare_servers")
"""What only `pm = dynamic` reads, and then needs."""

TITLE = "php-fpm: master process"
FIND_PROGRAMS = ("find", "-H", *DIRECTORIES, "-maxdepth", "1", "-name", "php-fpm*")
"""-H because /usr/sbin may be a link to /usr/bin (Fedora, Arch)."""
KEYS: Mapping[str, str] = {"pool.listen.backlog": "listen.backlog"}
"""Parameter → its key, where they differ: nginx has a parameter listen_backlog."""
PROTECTIONS = frozenset({"clear_env", "process.dumpable", "rlimit_core"})
"""What keeps secrets of the application in; it is never traded for speed, whatever a space says."""

# Otherwise every test of the configuration is written into the service's own error log, too.
TO_STDERR = ("--nodaemonize", "--force-stderr")
# Debian calls it php-fpm8.2, Alpine php-fpm82.
_PROGRAM = re.compile(r"^/\S*/php-fpm(?:(\d)\.?(\d+))?$", re.MULTILINE)
_VERSION = re.compile(r"^PHP (\d+(?:\.\d+)*)", re.MULTILINE)
_REFUSAL = re.compile(r"^(?:\[[^\]]*\] )?((?:WARNING|ERROR|ALERT): .*)$", re.MULTILINE)
# What an error says last repeats that there was one before.
_REPEATED = re.compile(r"ERROR: (?:failed to (?:load|post process)|FPM initialization failed)")
_DUMPED = re.compile(r"NOTICE: (?:\[(?P<section>[^\]]+)\]|\t(?P<key>[^=]+?) = (?P<value>.*))$", re.MULTILINE)
# The first process replaces its standard input before it reads its files (sapi/fpm/fpm/fpm.c, fpm_init).
_FROM_STDIN = ("sh", "-c", 'exec "$0" "$@" --fpm-config /dev/fd/3 3<&0')
_LEVEL = re.compile(rb"^[ \t]*log_level[ \t]*=.*$", re.MULTILINE)
_RUNS_WITH = re.compile(rf"{TITLE} \((/.+)\)")
_PREFIX = re.compile(r"\(default: (/.*)\)")
_MAIN_FILE = re.compile(r"NOTICE: configuration file (.+) test is successful")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """What `-tt` printed: every active value, by section."""

    main: PurePosixPath
    prefix: PurePosixPath
    sections: Mapping[str, Mapping[str, str]]

    @property
    def listening(self) -> dict[str, str]:
        """Return every pool with the address or socket where it listens."""
        return {name: each.get("listen", "") for name, each in self.sections.items() if name != GLOBAL}


def find_php_fpm(host: Host, package: str, addresses: Sequence[str] = (), *, named: str = "") -> Installation:
    """Find the service, its files and what is active of one pool.

    The pool is the one that listens at one of the addresses, of any installed version. Without addresses it
    is the one called www, or the only one, of the newest version, or of the program that the study names.
    """
    found = [
        (program, *_ask(host, program))
        for program in list_programs(host, package, named)[: None if addresses else 1]
    ]
    for program, about, dump in found:
        if pool := find_pool(dump.listening, addresses):
            return _find(host, program, about, dump, pool)
    if addresses:
        known = [f"{name} at {listen}" for _, _, dump in found for name, listen in dump.listening.items()]
        raise TargetError(
            f"{host.name}: the load leads to {', '.join(addresses)}, and no pool of php-fpm listens there. "
            f"Known pools: {', '.join(known) or 'none'}. Correct load.path, or leave php-fpm out of "
            "`servers:`."
        )
    program, about, dump = found[0]
    pools = dump.listening
    return _find(
        host,
        program,
        about,
        dump,
        USUAL_POOL if USUAL_POOL in pools else "".join(pools) if len(pools) == 1 else "",
    )


def _ask(host: Host, program: str) -> tuple[Completed, Dump]:
    """Ask a program for its version, prefix and configuration. Raises TargetError when it refuses that."""
    about, usage, dumped = host.run_all(
        (
            Command(argv=(program, "-v")),
            Command(argv=(program, "-h"), may_fail=True),
            Command(argv=(program, "-tt", *TO_STDERR), as_root=True, may_fail=True),
        )
    )
    main: PurePosixPath | None = None
    if dumped.returncode == 0 and not _MAIN_FILE.search(programs.decode(dumped)):
        dumped, main = _dump_aloud(host, program)
    return about, _read_dump(dumped, usage, host, program, main)


def _dump_aloud(host: Host, program: str) -> tuple[Completed, PurePosixPath]:
    """Dump the configuration of the running service without its log level, which hides what is dumped.

    Returns also its main file. Raises TargetError where it is not clear which that is, or nothing is dumped.
    """
    titles = map(_RUNS_WITH.match, programs.list_running(host, f"^{TITLE} "))
    files = {PurePosixPath(title[1]) for title in titles if title}
    if len(files) == 1:
        (main,) = files
        text = _LEVEL.sub(b"", host.read(main).content or b"")
        argv = (*_FROM_STDIN, program, "-tt", *TO_STDERR)
        dumped = host.run(argv, timeout_s=programs.COMMAND_TIMEOUT_S, stdin=text)
        if _MAIN_FILE.search(programs.decode(dumped)):
            return dumped, main
    raise TargetError(
        f"{host.name}: `{program} -tt` prints no settings, because log_level hides notices. Set log_level to "
        "notice, or start php-fpm and run tuner as root."
    )


def _find(host: Host, program: str, about: Completed, dump: Dump, pool: str) -> Installation:
    version = read_version(about)
    told = host.run((program, "-i"), timeout_s=programs.COMMAND_TIMEOUT_S)
    build = find_build(program, programs.decode(told), version)
    service_name = name_service(host, build.services)
    layout = Layout(main=dump.main, prefix=dump.prefix, pools=dump.listening, pool=pool)
    log = dump.sections[GLOBAL].get("error_log", "")
    service = describe_service(
        service_name,
        host.run_all(probe_service(service_name)),
        check=(program, "-t", *TO_STDERR),
        start=(program, "--daemonize"),
        reload=None,
        title=TITLE,
        pid_file=PurePosixPath(dump.sections[GLOBAL].get("pid", "")),
    )
    return Installation(
        facts=Facts(
            version=version,
            program=PurePosixPath(program),
            build=build,
            current=_in_force(dump.sections[pool]) if pool else {},
            cores=programs.read_online_cpus(host),
        ),
        files=_read_files(host, layout),
        service=replace(service, uses_environment=any(map(_hands_environment_on, dump.sections.values()))),
        log=PurePosixPath(log) if log.startswith("/") else None,
        layout=layout,
    )  # fmt: skip


def _hands_environment_on(section: Mapping[str, str]) -> bool:
    """Check whether programs of a pool get what php-fpm itself found in its environment."""
    return section.get("clear_env") == "no" or any(key.startswith("env[") for key in section)


def _read_files(host: Host, layout: Layout) -> Files:
    """Read the main file and all that are included, as they are. Raises TargetError when one is not there."""
    files: dict[PurePosixPath, bytes] = {}
    asked: set[PurePosixPath] = set()
    wanted = [layout.main]
    while wanted:
        look = host.look(wanted)
        files |= {path: content for path in wanted if (content := look.read(path).content) is not None}
        if layout.main not in files:
            raise TargetError(f"{host.name}: {layout.main} cannot be read. Run tuner as root.")
        included = {layout.prefix / each.value for each in layout.read_entries(files) if each.key == INCLUDE}
        listed = [path for pattern in sorted(included - asked) for path in list_matching(host, pattern)]
        asked |= included
        wanted = [path for path in dict.fromkeys(listed) if path not in files]
    return files


def list_programs(host: Host, package: str, named: str = "") -> tuple[str, ...]:
    """Return the program that the study names, or all, the highest version first.

    Raises TargetError when there is none.
    """
    if named:
        programs.run_named(host, named, "-v")
        return (named,)
    listed = host.run(FIND_PROGRAMS, timeout_s=programs.COMMAND_TIMEOUT_S)
    there = listed.stdout.decode(errors="replace")
    found = [*_PROGRAM.finditer(there)] or _PROGRAM.finditer(
        "\n".join(programs.find_executables(host, TITLE))
    )
    versions = {each[0]: (int(each[1] or 0), int(each[2] or 0)) for each in found}
    if not versions:
        raise TargetError(
            f"{host.name}: no php-fpm is in {', '.join(DIRECTORIES)}, and tuner runs php-fpm as root only "
            f"from there. Install php-fpm with: {say_install(host, package)}"
        )
    return tuple(sorted(versions, key=lambda program: versions[program], reverse=True))


def read_refusals(checked: Completed) -> tuple[str, ...]:
    """Return the warnings and errors of a test of the configuration, each with its file and line."""
    said = _REFUSAL.findall(programs.decode(checked))
    return tuple(dict.fromkeys(each for each in said if not _REPEATED.search(each)))


def read_version(printed: Completed) -> tuple[int, ...]:
    """Read the version out of what `-v` printed; empty when it is not there."""
    version = _VERSION.search(programs.decode(printed))
    return tuple(int(part) for part in version[1].split(".")) if version else ()


def layout_of(installation: Installation) -> Layout:
    """Return where its files are and which pool is tuned. Raises TargetError when that is not clear."""
    layout = installation.layout
    if not isinstance(layout, Layout) or not layout.pool:
        pools = layout.pools if isinstance(layout, Layout) else {}
        raise TargetError(
            f"php-fpm: php-fpm has the pools {', '.join(pools)}, and tuner does not know which pool the load "
            f"uses. Add the web server in front of php-fpm to `servers:`, or name the pool {USUAL_POOL}."
        )
    return layout


def _read_dump(
    dumped: Completed, usage: Completed, host: Host, program: str, main: PurePosixPath | None
) -> Dump:
    printed = programs.decode(dumped)
    found = _MAIN_FILE.search(printed)
    if dumped.returncode != 0 or found is None:
        said = programs.quote_check(read_refusals(dumped), dumped)
        raise TargetError(f"{host.name}: `{program} -tt` refuses the installed configuration: {said}")
    sections: dict[str, dict[str, str]] = {GLOBAL: {}}
    section = GLOBAL
    for each in _DUMPED.finditer(printed):
        if each["section"] is not None:
            section = each["section"]
        elif each["value"] != "undefined":
            sections.setdefault(section, {})[each["key"]] = each["value"]
    prefix = _PREFIX.search(programs.decode(usage))
    return Dump(
        main=main or PurePosixPath(found[1]),
        prefix=PurePosixPath(prefix[1] if prefix else "/usr"),
        sections=sections,
    )


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
