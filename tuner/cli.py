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
    print(path)


def _read(study: Path) -> "Study":
    """Read the study file before all else is imported, which takes a second: a wrong one is said at once."""
    from tuner.settings import load_study

    return load_study(study)


@app.command()
def check(
    study: StudyPath,
    noise: Annotated[bool, typer.Option("--noise", help="Measure what gain this host can prove.")] = False,
    as_json: AsJson = False,
) -> None:
    """Try everything that a run needs, without beginning one."""
    settings = _read(study)
    from tuner.preflight import check_study
    from tuner.terminal import open_progress

    with open_progress(_stderr()) as progress:
        findings = check_study(settings, measure_noise=noise, progress=progress)
    _print_json(findings.as_json()) if as_json else print(findings.as_text())


@app.command()
def run(
    study: StudyPath,
    preset: Annotated[Preset | None, typer.Option(help="How thorough; quick takes five minutes.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Wall time of the whole run.")] = None,
    trials: Annotated[int | None, typer.Option(help="Configurations to try at the most.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find, prove and export better settings; go on with an interrupted run."""
    _refuse_below("--minutes", minutes, 0.1)
    _refuse_below("--trials", trials, 1)
    settings = _read(study)
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
        print(describe(summary.sensitivity, summary.starts))


@app.command()
def report(
    study: StudyPath,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="HTML file to write.")] = None,
) -> None:
    """Write one self-contained HTML page."""
    settings = _read(study)
    from tuner import session
    from tuner.files import write_report

    print(write_report(session.read(settings), output))


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
        print(path)


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
        print(path)
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
            print(f"{adapter.kind.value:<15} {adapter.name:<10} {adapter.summary}")


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


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=1))


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _stdout() -> "Console":
    from rich.console import Console

    return Console(highlight=False)


def _stderr() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False)
