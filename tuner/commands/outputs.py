"""Writes the report and the exports of a study into its folder."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tuner.campaign.prepare import prepare
from tuner.commands.differences import Differences, describe_moved, find_differences
from tuner.commands.kept_files import (
    list_private,
    recall_differences,
    recall_stored,
    remember_differences,
)
from tuner.commands.page import CANDIDATE, EXPORTS, REPORT, keep_page, make_page, write_page
from tuner.commands.session import Reading
from tuner.errors import TargetError
from tuner.export import (
    JSON,
    Rendered,
    export,
    formats_of,
    installed_of,
    refuse_unknown_format,
)
from tuner.export.formats import FORMATS
from tuner.export.lowered import describe_lowered
from tuner.ports import Config
from tuner.report.summary import as_candidate
from tuner.report.wording import say_unproven
from tuner.study import Study
from tuner.study.folder import list_files, translated, write_file, write_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Where a study's report and exports are."""

    report: str | None
    exports: tuple[str, ...]
    lowered: tuple[str, ...] = ()
    """A sentence for each setting that an export would lower on this host."""


def write_results(reading: Reading) -> Results:
    """Write the report, and every export that the study's servers have when there is a winner.

    What was found and is not shipped has exports, too, in a folder of its own and marked as what it is.
    """
    summary = reading.summary if reading.summary.found is None else as_candidate(reading.summary)
    exported = replace(reading, summary=summary)
    differences: Differences | None = None
    try:
        if summary.winner is not None and not summary.is_held_back:
            setup = reading.setup or prepare(reading.settings)
            differences = find_differences(exported, setup, summary.winner.config)
            remember_differences(exported, differences)
    finally:
        # Without the target there is a report, too.
        page = make_page(reading)
        results = Results(report=str(write_page(reading.settings, page, None)), exports=())
    if differences is not None:
        written = [
            str(path) for form in formats_of(differences)
            for path in _write_format(exported, form, differences, None)
        ]  # fmt: skip
        lowered = _describe_lowered(reading, differences)
        results = replace(results, exports=tuple(written), lowered=lowered)
    # Last: what the storage has of the exports is part of the study that the page is of.
    keep_page(reading, page)
    return results


def _describe_lowered(reading: Reading, differences: Differences) -> tuple[str, ...]:
    lowered = (found.lowered for found in differences.values())
    return tuple(line for each in lowered for line in describe_lowered(reading.space, each))


def _describe_doubts(differences: Differences) -> tuple[str, ...]:
    """Return why the gain may be another on this host, and what the export cannot write: a sentence each."""
    lines: list[str] = []
    for each in differences.values():
        installed = installed_of(each)
        if installed is not None:
            lines += [*installed.doubts, *installed.by_hand.values()]
        elif isinstance(each, Rendered) and each.reason:
            lines.append(each.reason)
    return tuple(dict.fromkeys(lines))


def find_results(settings: Study) -> Results:
    """Find what an earlier run wrote. Raises UsageError when the exports are a link or another user's."""
    folder = settings.folder
    report, candidate = folder / REPORT, folder / EXPORTS / CANDIDATE
    exports, of_candidate = (list_files(each, study_folder=folder) for each in (folder / EXPORTS, candidate))
    return Results(
        report=str(report) if report.is_file() and not report.is_symlink() else None,
        exports=tuple(map(str, (*(each for each in exports if each != candidate), *of_candidate))),
    )


def write_text(text: str, output: Path) -> None:
    """Write a text. Raises TargetError when it cannot be written."""
    write_named(output, text.encode(errors="replace"))


def append_text(text: str, output: Path) -> None:
    """Add a text to the end of a file. Raises TargetError when it cannot be written."""
    with translated(output, "written"), output.open("a", encoding="utf-8", errors="replace") as file:
        file.write(text)


def write_export(
    reading: Reading, form: str, output: Path | None, *, warn: Callable[[str], None] = lambda _: None
) -> Sequence[Path]:
    """Write one export format.

    Args:
        reading: the study.
        form: a server of the study, json, or one of FORMATS.
        output: where to; the study's own folder by default.
        warn: told what this would lower on this host, in what the host is not the one that was measured, when
            it could not be asked, and of a gain that is not proven.

    Raises:
        UsageError: an unknown format, a server that is not tuned, nothing confirmed yet, or a file in the
            study's folder is a link or another user's.
        TargetError: the folder cannot be written, or the target cannot be asked and was not
            kept.
    """
    refuse_unknown_format(form)
    winner = reading.summary.winner
    differences: Differences = {}
    if winner is not None and form != JSON:
        differences = _find_or_recall(reading, winner.config, warn)
    exported = {name: each for name, each in differences.items() if form in {name, *FORMATS}}
    for line in (*_describe_lowered(reading, exported), *_describe_doubts(exported)):
        warn(line)
    written = _write_format(reading, form, differences, output)
    if not written:
        warn(f"{reading.summary.study}: the winner changes nothing of {form}, so no file is written.")
    if doubt := say_unproven(reading.summary.gain):
        warn(doubt)
    return written


def _find_or_recall(reading: Reading, winner: Config, warn: Callable[[str], None]) -> Differences:
    """Return what the winner makes of the files of the target, or did when the study ended.

    Raises:
        TargetError: the target cannot be asked, and the storage holds nothing of this choice that this user
            wrote.
    """
    try:
        setup = reading.setup or prepare(reading.settings)
        found = find_differences(reading, setup, winner)
    except TargetError as error:
        if recall_stored(reading, winner) is None:
            raise
        known = recall_differences(reading, winner)
        if known is None:
            raise TargetError(
                f"{error} The study has stored files and commands for that target. Another tuner wrote them, "
                "so your tuner does not use them. Export on the machine where the study ran."
            ) from error
        warn(
            f"tuner cannot reach the target now ({error}). The files describe the target at the end of the "
            "study"
        )
        return known
    for line in (*describe_moved(reading, setup), *_list_changed(reading, found, winner)):
        warn(line)
    return found


def _list_changed(reading: Reading, found: Differences, winner: Config) -> Iterator[str]:
    """Yield the files of the target that are neither as the study left them nor as the winner makes them."""
    known = recall_differences(reading, winner) or {}
    for name in found.keys() & known.keys():
        now, then = installed_of(found[name]), installed_of(known[name])
        if now is None or then is None:
            continue
        for path in sorted(now.before.keys() & then.before.keys()):
            if now.before[path] not in {then.before[path], then.after.get(path)}:
                yield (
                    f"{path}: this file changed after the end of the study. The gain was measured with the "
                    "earlier content"
                )


def _write_format(
    reading: Reading, form: str, differences: Differences, output: Path | None
) -> Sequence[Path]:
    files, is_private = export(reading.summary, form, rendered=differences), bool(list_private(differences))
    if output is not None:
        for name, content in files.items():
            write_named(output / name, content, is_private=is_private)
        return [output / name for name in files]
    own = reading.settings.folder
    folder = own / EXPORTS / ("" if reading.summary.found is None else CANDIDATE)
    for name, content in files.items():
        write_file(folder / name, content, study_folder=own, is_private=is_private)
    return [folder / name for name in files]
