"""The commands that measure configurations against each other: of one study, or of several servers."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tuner
from tuner.cli import names as known
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
    read_side,
    read_study,
    refuse_below,
)
from tuner.cli.printing import measuring, show_result
from tuner.cli.study_commands import Length, Preset, settle_length
from tuner.errors import UsageError

if TYPE_CHECKING:
    from tuner.report.contest import Contest
    from tuner.report.forms import Forms
    from tuner.report.summary import Comparison

LEAST_PAIRS, LEAST_BLOCKS = 2, 3


def compare(  # noqa: PLR0913, PLR0917 - the command's options
    study: StudyPath,
    first: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="Configuration A: default, winner, a preset, or a file of values.",
            autocompletion=known.configurations,
        ),
    ],
    second: Annotated[
        str,
        typer.Argument(
            metavar="B",
            help="Configuration whose gain over A is measured.",
            autocompletion=known.configurations,
        ),
    ],
    more: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="C",
            help="More configurations, all compared with each other.",
            autocompletion=known.configurations,
        ),
    ] = None,
    pairs: Annotated[int | None, typer.Option(help="Number of trials of each configuration.")] = None,
    preset: Length = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Additional file for the result: .md, .csv; .html with three or more."
        ),
    ] = None,
    as_json: AsJson = False,
    as_markdown: AsMarkdown = False,
    as_csv: AsCsv = False,
    yes: Agreed = False,
) -> None:
    """Compare two configurations in pairs of trials, or more of them in blocks of trials.

    Example: `tuner compare nginx.yaml default winner`
    """
    refuse_below("--pairs", pairs, LEAST_BLOCKS if more else LEAST_PAIRS)
    names = [first, second, *(more or ())]
    if more and len(set(names)) < len(names):
        raise UsageError(
            f"compare: {', '.join(names)}: a configuration is named twice. Name each configuration once."
        )
    if output is not None and not more and output.suffix not in {".md", ".csv"}:
        raise UsageError(
            f"--output: {output}: tuner writes no HTML page for two configurations. Name a .md or .csv file, "
            "or compare three or more configurations."
        )
    form = choose_form(as_json=as_json, as_markdown=as_markdown, as_csv=as_csv)
    settings = read_study(study)
    agree_to_run(settings, study, yes=yes)
    length = settle_length(settings, preset)
    sides = [read_side(name) for name in names]
    with measuring() as progress:
        if more:
            entrants = dict(zip(names, sides, strict=True))
            contest = tuner.compare_several(
                settings, entrants, blocks=pairs, preset=length, progress=progress
            )
        else:
            comparison = tuner.compare(settings, *sides, pairs=pairs, preset=length, progress=progress)
    forms = contest_forms(contest) if more else comparison_forms(comparison, first, second)
    show_result(forms, form, output)


def comparison_forms(found: "Comparison", first: str, second: str) -> "Forms":
    """Return two configurations that were measured in pairs in all their forms."""
    from tuner.report.forms import Forms, comparison_csv, comparison_markdown
    from tuner.report.summary_json import gain_json
    from tuner.report.terminal import comparison_table

    return Forms(
        screen=partial(comparison_table, found, first, second),
        as_json=partial(gain_json, found.gain, found.reason),
        markdown=partial(comparison_markdown, found, first, second),
        csv=partial(comparison_csv, found, first, second),
    )  # fmt: skip


def versus(  # noqa: PLR0913, PLR0917 - the command's options
    studies: Annotated[
        list[Path], typer.Argument(metavar="STUDY…", help="Study files with `mode: sandbox`, one per server.")
    ],
    presets: Annotated[
        bool, typer.Option("--presets", help="Compare the presets in the study files, without tuning.")
    ] = False,
    preset: Annotated[
        Preset | None, typer.Option(help="Preset of all studies: length and number of their trials.")
    ] = None,
    minutes: Annotated[float | None, minutes_option("Time limit of each study that is not tuned yet")] = None,
    blocks: Annotated[int | None, typer.Option(help="Number of trials of each configuration.")] = None,
    output: ResultPath = None,
    as_json: AsJson = False,
    as_markdown: AsMarkdown = False,
    as_csv: AsCsv = False,
) -> None:
    """Tune several servers with the same budget, then compare all of them; run it again to resume.

    Example: `tuner versus nginx.yaml apache.yaml`
    """
    refuse_below("--minutes", minutes, 0.1)
    refuse_below("--blocks", blocks, 3)
    form = choose_form(as_json=as_json, as_markdown=as_markdown, as_csv=as_csv)
    settings = [read_study(study) for study in studies]
    from tuner.commands.outputs import write_results

    with measuring(resumes=True) as progress:
        found = tuner.versus(
            settings, with_presets=presets, preset=preset.value if preset else None, minutes=minutes,
            blocks=blocks, progress=progress, when_tuned=write_results,
        )  # fmt: skip
    show_result(contest_forms(found), form, output)


def contest_forms(found: "Contest") -> "Forms":
    """Return a contest in all its forms."""
    from tuner.report.contest.page import render_contest
    from tuner.report.contest.rows import contest_csv, contest_json, contest_markdown, contest_screen
    from tuner.report.forms import Forms

    return Forms(
        screen=partial(contest_screen, found), as_json=partial(contest_json, found),
        markdown=partial(contest_markdown, found), csv=partial(contest_csv, found),
        page=partial(render_contest, found),
    )  # fmt: skip
