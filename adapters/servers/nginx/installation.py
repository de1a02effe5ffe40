"""Find the installed nginx: its files, what they say, and how it is started."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from tuner.adapters.servers.nginx.builds import PREFIX, build_of
from tuner.adapters.servers.nginx.follow import DIRECTORY, FILE
from tuner.adapters.servers.nginx.layout import Layout
from tuner.adapters.servers.nginx.servers import list_sites
from tuner.adapters.servers.nginx.syntax import ENCODING, Directive, read_directives
from tuner.adapters.servers.nginx.tree import join_files, read_tree
from tuner.errors import TargetError
from tuner.kit.config_files import find_readable, list_matching
from tuner.kit.programs import decode, list_running
from tuner.kit.services import describe_service, name_service, probe_service
from tuner.ports import Command, Facts, Files, Host, Installation, SentRequest

TIMEOUT_S = 20.0
MASTER_TITLE = "nginx: master process"
_DUMPED = re.compile(rb"^# configuration file (/.*):$", re.MULTILINE)
_IN_FOREGROUND = re.compile(rb"daemon\s+off\s*;")
_EMERGENCY = re.compile(r"\[emerg\] .*")
_TOLD = re.compile(r"\s-c\s*(\S+)")
_NOT_PERMITTED = "(13: Permission denied)"


def find_installed(
    host: Host, facts: Facts, build: Mapping[str, str], *, command: str | None = None
) -> Installation:
    """Find the installed service.

    Args:
        host: where it is installed.
        facts: of its program.
        build: what `nginx -V` says that it was configured with (`conf-path`, `pid-path` …).
        command: of the process that is looked at. nginx itself is not asked then: its test of a configuration
            creates logs and folders that are missing, and waits for the reader of a pipe.

    Raises TargetError when there is no configuration, or one that nginx itself does not accept.
    """
    program, prefix = str(facts.program), PurePosixPath(build.get("prefix", PREFIX))
    told, running = _read_told(command or ""), _find_main(host)
    main = prefix / ((running if command is None else told) or build.get("conf-path", "conf/nginx.conf"))
    check = (program, "-t", "-c", str(main))
    names = _ask_names(host, program, main) if command is None else ()
    files = _read_files(host, main, names or _gather_names(host, main))
    layout = Layout(join_files(main, files), files, build, partial(_resolve, host))
    pid_file = prefix / _first_argument(layout.main, "pid", build.get("pid-path", "logs/nginx.pid"))
    log = _first_argument(layout.main, "error_log", build.get("error-log-path", "logs/error.log"))
    name = name_service(host, build_of(facts).services)
    service = describe_service(
        name, host.run_all(probe_service(name)), check=check, start=(program, "-c", str(main)),
        reload=(program, "-s", "reload", "-c", str(main)), title=MASTER_TITLE, pid_file=pid_file,
    )  # fmt: skip
    service = replace(
        service,
        stays="" if service.is_systemd else _find_foreground(host, layout, pid_file),
        uses_environment=bool(layout.main.inside("env")),
    )
    installation = Installation(
        facts=facts,
        files=files,
        service=service if command is None or told == running else None,
        log=None if log == "stderr" or log.startswith(("syslog:", "memory:")) else prefix / log,
    )
    return _with_layout(installation, layout)


def _find_main(host: Host) -> str:
    """Return the file that the running nginx was told to read; empty where it is the usual, or not clear."""
    running = list_running(host, f"^{MASTER_TITLE}")
    return _read_told(running[0]) if len(running) == 1 else ""


def _read_told(command: str) -> str:
    found = _TOLD.search(command)
    return found[1] if found else ""


def aim_installation(host: Host, installation: Installation, requests: Sequence[SentRequest]) -> Installation:
    """Return the installation with the settings that act on these requests."""
    known: dict[PurePosixPath, str | None] = {}

    def look(path: PurePosixPath) -> str | None:
        if path not in known:
            known[path] = look_at(host, path)
        return known[path]

    layout = layout_of(installation).aim(requests, look)
    return _with_layout(installation, layout)


def layout_of(installation: Installation) -> Layout:
    """Return what was read of an installation, or read it."""
    if isinstance(installation.layout, Layout):
        return installation.layout
    return Layout(read_tree(installation), installation.files, {})


def _with_layout(installation: Installation, layout: Layout) -> Installation:
    current, withheld = layout.read(installation.facts)
    return replace(
        installation,
        facts=replace(installation.facts, current=current, withheld=withheld),
        port=layout.port,
        sites=list_sites(layout.listeners),
        passes_to=layout.passes_to,
        layout=layout,
    )


def look_at(host: Host, path: PurePosixPath) -> str | None:
    """Return what a path is; None where nobody may look."""
    done = host.run(("env", "LC_ALL=C", "stat", "-L", "-c", "%F", "--", str(path)), timeout_s=TIMEOUT_S)
    if done.returncode != 0:
        return None if b"Permission denied" in done.stderr else ""
    return DIRECTORY if b"directory" in done.stdout else FILE


def _resolve(host: Host, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the addresses of names as the host resolves them, of those that it does."""
    ask = [Command(argv=("getent", "ahosts", name), timeout_s=TIMEOUT_S, may_fail=True) for name in names]
    with suppress(TargetError):  # there is no getent
        listed = ([line.split() for line in decode(done).splitlines()] for done in host.run_all(ask))
        found = {
            name: tuple(dict.fromkeys(words[0] for words in lines if words))
            for name, lines in zip(names, listed, strict=True)
        }
        return {name: addresses for name, addresses in found.items() if addresses}
    return {}


def _find_foreground(host: Host, layout: Layout, pid_file: PurePosixPath) -> str:
    """Return what keeps nginx in the foreground: a directive, or the option with which it was started."""
    for directive in layout.main.inside("daemon"):
        if directive.arguments[:1] == ("off",):
            return f"`daemon off;` in {layout.place(directive)}"
    pid = (host.read(pid_file).content or b"").strip()
    if pid.isdigit():
        started = host.read(PurePosixPath("/proc", pid.decode(), "cmdline")).content or b""
        if _IN_FOREGROUND.search(started):
            return f"process {pid.decode()} was started with `-g 'daemon off;'`"
    return ""


def read_build(printed: str) -> dict[str, str]:
    """Read the options with a value of `nginx -V`."""
    return dict(re.findall(r"--([a-z0-9_-]+)=(?!')(\S+)", printed))


def _ask_names(host: Host, program: str, main: PurePosixPath) -> tuple[PurePosixPath, ...]:
    """Let nginx name the files that it reads; none when it is not permitted to read them.

    What it prints of them is not taken: a file may hold a line that looks like the beginning of another.
    """
    try:
        dumped = host.run((program, "-T", "-c", str(main)), timeout_s=TIMEOUT_S, as_root=True)
    except TargetError:  # there is no sudo
        return ()
    refused = _EMERGENCY.search(decode(dumped)) if dumped.returncode else None
    if refused is not None and _NOT_PERMITTED not in refused[0]:
        broken = f"{host.name}: nginx does not accept its installed configuration: {refused[0]}"
        raise TargetError(f"{broken}. Correct the configuration until `nginx -t` accepts it.")
    names = tuple(PurePosixPath(name.decode(ENCODING)) for name in _DUMPED.findall(dumped.stdout))
    return names if main in names else ()


def _gather_names(host: Host, main: PurePosixPath) -> tuple[PurePosixPath, ...]:
    """Follow the includes, for who may not run `nginx -T`."""
    pending = find_readable(host, [main])
    found = dict.fromkeys(pending)
    while pending:
        name = pending.pop()
        text = (host.read(name).content or b"").decode(ENCODING)
        flat = [each for top in read_directives(text, name) for each in (top, *top.walk())]
        included = [
            path
            for each in flat
            if each.name == "include" and each.arguments
            for path in list_matching(host, main.parent / each.arguments[0])
        ]
        if new := [path for path in dict.fromkeys(included) if path not in found]:
            readable = find_readable(host, new)
            found |= dict.fromkeys(readable)
            pending += readable
    return tuple(found)


def _read_files(host: Host, main: PurePosixPath, names: tuple[PurePosixPath, ...]) -> Files:
    look = host.look(names)
    states = {name: look.read(name).content for name in names}
    if states.get(main) is None:
        raise TargetError(
            f"{host.name}: the file {main} does not exist. Reinstall nginx, or restore the file."
        )
    return {name: content for name, content in states.items() if content is not None}


def _first_argument(main: Directive, name: str, otherwise: str) -> str:
    given = main.inside(name)
    return given[0].arguments[0] if given and given[0].arguments else otherwise
