"""Arguments that several commands share."""

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tuner.errors import UsageError

if TYPE_CHECKING:
    from tuner.ports import Config
    from tuner.study import Study

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="Path of the study file.")]
Agreed = Annotated[bool, typer.Option("--yes", help="Change installed services without asking.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
AsMarkdown = Annotated[
    bool, typer.Option("--markdown", help="Print the result as Markdown, for a pull request.")
]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print the result as CSV, one line per row of its table.")]
ResultPath = Annotated[
    Path | None, typer.Option("-o", "--output", help="Additional file for the result: .html, .md or .csv.")
]
TIME = re.compile(r"\s*(?P<number>\d+(\.\d+)?)\s*(?P<unit>[smh]?)\s*", re.ASCII)
UNITS = {"s": 1, "m": 60, "h": 3600}
"""In seconds."""
LEAST_CONFIRM_S, MOST_CONFIRM_S = 10, 24 * 3600


class Form(StrEnum):
    """In which form a result is printed."""

    SCREEN = "screen"
    JSON = "json"
    MARKDOWN = "markdown"
    CSV = "csv"


def choose_form(*, as_json: bool, as_markdown: bool, as_csv: bool) -> Form:
    """Return the one form that was asked for. Raises UsageError when several were."""
    asked = {Form.JSON: as_json, Form.MARKDOWN: as_markdown, Form.CSV: as_csv}
    chosen = [form for form, is_asked in asked.items() if is_asked] or [Form.SCREEN]
    if len(chosen) > 1:
        told = ", ".join(f"--{form}" for form in chosen)
        raise UsageError(f"{told}: these options exclude each other. Choose one.")
    return chosen[0]


def read_study(study: Path) -> "Study":
    """Read the study file before all else is imported, which takes a second, so that errors come at once."""
    from tuner.study import load_study

    return load_study(study)


def read_side(name: str) -> "Config | str":
    """Return a name, or the values where it is that of a file: YAML, or an export as json."""
    from tuner.study import load_values

    return load_values(Path(name)) if is_file_name(name) else name


def is_file_name(name: str) -> bool:
    """Return whether the name of a configuration is that of a file."""
    return "/" in name or name.endswith((".yaml", ".yml", ".json"))


def refuse_below(option: str, value: float | None, least: float) -> None:
    """Raise UsageError for a number that is too small, and for NaN."""
    if value is not None and not value >= least:
        from tuner.space.values import format_number

        raise UsageError(
            f"{option}: {format_number(value)} is too small. Give at least {format_number(least)}."
        )


def refuse_outside(option: str, value: float | None, least: float, most: float) -> None:
    """Raise UsageError for a number that is too small or too large, and for NaN."""
    if value is not None and not least <= value <= most:
        from tuner.space.values import format_number

        told = format_number(value)
        raise UsageError(
            f"{option}: {told} is out of range. Give {format_number(least)} to {format_number(most)}."
        )


def minutes_option(title: str) -> Any:  # noqa: ANN401 - as typer's own
    """Return the option --minutes: a number of minutes, or a time with its unit."""
    return typer.Option(
        "--minutes", parser=read_minutes, metavar="TIME", help=f"{title}, such as 3 (minutes), 90s, 3m or 1h."
    )


def read_minutes(text: str) -> float:
    """Read 3, 90s, 3m or 1h as minutes. Raises UsageError for anything else."""
    found = TIME.fullmatch(text)
    if found is None:
        raise UsageError(f"--minutes: {text!r} is not a duration. Write 3 (minutes), 90s, 3m or 1h.")
    return float(found["number"]) * UNITS[found["unit"] or "m"] / 60


def read_duration(option: str, text: str) -> float:
    """Read 90s, 10m or 2h as seconds. Raises UsageError for anything else."""
    found = TIME.fullmatch(text)
    seconds = float(found["number"]) * UNITS[found["unit"]] if found and found["unit"] else 0.0
    if not LEAST_CONFIRM_S <= seconds <= MOST_CONFIRM_S:
        raise UsageError(f"{option}: {text!r} is not a duration from 10s to 24h. Write 90s, 10m or 2h.")
    return seconds
