"""The commands. The only place that prints and exits; heavy imports wait until a command needs them."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tuner import __version__
from tuner.errors import TunerError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from tuner.settings import Study
    from tuner.summary import Summary

app = typer.Typer(
    name="tuner",
    help=__import__("tuner").__doc__,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # importing rich would double the time of `tuner --help`
    pretty_exceptions_enable=False,
)

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="Path of the study file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
NOTHING_BETTER = 1
INTERRUPTED = 130
LEAST_CONFIRM_S, MOST_CONFIRM_S = 10, 24 * 3600


class Preset(StrEnum):
    """How thorough a run is."""

    QUICK = "quick"
    STANDARD = "standard"
    THOROUGH = "thorough"


@app.command()
def init(
    server: Annotated[str, typer.Argument(help="Which server to tune: apache, nginx …")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write.")] = None,
) -> None:
    """Detect the server and write a commented study file."""
    from tuner.template import write_study

    path = write_study(server, output or Path(f"{server}.yaml"))
    _show(str(path))


def _read(study: Path) -> "Study":
    """Read the study file before all else is imported, which takes a second: a wrong one is said at once."""
    from tuner.settings import load_study

    return load_study(study)


@app.command()
def check(
    study: StudyPath,
    noise: Annotated[bool, typer.Option("--noise", help="Measure what gain this host can prove.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Of installed services: show the largest changes as a diff.")
    ] = False,
    sudoers: Annotated[
        bool, typer.Option("--sudoers", help="Print the sudoers file for what needs root on the target.")
    ] = False,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Run the commands, and make the settings, that are the study's own."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Try everything that a run needs, without beginning one."""
    settings = _read(study)
    if settings.target.is_managed:
        _check_managed(settings, trust=trust, plan=plan, noise=noise, sudoers=sudoers, as_json=as_json)
        return
    if plan or sudoers:
        option = "--plan" if plan else "--sudoers"
        msg = f"{option}: {study} tunes private instances; nothing of the host is changed. Leave it out."
        raise UsageError(msg)
    from tuner.preflight import check_study
    from tuner.terminal import open_progress

    with open_progress(_stderr()) as progress:
        findings = check_study(settings, trusts=trust, measure_noise=noise, progress=progress)
    _print_json(findings.as_json()) if as_json else _show(findings.as_text())


def _check_managed(
    settings: "Study", *, trust: bool, plan: bool, noise: bool, sudoers: bool, as_json: bool
) -> None:
    from tuner import managed_check

    if noise:
        msg = "--noise: it restarts the server, and a check changes nothing. `tuner run` measures it."
        raise UsageError(msg)
    if sudoers:
        print(managed_check.print_sudoers(settings), end="")
        return
    findings = managed_check.check_managed(settings, trusts=trust, shows_plan=plan)
    _print_json(findings.as_json()) if as_json else _show(findings.as_text())


@app.command()
def run(
    study: StudyPath,
    preset: Annotated[Preset | None, typer.Option(help="How thorough; quick takes five minutes.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Wall time of the whole run.")] = None,
    trials: Annotated[int | None, typer.Option(help="Configurations to try at the most.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before installed services change.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find, prove and export better settings; go on with an interrupted run."""
    _refuse_below("--minutes", minutes, 0.1)
    _refuse_below("--trials", trials, 1)
    settings = _read(study)
    if settings.target.is_managed:
        _ask_for_agreement(settings, study, yes=yes)
    from tuner import session
    from tuner.files import write_results
    from tuner.terminal import final_screen, open_progress

    if session.is_finished(settings):
        _say(f"{study}: this study is finished; here is its result.")
    try:
        with open_progress(_stderr()) as progress:
            reading = session.run(
                settings, preset=preset.value if preset else None, minutes=minutes, trials=trials,
                progress=progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        _say(f"Stopped; everything is as it was before. Go on with: tuner run {study}")
        sys.exit(INTERRUPTED)
    results = write_results(reading)
    if as_json:
        from tuner.summary import as_json as summary_json

        _print_json(summary_json(reading.summary))
    else:
        _stdout().print(final_screen(reading.summary, report=results.report, exports=results.exports))
    sys.exit(_verdict(reading.summary))


def _ask_for_agreement(settings: "Study", study: Path, *, yes: bool) -> None:
    """Let a person agree before the first managed run on a host."""
    from tuner.consent import has_agreed, remember_agreement

    host = settings.target.host
    if has_agreed(host):
        return
    if not yes:
        if not sys.stdin.isatty():
            msg = (
                f"{study}: target: a run changes and restarts what is installed on {host} (see `tuner check "
                f"{study} --plan`), and nobody can be asked here. Agree with --yes."
            )
            raise UsageError(msg)
        servers = ", ".join(settings.servers)
        _say(
            f"This changes and restarts {servers} on {host}, many times, and puts everything back. "
            f"What exactly: tuner check {study} --plan"
        )
        if not typer.confirm("Go on?", err=True):
            sys.exit(INTERRUPTED)
    remember_agreement(host)


@app.command()
def show(study: StudyPath, as_json: AsJson = False) -> None:
    """Show the state of a study: incumbent, winner, gain."""
    settings = _read(study)
    from tuner import session
    from tuner.files import find_results
    from tuner.summary import as_json as summary_json
    from tuner.terminal import final_screen

    summary = session.read(settings, with_sensitivity=as_json).summary
    if as_json:
        _print_json(summary_json(summary))
    else:
        results = find_results(settings)
        _stdout().print(final_screen(summary, report=results.report, exports=results.exports))


@app.command()
def explain(study: StudyPath, as_json: AsJson = False) -> None:
    """Say which settings mattered, and how sure that is."""
    settings = _read(study)
    from tuner import session
    from tuner.explain import describe
    from tuner.summary import as_json as summary_json

    summary = session.read(settings).summary
    if as_json:
        _print_json(summary_json(summary)["sensitivity"])
    else:
        _show(describe(summary.sensitivity, summary.starts))


@app.command()
def report(
    study: StudyPath,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="HTML file to write.")] = None,
) -> None:
    """Write one self-contained HTML page."""
    settings = _read(study)
    from tuner import session
    from tuner.files import write_report

    _show(str(write_report(session.read(settings), output)))


@app.command()
def export(
    study: StudyPath,
    form: Annotated[str, typer.Option("--format", help="apache, nginx, sysctl or json.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder to write to.")] = None,
    pick: Annotated[
        int | None, typer.Option(help="Of a study with two objectives, the choice that `tuner show` lists.")
    ] = None,
) -> None:
    """Write the winning settings in a format that operators use, with an undo file."""
    settings = _read(study)
    from tuner import session
    from tuner.files import write_export

    reading = session.read(settings, with_sensitivity=False)
    for path in write_export(reading if pick is None else reading.pick(pick), form, output):
        _show(str(path))


@app.command()
def compare(
    study: StudyPath,
    first: Annotated[str, typer.Argument(metavar="A", help="default, winner, or a YAML file of values.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The same; the gain is of B over A.")],
    pairs: Annotated[int | None, typer.Option(help="Fresh pairs of starts to measure.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure two configurations in pairs."""
    _refuse_below("--pairs", pairs, 2)
    settings = _read(study)
    from tuner import session
    from tuner.settings import load_values
    from tuner.summary import gain_json
    from tuner.tables import comparison_table
    from tuner.terminal import open_progress

    sides = [name if name in {"default", "winner"} else load_values(Path(name)) for name in (first, second)]
    try:
        with open_progress(_stderr()) as progress:
            comparison = session.compare(settings, sides[0], sides[1], pairs=pairs, progress=progress)
    except KeyboardInterrupt:
        _say("Stopped; everything is as it was before.")
        sys.exit(INTERRUPTED)
    if as_json:
        _print_json(gain_json(comparison.gain))
    else:
        _stdout().print(comparison_table(comparison, first, second))


@app.command()
def apply(
    study: StudyPath,
    host: Annotated[
        str | None, typer.Option(help="local or ssh://user@host; the study's target when left out.")
    ] = None,
    url: Annotated[str | None, typer.Option(help="What must answer with 200 afterwards.")] = None,
    confirm_within: Annotated[
        str, typer.Option(help="Time until the host takes it back: 90s, 10m, 2h.")
    ] = "10m",
    undo: Annotated[bool, typer.Option("--undo", help="Take back what was applied.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before it is changed.")] = False,
) -> None:
    """Put the winner on a host for good; it is taken back unless `tuner confirm` comes in time."""
    settings = _read(study)
    from tuner import plugins

    place = host or settings.target.host
    if undo:
        from tuner.guard import undo as undo_host

        paths = undo_host(plugins.make_host(place))
        for path in paths:
            _show(str(path))
        _say(f"{place}: {len(paths)} originals put back." if paths else f"{place}: nothing was applied.")
        return
    from tuner import session
    from tuner.apply import apply_winner

    within_s = _read_duration("--confirm-within", confirm_within)
    reading = session.read(settings, with_sensitivity=False)
    if not yes:
        _agree_to_apply(settings, place)
    applied = apply_winner(reading, host_name=host, url=url, confirm_within_s=within_s)
    for path in applied.files:
        _show(str(path))
    of_host = "" if place == "local" else f" --host {place}"
    _say(
        f"{place}: the winner is in force and answers. Keep it with: tuner confirm{of_host}\n"
        f"Without that it is taken back in {confirm_within}. Later: tuner apply {study}{of_host} --undo"
    )


def _agree_to_apply(settings: "Study", place: str) -> None:
    if not sys.stdin.isatty():
        msg = f"apply: it changes and restarts {', '.join(settings.servers)} on {place}. Agree with --yes."
        raise UsageError(msg)
    if not typer.confirm(f"Change and restart {', '.join(settings.servers)} on {place}?", err=True):
        sys.exit(INTERRUPTED)


@app.command()
def confirm(host: Annotated[str, typer.Option(help="Where it was applied.")] = "local") -> None:
    """Keep what `tuner apply` has put on a host."""
    from tuner import plugins
    from tuner.guard import confirm as confirm_host

    confirm_host(plugins.make_host(host))
    _say(f"{host}: what was applied stays.")


@app.command()
def restore(
    host: Annotated[str, typer.Option(help="Whose originals to put back.")] = "local",
) -> None:
    """Put back what an earlier run changed outside a sandbox."""
    from tuner import plugins
    from tuner.guard import restore_host
    from tuner.journal import open_journal

    with open_journal() as journal:
        restored = restore_host(plugins.make_host(host), journal)
    for path in restored:
        _show(str(path))
    _say(f"{len(restored)} originals put back." if restored else "Nothing to restore.")


@app.command()
def spaces(
    name: Annotated[str | None, typer.Argument(help="A space; all names when left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """List search spaces, or the parameters of one with range, default and reason."""
    from tuner.space import available_spaces, describe_space

    if name is None:
        rows: Any = [{"name": each} for each in available_spaces()]
        _print_json(rows) if as_json else print("\n".join(available_spaces()))
        return
    rows = describe_space(name)
    if as_json:
        _print_json(rows)
    else:
        from tuner.space import describe_dead, describe_presets
        from tuner.tables import parameter_list

        _stdout().print(parameter_list(rows, describe_dead(name), describe_presets(name)))


@app.command()
def adapters(as_json: AsJson = False) -> None:
    """List the hosts, servers and load generators that tuner knows."""
    from dataclasses import asdict

    from tuner.plugins import list_adapters

    found = list_adapters()
    if as_json:
        _print_json([asdict(adapter) | {"kind": adapter.kind.value} for adapter in found])
    else:
        for adapter in found:
            _show(f"{adapter.kind.value:<15} {adapter.name:<10} {adapter.summary}")


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer passes it by position
    if value:
        print(f"tuner {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    """Take the options that come before the command."""
    _Debug.on = debug


class _Debug:
    on = False


def main() -> NoReturn:
    """Run one command; every error that tuner means ends in one message and its exit code."""
    try:
        app()
    except TunerError as error:
        if _Debug.on:
            raise
        _say(f"tuner: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _say("Stopped.")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(INTERRUPTED)
    sys.exit(0)


def _verdict(summary: "Summary") -> int:
    return 0 if summary.gain is not None and summary.gain.verdict == "improved" else NOTHING_BETTER


def _refuse_below(option: str, value: float | None, least: float) -> None:
    if value is not None and not value >= least:
        msg = f"{option}: {value:g} is too little. Give at least {least:g}."
        raise UsageError(msg)


def _read_duration(option: str, text: str) -> float:
    """Read 90s, 10m or 2h."""
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = text[:-1], text[-1:]
    seconds = float(number) * units[unit] if number.isdecimal() and unit in units else 0.0
    if not LEAST_CONFIRM_S <= seconds <= MOST_CONFIRM_S:
        msg = f"{option}: {text!r} is no time from 10s to 24h. Write it as 90s, 10m or 2h."
        raise UsageError(msg)
    return seconds


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=1))


def _show(text: str) -> None:
    from tuner.wording import make_lines_printable

    print(make_lines_printable(text))


def _say(text: str) -> None:
    """Print a message, which may quote what a server or a host said: nothing in it steers the terminal."""
    from tuner.wording import make_lines_printable

    print(make_lines_printable(text), file=sys.stderr)


def _stdout() -> "Console":
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def _stderr() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)
