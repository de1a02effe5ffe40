"""The page of a study: made, written, and kept, so that one that nothing has changed for is not made again.

Nothing heavy is imported here before a page has to be made.
"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.study import Study
from tuner.study.cache import keep, look_up
from tuner.study.digest import make_study_key
from tuner.study.folder import read_file, require_own, write_file, write_named

if TYPE_CHECKING:
    from tuner.commands.session import Reading
    from tuner.ports import Config
    from tuner.statistics.confirmation.paired_gain import Gain

REPORT = "report.html"
EXPORTS = "exports"
CANDIDATE = "candidate"
"""Folder below the exports of what was found and is not shipped."""
NAME = "page.html"
"""In the cache: the report itself may be anywhere, and is its reader's."""


def find_page(settings: Study) -> bytes | None:
    """Return the page of a finished study as it would be made anew; None where it has to be.

    Raises:
        UsageError: the study's folder is another user's.
    """
    require_own(settings.folder)
    key = make_study_key(settings)
    return None if key is None else look_up(settings.folder, NAME, key)


def make_page(reading: "Reading") -> bytes:
    """Make the page of a study with its sweeps and load curves."""
    from tuner.report.curve import read_curves
    from tuner.report.page import render_report
    from tuner.report.sweep import read_sweeps

    sweeps = read_sweeps(reading.settings, reading.summary.space)
    curves = read_curves(reading.settings)
    page = render_report(reading.summary, sweeps, curves, list_commands(reading), _write_change(reading))
    # A name that is not UTF-8 comes from Python with signs that cannot be encoded.
    return page.encode(errors="replace")


def _write_change(reading: "Reading") -> str:
    """Return what the winner or candidate changes in the servers' own files; empty if nothing is kept."""
    from tuner.commands.kept_files import recall_differences
    from tuner.export import write_change
    from tuner.report.summary import as_candidate

    summary = reading.summary if reading.summary.found is None else as_candidate(reading.summary)
    if summary.winner is None or summary.is_held_back:
        return ""
    return write_change(summary, recall_differences(reading, summary.winner.config) or {})


def list_commands(reading: "Reading") -> list[tuple[str, str]]:
    """Return what applies the winner and undoes it, or measures a candidate again: title and command."""
    summary, study = reading.summary, shlex.quote(str(reading.settings.path))
    if summary.winner is None:
        return _list_commands_of_found(reading) if summary.found is not None else []
    if summary.side == "candidate":
        return [_measure_again(study, summary.gain)]
    if summary.is_held_back:
        return []
    if reading.settings.target.is_managed:
        return [
            ("Apply it; it rolls back unless confirmed in time", f"tuner apply {study}"),
            ("Undo it", f"tuner apply {study} --undo"),
        ]
    if _changes_nothing_installed(reading, summary.winner.config):
        return [_show_how("Show how to apply and undo each file", reading.settings.folder / EXPORTS)]
    has_rest = _leaves_something_to_the_hand(reading, summary.winner.config)
    return [
        ("Write it as files", f"tuner export {study} --format shell -o out"),
        (
            f"Apply them on the server's host{', then change the rest by hand' * has_rest}",
            "sh out/tuner-shell/apply.sh",
        ),
        (f"Undo them{', then change the rest back by hand' * has_rest}", "sh out/tuner-shell/undo.sh"),
    ]


def _measure_again(study: str, gain: "Gain | None" = None) -> tuple[str, str]:
    """Return what measures a candidate in fresh pairs, in as many as should decide if that is known."""
    from tuner.statistics.confirmation.paired_gain import pairs_to_decide

    needed = None if gain is None else pairs_to_decide(gain)
    pairs = "" if needed is None else f" --pairs {needed}"
    return ("Measure the candidate again", f"tuner compare {study} default candidate{pairs}")


def _list_commands_of_found(reading: "Reading") -> list[tuple[str, str]]:
    """Return what measures the candidate again, and where its files are if it has any."""
    from tuner.report.summary import as_candidate

    again = _measure_again(shlex.quote(str(reading.settings.path)))
    if as_candidate(reading.summary).is_held_back:
        return [again]
    title = "To use it all the same, show how to apply and undo it"
    return [again, _show_how(title, reading.settings.folder / EXPORTS / CANDIDATE)]


def _show_how(title: str, folder: Path) -> tuple[str, str]:
    """Return what shows the commands that stand in the heads of exported files."""
    return (title, f"grep -sE 'apply:|undo:' {shlex.quote(str(folder))}/*")


def _changes_nothing_installed(reading: "Reading", winner: "Config") -> bool:
    """Return whether the winner is known to change no file that is installed: scripts could apply nothing."""
    from tuner.commands.kept_files import recall_differences
    from tuner.export import installed_of

    kept = recall_differences(reading, winner)
    return kept is not None and all(installed_of(each) is None for each in kept.values())


def _leaves_something_to_the_hand(reading: "Reading", winner: "Config") -> bool:
    """Return whether the winner is known to have settings that scripts cannot change in installed files."""
    from tuner.commands.kept_files import recall_differences
    from tuner.export import installed_of

    installed = map(installed_of, (recall_differences(reading, winner) or {}).values())
    return any(each is not None and each.by_hand for each in installed)


def keep_page(reading: "Reading", page: bytes) -> None:
    """Keep the page of a study that is finished: others change from one trial to the next.

    Of one whose file was edited none is kept: who asks for it is told so each time.
    """
    is_final = reading.summary.state == "finished" and not reading.changed
    key = make_study_key(reading.settings) if is_final else None
    if key is not None:
        keep(reading.settings.folder, NAME, key, page)


def write_page(settings: Study, page: bytes, output: Path | None, *, single_file: bool = False) -> Path:
    """Write a page; beside the study by default.

    Args:
        settings: the study.
        page: as it is kept, without the script that draws its figures.
        output: where to. A page that is not beside the study brings its script.
        single_file: whether the page beside the study brings it, too.

    Raises:
        UsageError: the report beside the study is a link or another user's.
        TargetError: it cannot be written.
    """
    from tuner.report.markup import SCRIPT, embed_script, read_script

    if output is not None or single_file:
        page = embed_script(page.decode()).encode()
    if output is not None:
        write_named(output, page)
        return output
    write_file(settings.folder / REPORT, page, study_folder=settings.folder)
    script = settings.folder / SCRIPT
    if not single_file and not _holds(script, content := read_script().encode(), settings.folder):
        write_file(script, content, study_folder=settings.folder)
    return settings.folder / REPORT


def _holds(path: Path, content: bytes, study_folder: Path) -> bool:
    """Return whether a file of a study's folder is what it should be: a folder may come from a stranger."""
    try:
        return read_file(path, study_folder=study_folder) == content
    except OSError:
        return False
