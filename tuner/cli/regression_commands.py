"""The commands that ask later: is a winner still active and worth it, is what is new no slower."""

import os
import re
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tuner
from tuner.cli.agreement import agree_to_run
from tuner.cli.arguments import Agreed, AsJson, StudyPath, is_file_name, read_side, read_study, refuse_below
from tuner.cli.exit_codes import CANNOT_TELL, NOTHING_BETTER
from tuner.cli.printing import make_console, measuring, print_json
from tuner.cli.study_commands import Preset
from tuner.errors import UsageError

if TYPE_CHECKING:
    from tuner.ports import Config
    from tuner.report.regression import NonInferiority
    from tuner.study import Study

LEAST_PAIRS = 2
DEFAULT = "default"
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
CODES = {"active": 0, "holds": 0, "no slower": 0, "cannot tell": CANNOT_TELL}
"""Verdict → exit code; all others are bad news."""


class Unclear(StrEnum):
    """How a gate ends that cannot tell."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    OWN = "own"


def verify(  # noqa: PLR0913, PLR0917 - the command's options
    study: StudyPath,
    host: Annotated[
        str | None,
        typer.Option(help="Host of the apply: local or ssh://user@host (default: the study's target)."),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Re-measure the gain; this restarts installed services.")
    ] = False,
    pairs: Annotated[int | None, typer.Option(help="With --measure: maximum number of pairs.")] = None,
    preset: Annotated[
        Preset | None, typer.Option(help="With --measure: measurement length per trial.")
    ] = None,
    url: Annotated[str | None, typer.Option(help="With --host: URL to request there.")] = None,
    as_json: AsJson = False,
    yes: Agreed = False,
) -> None:
    """Check whether the winner is still active, what has changed since, and whether its gain holds.

    Example: `tuner verify nginx.yaml --host ssh://root@web1`
    """
    refuse_below("--pairs", pairs, LEAST_PAIRS)
    if not measure and (pairs is not None or preset is not None):
        raise UsageError(
            "--pairs, --preset: without --measure, tuner measures nothing. Add --measure, or leave these "
            "options out."
        )
    settings = read_study(study)
    if url is not None and host is None and not settings.target.is_managed:
        raise UsageError(
            f"--url: {url} needs an installed server. Name its host with --host, or leave --url out."
        )
    from tuner.commands.apply import settings_for
    from tuner.commands.regression.verify import Remeasuring
    from tuner.commands.regression.verify import verify as find
    from tuner.report.regression.forms import verification_json
    from tuner.report.regression.screen import verification_screen

    if measure and (host is not None or settings.target.is_managed):
        agree_to_run(settings_for(settings, host, url, settings.target.watchdog_s), study, yes=yes)
    effort = Remeasuring(pairs=pairs, preset=preset.value if preset else None) if measure else None
    reading = tuner.read(settings, with_explanation=False)
    with measuring() as progress:
        found = find(reading, host=host, url=url, measure=effort, progress=progress)
    if as_json:
        print_json(verification_json(found))
    else:
        make_console().print(verification_screen(found))
    sys.exit(CODES.get(found.verdict, NOTHING_BETTER))


def gate(  # noqa: PLR0913, PLR0917 - the command's options
    study: StudyPath,
    baseline: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Old side: default, winner, a preset, a file of values, tuner.json or another study file.",
        ),
    ],
    new: Annotated[
        str, typer.Option(metavar="CONFIG", help="New side: default, winner, a preset, or a file of values.")
    ] = DEFAULT,
    margin: Annotated[str, typer.Option(help="Largest slowdown that passes, 0% to 50%.")] = "3%",
    pairs: Annotated[int | None, typer.Option(help="Maximum number of pairs.")] = None,
    preset: Annotated[Preset | None, typer.Option(help="Measurement length per trial.")] = None,
    unclear: Annotated[
        Unclear, typer.Option(help="Exit code if the result is undecided; own means code 6.")
    ] = Unclear.OWN,
    summary: Annotated[Path | None, typer.Option(help="Additional Markdown file for the result.")] = None,
    step_summary: Annotated[
        bool, typer.Option("--step-summary", help=f"Append the Markdown to ${STEP_SUMMARY}.")
    ] = False,
    as_json: AsJson = False,
    yes: Agreed = False,
) -> None:
    """Test in CI whether a new build or configuration is no slower than a baseline.

    Example: `tuner gate nginx.yaml --baseline default --new new.yaml`
    """
    refuse_below("--pairs", pairs, LEAST_PAIRS)
    share = read_margin(margin)
    appended = find_step_summary() if step_summary else None
    settings = read_study(study)
    old, other = read_baseline(baseline), read_side(new)
    agree_to_run(settings, study, yes=yes)
    from tuner.commands.regression.gate import gate as measure
    from tuner.report.regression.forms import non_inferiority_json
    from tuner.report.regression.screen import non_inferiority_screen
    from tuner.study import Study

    with measuring() as progress:
        found = measure(
            settings, old, new=other, margin=share, pairs=pairs,
            preset=preset.value if preset else None, progress=progress,
        )  # fmt: skip
    is_of_two = isinstance(old, Study)
    found = name_sides(found, baseline, str(study) if is_of_two and new == DEFAULT else new)
    if as_json:
        print_json(non_inferiority_json(found))
    else:
        make_console().print(non_inferiority_screen(found))
    write_summaries(found, summary, appended)
    sys.exit(gate_code(found, unclear))


def name_sides(found: "NonInferiority", baseline: str, new: str) -> "NonInferiority":
    """Return it with the sides called as they were typed."""
    from tuner.report.regression import BASELINE, NEW

    return replace(found, sides={BASELINE: baseline, NEW: new})


def gate_code(found: "NonInferiority", unclear: Unclear) -> int:
    """Return the exit code of a gate."""
    if found.finding == "cannot tell" and unclear is not Unclear.OWN:
        return 0 if unclear is Unclear.PASS else NOTHING_BETTER
    return CODES.get(found.finding, NOTHING_BETTER)


def write_summaries(found: "NonInferiority", summary: Path | None, appended: Path | None) -> None:
    """Write the Markdown where it is asked for. Raises TargetError when it cannot be written."""
    from tuner.commands.outputs import append_text, write_text
    from tuner.report.regression.forms import non_inferiority_markdown

    text = non_inferiority_markdown(found)
    if summary is not None:
        write_text(text, summary)
    if appended is not None:
        append_text(text, appended)


def read_margin(text: str) -> float:
    """Read 3%, 3 % or 0.03 as a share. Raises UsageError for anything else, and beyond 0 to 50 %."""
    form = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip(), re.ASCII)
    share = float(form[1]) / (100 if form[2] else 1) if form else -1.0
    if not 0 <= share <= 0.5:  # noqa: PLR2004 - half as fast is no margin any more
        raise UsageError(f"--margin: {text!r} is no share from 0 to 50 %. Write a share such as 3% or 0.03.")
    return share


def find_step_summary() -> Path:
    """Return the file that GitHub shows on the page of a run. Raises UsageError where there is none."""
    path = os.environ.get(STEP_SUMMARY, "")
    if not path:
        raise UsageError(
            f"--step-summary: {STEP_SUMMARY} is not set, so this command does not run in GitHub Actions. Use "
            "--summary FILE."
        )
    return Path(path)


def read_baseline(name: str) -> "Study | Config | str":
    """Read what the new side is compared with: another study, values, or a name."""
    from tuner.study import is_study

    if is_file_name(name) and is_study(Path(name)):
        return read_study(Path(name))
    return read_side(name)
