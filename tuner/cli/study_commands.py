"""The commands on a study file: make it, check it, run it, and show what came out.

What they need is imported when one is called: `tuner --help` and a wrong study file are answered at once.
"""

import gc
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tuner
from tuner.cli import names
from tuner.cli.agreement import agree_to_run
from tuner.cli.arguments import (
    Agreed,
    AsJson,
    AsMarkdown,
    Form,
    StudyPath,
    choose_form,
    minutes_option,
    read_study,
    refuse_outside,
)
from tuner.cli.exit_codes import INTERRUPTED, NOT_READY, verdict_code
from tuner.cli.printing import (
    make_console,
    print_files,
    print_json,
    print_text,
    remark,
    say,
    show_progress,
    what_was_typed,
)
from tuner.cli.verbosity import Verbosity
from tuner.errors import TooNoisy, UsageError
from tuner.shell_words import write_command

if TYPE_CHECKING:
    from tuner.commands.outputs import Results
    from tuner.commands.session import Reading, RunForecast
    from tuner.report.summary import Summary
    from tuner.study import Study


class Preset(StrEnum):
    """How thorough a run is."""

    QUICK = "quick"
    STANDARD = "standard"
    THOROUGH = "thorough"


Length = Annotated[
    Preset | None,
    typer.Option(help="Measurement length per trial (default: the preset of the study's run or file)."),
]


def settle_length(settings: "Study", preset: Preset | None) -> str:
    """Return the preset that is asked or followed; say which where that is not the one of the study file."""
    from tuner.commands.session import follow_preset

    name = follow_preset(settings, preset.value if preset else None)
    if preset is None and name != settings.preset:
        remark(
            f"{settings.path}: tuner uses the preset {name}, as this study was run with it. To choose "
            "another preset, use --preset."
        )
    return name


def check(
    study: Annotated[
        Path | None,
        typer.Argument(metavar="[STUDY]", help="Path of the study file (default: check the host)."),
    ] = None,
    noise: Annotated[
        bool, typer.Option("--noise", help="Measure the smallest gain that this host can prove.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show the largest changes to installed services as a diff.")
    ] = False,
    sudoers: Annotated[
        bool, typer.Option("--sudoers", help="Print a sudoers file for the commands that need root.")
    ] = False,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Allow the commands and settings that the study defines."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Validate a study without running it; without a study, show what this host has for tuning.

    Example: `tuner check nginx.yaml`
    """
    if study is None:
        if noise or plan or sudoers:
            raise UsageError("check: --noise, --plan and --sudoers need a study. Name its file.")
        _check_host(as_json=as_json)
        return
    # It ends before garbage could matter; a tenth of the time would go into looking for it.
    gc.disable()
    settings = read_study(study)
    is_managed = settings.target.is_managed
    if noise and is_managed:
        raise UsageError(
            "--noise: this option restarts the server, and `check` never changes an installed service. "
            "`tuner run` measures the noise."
        )
    if (plan or sudoers) and not is_managed:
        option = "--plan" if plan else "--sudoers"
        raise UsageError(
            f"{option}: {study} tunes private instances, so a run changes no file of the host. Leave "
            f"{option} out."
        )
    if sudoers:
        from tuner.commands.sudoers import make_sudoers

        text = make_sudoers(settings, warn=say)
        print_json({"sudoers": text}) if as_json else print(text, end="")
        return
    from tuner.commands.check import check_study
    from tuner.study.file import for_each_target

    with show_progress() as progress:
        found = [
            check_study(each, trusts=trust, measure_noise=noise, shows_plan=plan, progress=progress)
            for each in for_each_target(settings)
        ]
    if settings.targets is not None:
        from tuner.commands.fleet.hosts import refuse_unlike

        refuse_unlike([each.setup for each in found])
    if as_json:
        by_host = {each.setup.settings.target.host: each.as_json() for each in found}
        more = {"targets": by_host} if settings.targets is not None else {}
        print_json({**found[0].as_json(), **more})
        return
    print_text("\n\n".join(each.as_text(is_verbose=Verbosity.verbose) for each in found))


def _check_host(*, as_json: bool) -> None:
    """Print what this host has; end with 1 when nothing can be tuned."""
    from tuner import plugins
    from tuner.commands.host_check import check_host
    from tuner.deploy.discovery import LOCAL

    found = check_host(plugins.make_host(LOCAL))
    print_json(found.as_json()) if as_json else print_text(found.as_text())
    if found.trouble:
        sys.exit(NOT_READY)
    remark(f"Next: {write_command('tuner', 'init', found.servers[0].server)}")


ShowAll = Annotated[bool, typer.Option("--all", help="Print every detail, not only what fits one screen.")]


def run(  # noqa: PLR0913, PLR0917 - the command's options
    study: StudyPath,
    preset: Annotated[
        Preset | None, typer.Option(help="Thoroughness: 5, 75 or 180 minutes (default: as in the study).")
    ] = None,
    minutes: Annotated[float | None, minutes_option("Time limit of the whole run")] = None,
    trials: Annotated[int | None, typer.Option(help="Maximum number of configurations to try.")] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address of the Dask scheduler, such as tls://host:8786."),
    ] = None,
    yes: Agreed = False,
    show_all: ShowAll = False,
    as_json: AsJson = False,
) -> None:
    """Find, prove and export better settings; resume an interrupted run.

    Example: `tuner run nginx.yaml --preset quick`
    """
    settings = read_study(study)
    from tuner.study.file import for_each_target
    from tuner.study.presets import MOST_MINUTES, MOST_TRIALS

    refuse_outside("--minutes", minutes, 0.1, MOST_MINUTES)
    refuse_outside("--trials", trials, 1, MOST_TRIALS)
    if scheduler is None:  # otherwise its workers have asked
        for each in for_each_target(settings):
            agree_to_run(each, study, yes=yes)
    from tuner.commands.outputs import write_results
    from tuner.commands.session import look_ahead

    name = preset.value if preset else None
    ahead = look_ahead(settings, preset=name, minutes=minutes, trials=trials)
    if ahead is not None:
        remark(describe_ahead(study, ahead))
    try:
        with show_progress() as progress:
            reading = tuner.run(
                settings, preset=name, minutes=minutes, trials=trials, progress=progress, scheduler=scheduler
            )
    except KeyboardInterrupt:
        say(f"Stopped. Everything is in its earlier state again. Resume with: {what_was_typed()}")
        sys.exit(INTERRUPTED)
    except TooNoisy as noisy:
        say(str(noisy))
        reading = tuner.read(settings)
        if as_json or any(trial.counts for trial in reading.summary.trials):
            _print_result(study, reading, write_results(reading), as_json=as_json, show_all=show_all)
        sys.exit(noisy.exit_code)
    if ahead is None:
        remark(f"{study}: this study is already finished. This is its result.")
    _print_result(study, reading, write_results(reading), as_json=as_json, show_all=show_all)
    sys.exit(verdict_code(reading.summary))


def describe_ahead(study: Path, ahead: "RunForecast") -> str:
    """Return what a run says first: for how long it will run, and what can be done about that."""
    from tuner.report.wording import say_duration

    takes = say_duration(60 * ahead.minutes)
    whole = " in all" if ahead.is_begun else ""
    shorter = (
        "" if ahead.is_begun or ahead.preset == Preset.QUICK else (" For a shorter run, use --preset quick.")
    )
    return (
        f"{study}: preset {ahead.preset}, about {takes}{whole}. Press Ctrl-C to stop; run the same command "
        f"again to resume.{shorter}"
    )


def show(
    study: StudyPath,
    show_all: ShowAll = False,
    as_json: AsJson = False,
    as_markdown: AsMarkdown = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all trials as CSV.")] = False,
) -> None:
    """Show the state of a study: best configuration so far, winner, gain.

    Example: `tuner show nginx.yaml`
    """
    form = choose_form(as_json=as_json, as_markdown=as_markdown, as_csv=as_csv)
    settings = read_study(study)
    from tuner.commands.outputs import find_results
    from tuner.report.curve import curve_json, read_curves
    from tuner.report.summary_json import summary_json
    from tuner.report.sweep import name_best, read_sweeps, sweep_json

    reading = tuner.read(settings, with_explanation=as_json)
    refuse_unmeasured(study, reading.summary)
    sweeps, curves = read_sweeps(settings, reading.space), read_curves(settings)
    if as_json:
        beside = {"sweeps": list(map(sweep_json, sweeps)), "curves": list(map(curve_json, curves))}
        print_json(summary_json(reading.summary) | beside | {"changed": reading.changed})
        return
    _tell_changed(study, reading)
    if form is not Form.SCREEN:
        from tuner.export.result_tables import result_as_markdown, trials_as_csv

        write = result_as_markdown if form is Form.MARKDOWN else trials_as_csv
        print_text(write(reading.summary).rstrip("\n"))
        return
    for each in sweeps:
        print_text(f"sweep  {name_best(each)}")
    for curve in curves:
        print_text(f"curve  {curve.verdict}")
    _print_result(study, reading, find_results(settings), as_json=False, show_all=show_all)


def _tell_changed(study: Path, reading: "Reading") -> None:
    """Say that a study file was edited since: what is shown and written is not of what it says now."""
    if reading.changed:
        say(
            f"{study}: {reading.changed}. tuner shows the study before this change; `tuner run` refuses the "
            "changed file."
        )


def refuse_unmeasured(study: Path, summary: "Summary") -> None:
    """Raise UsageError for a study that has nothing to show, with what went wrong where something did."""
    if any(trial.windows for trial in summary.trials):
        return
    failed = [trial.failure for trial in summary.trials if trial.failure is not None]
    why = f" The last trial failed ({failed[-1].kind}): {failed[-1].reason.rstrip(' .')}." if failed else ""
    what_next = "Run this command again later."
    if summary.state != "running":
        what_next = f"Resume with: {write_command('tuner', 'run', study)}"
    raise UsageError(f"{study}: the study has no measurements yet, and is {summary.state}.{why} {what_next}")


def _print_result(
    study: Path, reading: "Reading", results: "Results", *, as_json: bool, show_all: bool
) -> None:
    from tuner.commands.page import list_commands
    from tuner.report.summary_json import summary_json
    from tuner.report.terminal import final_screen

    if as_json:
        print_json(summary_json(reading.summary))
        return
    if not show_all:
        remark(f"All details: {write_command('tuner', 'show', study, '--all')}")
    screen = final_screen(
        reading.summary, report=results.report, exports=results.exports, warnings=results.lowered,
        is_short=not show_all,
    )  # fmt: skip
    make_console().print(screen)
    for _, command in list_commands(reading)[:1]:
        remark(f"Next: {command}")


def explain(
    study: StudyPath,
    parameter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Parameter to show in detail, with its response curve.",
            autocompletion=names.parameters,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the effect of each setting and of other values, with confidence intervals.

    Example: `tuner explain nginx.yaml --parameter worker_processes`
    """
    settings = read_study(study)
    from tuner.commands.page import find_explanation

    kept = find_explanation(settings) if as_json and parameter is None else None
    if kept is not None:
        print_json(json.loads(kept))
        return
    from tuner.report.explanation.as_json import depth_json, explanation_json
    from tuner.report.explanation.screen import depth_screen, explain_screen

    reading = tuner.read(settings)
    summary = reading.summary
    refuse_unmeasured(study, summary)
    _tell_changed(study, reading)
    if parameter is not None:
        depth = summary.look_into(parameter)
        if as_json:
            print_json(depth_json(depth))
        else:
            make_console().print(depth_screen(summary.space, depth))
    elif summary.explanation is not None:
        if as_json:
            print_json(explanation_json(summary.explanation))
        else:
            make_console().print(explain_screen(summary))


def report(
    study: StudyPath,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Self-contained HTML file to write.")
    ] = None,
    single_file: Annotated[
        bool,
        typer.Option("--single-file", help="Include plotly in the page, instead of in a file next to it."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the study as an HTML page.

    Example: `tuner report nginx.yaml -o nginx.html`
    """
    settings = read_study(study)
    from tuner.commands.page import find_page, keep_page, make_page, write_page

    page = find_page(settings)
    if page is None:
        reading = tuner.read(settings)
        refuse_unmeasured(study, reading.summary)
        _tell_changed(study, reading)
        page = make_page(reading)
        keep_page(reading, page)
    path = str(write_page(settings, page, output, single_file=single_file))
    print_json({"file": path}) if as_json else print_text(path)


def export(
    study: StudyPath,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="Name of a server of the study, for its own configuration files; or json, shell, ansible, "
            "tuned, cloud-init, dockerfile, kubernetes or markdown.",
            autocompletion=names.formats,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to write to (default: that of the study's results)."),
    ] = None,
    pick: Annotated[
        int | None, typer.Option(help="With two objectives: number of the choice, as in `tuner show --all`.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the winning settings in a format for operators, with a way to undo them.

    Example: `tuner export nginx.yaml --format ansible`
    """
    settings = read_study(study)
    from tuner.commands.outputs import write_export

    reading = tuner.read(settings)
    _tell_changed(study, reading)
    warnings: list[str] = []

    def warn(line: str) -> None:
        warnings.append(line)
        say(line)

    written = write_export(reading if pick is None else reading.pick(pick), form, output, warn=warn)
    print_files(written, as_json=as_json, warnings=warnings)
