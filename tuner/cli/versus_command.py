"""The command that races servers against each other."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tuner
from tuner.cli.arguments import AsJson, read_study, refuse_below
from tuner.cli.exit_codes import INTERRUPTED
from tuner.cli.printing import make_console, print_json, print_text, say, what_was_typed
from tuner.cli.study_commands import Preset

if TYPE_CHECKING:
    from tuner.report.contest import Contest


def versus(
    studies: Annotated[list[Path], typer.Argument(metavar="STUDY…", help="Files of private instances.")],
    presets: Annotated[
        bool, typer.Option("--presets", help="Race the presets that the files themselves name; tune nothing.")
    ] = False,
    preset: Annotated[Preset | None, typer.Option(help="How thorough; of all of them.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Wall time of each study that is not tuned yet.")
    ] = None,
    blocks: Annotated[int | None, typer.Option(help="Starts of each configuration in the race.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Page to write, too: HTML, or Markdown as .md.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tune several servers with the same budget, then race all defaults and winners; go on with it."""
    refuse_below("--minutes", minutes, 0.1)
    refuse_below("--blocks", blocks, 3)
    settings = [read_study(study) for study in studies]
    from tuner.commands.outputs import write_results
    from tuner.report.progress import open_progress

    try:
        with open_progress(make_console(stderr=True)) as progress:
            found = tuner.versus(
                settings, with_presets=presets, preset=preset.value if preset else None, minutes=minutes,
                blocks=blocks, progress=progress, when_tuned=write_results,
            )  # fmt: skip
    except KeyboardInterrupt:
        say(f"Stopped; everything is as it was before. Go on with: {what_was_typed()}")
        sys.exit(INTERRUPTED)
    print_contest(found, output, as_json=as_json)


def print_contest(found: "Contest", output: Path | None, *, as_json: bool) -> None:
    """Print a contest, and write its page where one is asked for."""
    from tuner.commands.outputs import write_contest
    from tuner.report.contest.screen import contest_screen
    from tuner.report.contest.tables import contest_json

    if as_json:
        print_json(contest_json(found))
    else:
        make_console().print(contest_screen(found))
    if output is not None:
        write_contest(found, output)
        if not as_json:
            print_text(str(output))
