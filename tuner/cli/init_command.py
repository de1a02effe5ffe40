"""The command that writes a study file, for what is named or for what it finds here."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tuner.cli import names
from tuner.cli.arguments import AsJson
from tuner.cli.exit_codes import INTERRUPTED
from tuner.cli.printing import print_json, print_text, remark, say
from tuner.cli.study_commands import Preset
from tuner.errors import TargetError, UsageError
from tuner.shell_words import quote_word, write_command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tuner.commands.candidates import Candidate
    from tuner.commands.corpus import Advice
    from tuner.commands.logged_load import LoggedLoad


class Goal(StrEnum):
    """What a study looks for, other than more goodput."""

    CAPACITY = "capacity"


def init(  # noqa: PLR0913, PLR0917 - the command's options
    server: Annotated[
        str | None,
        typer.Argument(
            help="Server to tune: apache, nginx, … (default: the one installed here).",
            autocompletion=names.servers,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Study file to write (default: SERVER.yaml).")
    ] = None,
    named: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="NAME",
            help="Server to tune, as an option instead of an argument.",
            autocompletion=names.servers,
        ),
    ] = None,
    managed: Annotated[
        bool, typer.Option("--managed", help="Tune the installed service, with load for its virtual hosts.")
    ] = False,
    url: Annotated[
        str | None, typer.Option(help="URL to load, with --managed or for an installed php-fpm.")
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Built-in study to copy instead; see `tuner studies`.",
            autocompletion=names.studies,
        ),
    ] = None,
    content: Annotated[
        str | None,
        typer.Option(
            help="Built-in content to request (`tuner loads`); with --from, the document root of the site.",
            autocompletion=names.contents,
        ),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            help="Backend of the server: php-fpm (tuned as well), h2o, websocket-echo, …",
            autocompletion=names.backends,
        ),
    ] = None,
    logs: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="LOG",
            help="Access log to make the load from; repeat the option for several logs. Allowed are a file, "
            "also .gz or .har, a quoted pattern, - (standard input), host (the log that the installed server "
            "writes) and host:PATH (another log on its host).",
        ),
    ] = None,
    check_logs: Annotated[
        list[str] | None,
        typer.Option(
            "--check-log",
            metavar="LOG",
            help="With --from: another log, such as yesterday's, for the robustness checks; nothing is tuned "
            "on its load.",
        ),
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="Format of the log as the server's configuration has it, or a name: common, combined, … "
            "(default: detected from the first lines).",
        ),
    ] = None,
    stand_in: Annotated[
        bool,
        typer.Option("--stand-in", help="With --from: make files of the logged sizes; no site is needed."),
    ] = False,
    unsafe_methods: Annotated[
        bool,
        typer.Option(
            "--unsafe-methods", help="With --from: also send POST, PUT, PATCH and DELETE, without bodies."
        ),
    ] = False,
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of earlier studies to take hints from; see `tuner corpus`."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Host whose installed service to tune: local or ssh://user@host.")
    ] = "local",
    from_advice: Annotated[
        bool,
        typer.Option(
            "--from-advice", help="Start with the proposals of `tuner advise` for the running server."
        ),
    ] = False,
    goal: Annotated[
        Goal | None,
        typer.Option(
            "--for",
            metavar="GOAL",
            help="With --from: capacity, to find the least memory that serves twice the peak of the log.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a commented study file for a server on this machine, or copy a built-in study.

    Example: `tuner init nginx`
    """
    from tuner.commands.template import copy_study, write_study

    if named is not None and server not in {None, named}:
        raise UsageError(f"--server: {named}, but the argument is {server}. Name one server.")
    server = server or named
    if from_advice and study is not None:
        raise UsageError(
            f"--from-advice: {study} names its own settings. Leave --from-advice or --study out."
        )
    elsewhere = None if host == "local" else host
    own = (server, url, content, backend, corpus, logs or check_logs or None, elsewhere, goal)
    if study is not None and any(each is not None for each in own):
        raise UsageError(
            f"--study: {study} names its own servers and pages. Leave {server or 'the other options'} out."
        )
    logged: LoggedLoad | None = None
    found: tuple[Candidate, ...] = ()
    if study is not None:
        path = copy_study(study, output or Path(f"{study}.yaml"))
    else:
        if server is None:
            found = _look_around(host)
            server = _choose(found, as_json=as_json)
        path = output or Path(f"{server}.yaml")
        logged = _read_logs(
            path, logs, check_logs, log_format, (server, host, managed and host == "local"),
            takes_unsafe=unsafe_methods, stands_in=stand_in,
        )  # fmt: skip
        path = write_study(
            server, path, url=url, content=content, backend=backend, managed=managed or from_advice,
            logged=logged, target=host, note=say, is_right_size=goal is Goal.CAPACITY,
        )  # fmt: skip
        _write_stand_ins(path, logged)
    if from_advice:
        _look_first(path, server or "", host)
    advice = None if corpus is None else _advise(path, corpus)
    _tell(path, found, advice, logged, as_json=as_json)


def _read_logs(
    path: Path,
    logs: list[str] | None,
    check_logs: list[str] | None,
    log_format: str | None,
    installed: tuple[str, str, bool],
    *,
    takes_unsafe: bool,
    stands_in: bool,
) -> "LoggedLoad | None":
    """Read the logs for a study file that is not there yet: they may take minutes.

    `installed` are a server, its host, and whether its files there may say how the logs are read. Raises
    UsageError or TargetError.
    """
    if not logs:
        if log_format is not None or check_logs or takes_unsafe or stands_in:
            raise UsageError(
                "--check-log, --log-format, --stand-in, --unsafe-methods: these options need a log. Name a "
                "log with --from as well."
            )
        return None
    from tuner.commands.logged_load import find_own_logs, needs_host, read_logs
    from tuner.commands.template import refuse_present
    from tuner.plugins import make_host

    refuse_present(path)
    check_logs = check_logs or []
    server, name, is_tuned = installed
    host = make_host(name) if needs_host([*logs, *check_logs]) else None
    known: Mapping[str, str] = {}
    if host is not None:
        known = find_own_logs(server, host)
    elif is_tuned:
        known = _find_own_logs(server, name)
    return read_logs(
        logs, check_logs=check_logs, log_format=log_format, takes_unsafe=takes_unsafe, stands_in=stands_in,
        own=known, host=host,
    )  # fmt: skip


def _find_own_logs(server: str, host: str) -> "Mapping[str, str]":
    """Return the logs of the installed server with their formats; none where its files cannot be read."""
    from tuner.commands.logged_load import find_own_logs
    from tuner.plugins import make_host

    try:
        return find_own_logs(server, make_host(host))
    except TargetError:  # whatever needs the server says so
        return {}


def _write_stand_ins(path: Path, logged: "LoggedLoad | None") -> None:
    """Write the files that stand for a site; where that fails, the study file is not left behind."""
    if logged is None:
        return
    from tuner.commands.logged_load import write_stand_ins

    try:
        write_stand_ins(logged, path.with_suffix(".study"))
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _look_first(path: Path, server: str, host: str) -> None:
    """Add what advice proposes to a new study file; where that fails, the file is not left behind."""
    from tuner.commands.advise import advise
    from tuner.commands.advised_study import propose_advised
    from tuner.plugins import make_host

    try:
        hinted = propose_advised(path, advise(make_host(host), [server]))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    nothing = "nothing, because this server is not near a limit that a study can raise"
    remark(f"{path}: the study tries these values first: {', '.join(hinted) or nothing}")


def _advise(path: Path, corpus: Path) -> "Advice":
    """Add the hints of a corpus to a new study file; where that fails, the file is not left behind."""
    from tuner.commands.corpus import advise

    try:
        return advise(path, corpus)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _look_around(host: str) -> "tuple[Candidate, ...]":
    """Find the servers of a host. Raises TargetError where there is none."""
    from tuner import plugins
    from tuner.commands.candidates import find_candidates, servers_to_tune
    from tuner.kit.packages import say_install

    machine = plugins.make_host(host)
    found = find_candidates(machine)
    if not found:
        first, *others = servers_to_tune()
        raise TargetError(
            "init: this machine has no server that tuner knows. Install a server: "
            f"{say_install(machine, first)} (or {', '.join(others)})."
        )
    return found


def _choose(found: "tuple[Candidate, ...]", *, as_json: bool) -> str:
    """Return the only server, or the one that a person chooses. Raises UsageError where nobody can."""
    if len(found) == 1:
        remark(f"Found here: {found[0].title}, {found[0].state}.")
        return found[0].server
    if sys.stdin.isatty() and not as_json:
        return _ask(found)
    if as_json:
        print_json({"file": None, "found": [_as_json(each) for each in found]})
    listed = "\n".join(f"  tuner init {each.server:<10} {each.title}, {each.state}" for each in found)
    raise UsageError(f"init: this machine has several servers. Name one of these servers:\n{listed}")


def _ask(found: "tuple[Candidate, ...]") -> str:
    """Return the server of the number that is typed; the first when nothing is."""
    for number, each in enumerate(found, start=1):
        say(f"{number:>2}  {each.title}, {each.state}")
        if each.others:
            say(f"    or one of its variants, by name: {', '.join(each.others)}")
    numbered = {str(number): each.server for number, each in enumerate(found, start=1)}
    while True:
        try:
            typed: str = typer.prompt("Which one", default="1", err=True)
        except typer.Abort:  # the end of the input is no answer
            sys.exit(INTERRUPTED)
        chosen = numbered.get(typed.strip(), typed.strip())
        if chosen in {name for each in found for name in (each.server, *each.others)}:
            return chosen
        say(f"{chosen[:40]!r} is not in the list. Type a number from 1 to {len(found)}, or a name.")


def _tell(
    path: Path, found: "tuple[Candidate, ...]", advice: "Advice | None", logged: "LoggedLoad | None", *,
    as_json: bool,
) -> None:  # fmt: skip
    """Print which file was written, what is missing for it, and what to do next."""
    from tuner.commands.candidates import find_missing
    from tuner.study import load_study

    settings = load_study(path)
    missing = find_missing(settings)
    if as_json:
        print_json(
            {
                "file": str(path), "study": settings.name, "servers": list(settings.servers),
                "mode": settings.target.mode, "generator": settings.load.generator, "missing": list(missing),
                "found": [_as_json(each) for each in found],
                **({} if advice is None else {"corpus": advice.as_json()}),
                **({} if logged is None else {"log": logged.as_json()}),
            }
        )  # fmt: skip
    else:
        print_text(str(path))
    if logged is not None:
        remark(logged.describe())
    elif settings.target.is_managed:
        host = settings.target.host
        for log in _find_own_logs(settings.servers[0], host):
            source = quote_word(str(log) if host == "local" else f"host:{log}")
            remark(
                f"The server logs to {log}. `--from {source}` makes the load from the requests in this log."
            )
    if advice is not None:
        remark(advice.as_text())
    for each in missing:
        say(each)
    check = write_command("tuner", "check", path, *(["--trust"] if settings.options else []))
    remark(f"Read the study file, then run: {check}\n{describe_first_run(path)}")


def _as_json(candidate: "Candidate") -> dict[str, Any]:
    return {
        "server": candidate.server, "version": ".".join(map(str, candidate.version)),
        "package": candidate.package, "running": candidate.is_running,
        "mode": "sandbox" if candidate.is_private else "managed", "others": list(candidate.others),
        "command": write_command("tuner", "init", candidate.server),
    }  # fmt: skip


def describe_first_run(path: Path) -> str:
    """Return how a new study is run, and for how long."""
    from tuner.study.presets import PRESETS

    quick, whole = (f"{PRESETS[name].minutes:g} minutes" for name in (Preset.QUICK, Preset.STANDARD))
    run = write_command("tuner", "run", path, "--preset", Preset.QUICK)
    return f"Tune: {run} ({quick}). Without --preset, a run takes {whole} and proves smaller gains"
