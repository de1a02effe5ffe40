"""The command that measures the response curve of one parameter."""

from enum import StrEnum
from functools import partial
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
    minutes_option,
    read_study,
    refuse_outside,
)
from tuner.cli.printing import measuring, show_result
from tuner.cli.study_commands import Length, settle_length
from tuner.errors import UsageError


class Base(StrEnum):
    """What the other settings are those of."""

    DEFAULT = "default"
    WINNER = "winner"


def sweep(  # noqa: PLR0913, PLR0917 - the command's options
    study: StudyPath,
    parameter: Annotated[
        str,
        typer.Argument(metavar="PARAMETER", help="Parameter to vary.", autocompletion=names.parameters),
    ],
    values: Annotated[
        str | None,
        typer.Option("--values", help="Values to measure, such as 8,16,32 or off,on (default: a grid)."),
    ] = None,
    around: Annotated[
        Base | None, typer.Option(help="Configuration around whose value a finer grid is measured.")
    ] = None,
    at: Annotated[
        Base, typer.Option(help="Configuration from which all other settings are taken.")
    ] = Base.DEFAULT,
    minutes: Annotated[float | None, minutes_option("Time limit (4 minutes with preset quick)")] = None,
    preset: Length = None,
    output: ResultPath = None,
    as_json: AsJson = False,
    as_markdown: AsMarkdown = False,
    as_csv: AsCsv = False,
    yes: Agreed = False,
) -> None:
    """Measure one parameter: best value, range that keeps the gain, curve; run it again to resume.

    Example: `tuner sweep nginx.yaml worker_processes`
    """
    if values is not None and around is not None:
        raise UsageError("--values, --around: these options exclude each other. Leave one of them out.")
    form = choose_form(as_json=as_json, as_markdown=as_markdown, as_csv=as_csv)
    settings = read_study(study)
    from tuner.study.presets import MOST_MINUTES

    refuse_outside("--minutes", minutes, 0.1, MOST_MINUTES)
    agree_to_run(settings, study, yes=yes)
    length = settle_length(settings, preset)
    with measuring(resumes=True) as progress:
        found = tuner.sweep(
            settings, parameter, values=None if values is None else split_values(values),
            around=around.value if around else None, at=at.value, minutes=minutes,
            preset=length, progress=progress,
        )  # fmt: skip
    from tuner.report.forms import Forms
    from tuner.report.sweep import sweep_json
    from tuner.report.sweep.page import render_sweep
    from tuner.report.sweep.rows import sweep_csv, sweep_markdown, sweep_screen

    forms = Forms(
        screen=partial(sweep_screen, found), as_json=partial(sweep_json, found),
        markdown=partial(sweep_markdown, found), csv=partial(sweep_csv, found),
        page=partial(render_sweep, found),
    )  # fmt: skip
    show_result(forms, form, output)


def split_values(text: str, option: str = "--values", example: str = "8,16,32") -> list[str]:
    """Read values between commas, each as the space reads it. Raises UsageError for an empty one."""
    values = [each.strip() for each in text.split(",")]
    if not all(values):
        raise UsageError(f"{option}: {text!r} has an empty value. Write values as in {example}.")
    return values
