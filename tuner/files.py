"""Writes what a study gives into its folder: the report and the exports."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tuner.errors import TargetError, UsageError
from tuner.export import FORMATS, export_summary
from tuner.settings import Study
from tuner.summary import Summary

REPORT = "report.html"
EXPORTS = "exports"


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Where a study's report and exports are."""

    report: str | None
    exports: tuple[str, ...]


def write_results(settings: Study, summary: Summary) -> Results:
    """Write the report, and every export that the study's servers have when there is a winner."""
    report = write_report(settings, summary, None)
    if summary.winner is None:
        return Results(report=str(report), exports=())
    for form in sorted({*settings.servers, "json"} & set(FORMATS)):
        write_export(settings, summary, form, None)
    return Results(report=str(report), exports=(str(settings.folder / EXPORTS),))


def find_results(settings: Study) -> Results:
    """Find what an earlier run wrote."""
    report, exports = settings.folder / REPORT, settings.folder / EXPORTS
    return Results(
        report=str(report) if report.is_file() else None, exports=(str(exports),) if exports.is_dir() else ()
    )


def write_report(settings: Study, summary: Summary, output: Path | None) -> Path:
    """Write the report; beside the study by default."""
    from tuner.report import render_report

    path = output or settings.folder / REPORT
    _write(path, render_report(summary))
    return path


def write_export(
    settings: Study, summary: Summary, form: str, output: Path | None
) -> Sequence[Path]:
    """Write one export format. Raises UsageError for an unknown one, or when nothing is confirmed yet."""
    if form not in FORMATS:
        msg = f"--format: there is no {form!r}. Use one of: {', '.join(sorted(FORMATS))}."
        raise UsageError(msg)
    if summary.winner is None:
        msg = (
            f"{settings.path}: there is no confirmed winner to export. Run `tuner run {settings.path}` to "
            "its end; when nothing beat the default, the default is the answer."
        )
        raise UsageError(msg)
    folder = output or settings.folder / EXPORTS
    files = export_summary(summary, form)
    for name, content in files.items():
        _write(folder / name, content)
    return [folder / name for name in files]


def _write(path: Path, content: bytes | str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        msg = f"{path}: cannot be written ({error.strerror}). Check the folder, its permissions and free space."
        raise TargetError(msg) from error
