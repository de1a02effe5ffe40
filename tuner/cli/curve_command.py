"""The command that measures configurations under more and more connections."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import tuner
from tuner.cli import names
from tuner.cli.agreement import agree_to_run
from tuner.cli.arguments import (
    Agreed,
    AsCsv,
    AsJson,
    AsMarkdown,
    ResultPath,
    StudyPath,
    choose_form,
    is_file_name,
    minutes_option,
    read_study,
    refuse_below,
)
from tuner.cli.printing import measuring, show_result
from tuner.cli.study_commands import Length, settle_length
from tuner.cli.sweep_command import split_values
from tuner.errors import UsageError
from tuner.ports import Scalar


def curve(  # noqa: PLR0913, PLR0917 - the command's options
    study: StudyPath,
    configurations: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONFIGURATION]...",
            help="Configurations to measure: default, winner, a preset or a file of values (default: default "
            "and winner).",
            autocompletion=names.configurations,
        ),
    ] = None,
    connections: Annotated[
        str, typer.Option(help="Numbers of connections to measure.")
    ] = "100,300,1000,3000,10000",
    minutes: Annotated[
        float | None, minutes_option("Time limit (default: enough to measure everything four times)")
    ] = None,
    preset: Length = None,
    output: ResultPath = None,
    as_json: AsJson = False,
    as_markdown: AsMarkdown = False,
    as_csv: AsCsv = False,
    yes: Agreed = False,
) -> None:
    """Measure goodput, failures and p99 over connections: the capacity of each configuration.

    Example: `tuner curve nginx.yaml --connections 100,1000,10000`
    """
    refuse_below("--minutes", minutes, 0.1)
    form = choose_form(as_json=as_json, as_markdown=as_markdown, as_csv=as_csv)
    counts = read_counts(connections)
    named = None if not configurations else name_configurations(configurations)
    settings = read_study(study)
    agree_to_run(settings, study, yes=yes)
    length = settle_length(settings, preset)
    with measuring(resumes=True) as progress:
        found = tuner.curve(
            settings, named, connections=counts, minutes=minutes,
            preset=length, progress=progress,
        )  # fmt: skip
    from tuner.report.curve import curve_json
    from tuner.report.curve.page import render_curve
    from tuner.report.curve.rows import curve_csv, curve_markdown, curve_screen
    from tuner.report.forms import Forms

    forms = Forms(
        screen=partial(curve_screen, found), as_json=partial(curve_json, found),
        markdown=partial(curve_markdown, found), csv=partial(curve_csv, found),
        page=partial(render_curve, found),
    )  # fmt: skip
    show_result(forms, form, output)


def read_counts(text: str) -> list[int]:
    """Read numbers of connections between commas. Raises UsageError for what is none."""
    values = split_values(text, "--connections", "100,1000,10000")
    wrong = next((each for each in values if not (each.isascii() and each.isdecimal())), None)
    if wrong is not None:
        raise UsageError(f"--connections: {wrong[:20]!r} is no number. Write values as in 100,1000,10000.")
    return [int(each[:9]) for each in values]


def name_configurations(given: list[str]) -> dict[str, dict[str, Scalar] | str]:
    """Return each configuration by the name under which it is shown; files are read at once.

    Raises:
        UsageError: one is given twice, or a file holds no values.
    """
    from tuner.study import load_values

    named: dict[str, dict[str, Scalar] | str] = {}
    for each in given:
        is_file = is_file_name(each)
        name = Path(each).stem if is_file else each
        if name in named:
            raise UsageError(f"curve: {name!r} is given twice. Give each configuration once.")
        named[name] = dict(load_values(Path(each))) if is_file else each
    return named
