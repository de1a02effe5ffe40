"""Writes what a study gives into its folder: the report and the exports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tuner.errors import TargetError
from tuner.export import FORMATS, Rendered, export, find_format, paths_to_read, render_both
from tuner.ports import Files, Host
from tuner.rig import prepare
from tuner.session import Reading
from tuner.settings import Study

REPORT = "report.html"
EXPORTS = "exports"


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Where a study's report and exports are."""

    report: str | None
    exports: tuple[str, ...]


def write_results(reading: Reading) -> Results:
    """Write the report, and every export that the study's servers have when there is a winner."""
    report = write_report(reading, None)
    if reading.summary.winner is None or reading.summary.is_held_back:
        return Results(report=str(report), exports=())
    written: list[str] = []
    rig = reading.rig or prepare(reading.settings)
    for form, chosen in FORMATS.items():
        if chosen.server is None or chosen.server in rig.servers:
            written += map(str, write_export(replace(reading, rig=rig), form, None))
    return Results(report=str(report), exports=tuple(written))


def find_results(settings: Study) -> Results:
    """Find what an earlier run wrote."""
    report, exports = settings.folder / REPORT, settings.folder / EXPORTS
    return Results(
        report=str(report) if report.is_file() else None,
        exports=tuple(map(str, sorted(exports.iterdir()))) if exports.is_dir() else (),
    )


def write_report(reading: Reading, output: Path | None) -> Path:
    """Write the report; beside the study by default."""
    from tuner.report import render_report

    path = output or reading.settings.folder / REPORT
    # A name that is not UTF-8 comes from Python with signs that cannot be encoded.
    _write(path, render_report(reading.summary).encode(errors="replace"))
    return path


def write_export(reading: Reading, form: str, output: Path | None) -> Sequence[Path]:
    """Write one export format.

    Raises:
        UsageError: an unknown format, a server that is not tuned, or nothing confirmed yet.
        TargetError: the folder cannot be written.
    """
    find_format(form)
    rendered: dict[str, Rendered] = {}
    installed: Files = {}
    winner = reading.summary.winner
    if winner is not None:
        rig = reading.rig or prepare(reading.settings)
        rendered = {
            name: render_both(server, rig.space, winner.config, rig.facts[name])
            for name, server in rig.servers.items()
        }
        installed = _read_installed(rig.host, form, rendered)
    folder = output or reading.settings.folder / EXPORTS
    files = export(reading.summary, form, rendered=rendered, installed=installed)
    for name, content in files.items():
        _write(folder / name, content)
    return [folder / name for name in files]


def _read_installed(host: Host, form: str, rendered: Mapping[str, Rendered]) -> Files:
    contents = {path: host.read(path).content for path in paths_to_read(form, rendered)}
    return {path: content for path, content in contents.items() if content is not None}


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        msg = (
            f"{path}: cannot be written ({error.strerror}). Check the folder, its permissions and free space."
        )
        raise TargetError(msg) from error
