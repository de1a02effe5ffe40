"""The page of a study: made, written, and kept, so that one that nothing has changed for is not made again.

Nothing heavy is imported here before a page has to be made.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.shell_words import quote_word, write_command
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
EXPLANATION = "explain.json"
"""Beside it: what `tuner explain --json` prints."""


def find_page(settings: Study) -> bytes | None:
    """Return the page of a finished study as it would be made anew; None where it has to be.

    Raises:
        UsageError: the study's folder is another user's.
    """
    return _find_kept(settings, NAME)


def find_explanation(settings: Study) -> bytes | None:
    """Return the explanation of a finished study as JSON, kept with its page; None where it has to be made.

    Raises:
        UsageError: the study's folder is another user's.
    """
    return _find_kept(settings, EXPLANATION)


def _find_kept(settings: Study, name: str) -> bytes | None:
    require_own(settings.folder)
    key = make_study_key(settings)
    return None if key is None else look_up(settings.folder, name, key)


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
    """Return what can be done with a result, the next step first: title and command."""
    summary, study = reading.summary, reading.settings.path
    if summary.winner is not None and summary.side == "winner":
        return _list_commands_of_winner(reading, summary.winner.config)
    if summary.state != "finished" or summary.is_too_noisy:
        return _resume(reading)
    if summary.gain is not None:
        return [_look_again(reading, summary.gain)]
    if summary.found is None:
        return [_widen(study)]
    return [("Measure the candidate again", _compare(study)), *_list_candidate_files(reading)]


def _list_commands_of_winner(reading: "Reading", winner: "Config") -> list[tuple[str, str]]:
    """Return what applies the winner and undoes it; of one with less capacity, what tells its settings."""
    study = reading.settings.path
    if reading.summary.is_held_back:
        return [("See the effect of each setting", write_command("tuner", "explain", study))]
    if reading.settings.target.is_managed:
        return [
            ("Apply it; it rolls back unless confirmed in time", write_command("tuner", "apply", study)),
            ("Undo it", write_command("tuner", "apply", study, "--undo")),
        ]
    if _changes_nothing_installed(reading, winner):
        return [_show_how("Show how to apply and undo each file", reading.settings.folder / EXPORTS)]
    has_rest = _leaves_something_to_the_hand(reading, winner)
    return [
        ("Write it as files", write_command("tuner", "export", study, "--format", "shell", "-o", "out")),
        (
            f"Apply them on the server's host{', then change the rest by hand' * has_rest}",
            "sh out/tuner-shell/apply.sh",
        ),
        (f"Undo them{', then change the rest back by hand' * has_rest}", "sh out/tuner-shell/undo.sh"),
    ]


def _resume(reading: "Reading") -> list[tuple[str, str]]:
    """Return what resumes a study that stopped early; nothing while it runs, or if its file was edited."""
    if reading.summary.state == "running" or reading.changed:
        return []
    when = " when the host is quieter" if reading.summary.is_too_noisy else ""
    found = [] if reading.summary.found is None else _list_candidate_files(reading)
    return [(f"Resume the study{when}", write_command("tuner", "run", reading.settings.path)), *found]


def _look_again(reading: "Reading", gain: "Gain") -> tuple[str, str]:
    """Return what can still prove a candidate: fresh pairs, in as many as should do; else a wider search."""
    from tuner.report.wording import LATER
    from tuner.statistics.confirmation.paired_gain import pairs_to_decide

    study, title = reading.settings.path, "Measure the candidate again"
    if gain.low > 1:  # not the pairs speak against it
        return (title, _compare(study))
    needed = pairs_to_decide(gain) if gain.ratio > 1 else None
    if needed is not None:
        return (title, _compare(study, "--pairs", str(needed)))
    if gain.high > 1 and reading.summary.preset == "quick" and gain.verdict == "not proven":
        return (f"{title}, in longer trials", _compare(study, "--preset", LATER))
    return _widen(study)


def _compare(study: Path, *options: str) -> str:
    return write_command("tuner", "compare", study, "default", "candidate", *options)


def _widen(study: Path) -> tuple[str, str]:
    title = "See what was searched, and what was left out"
    return (title, write_command("tuner", "spaces", "--study", study))


def _list_candidate_files(reading: "Reading") -> list[tuple[str, str]]:
    """Return what shows how to use the candidate's files, if it has any."""
    from tuner.report.summary import as_candidate

    if as_candidate(reading.summary).is_held_back:
        return []
    title = "To use it all the same, show how to apply and undo it"
    return [_show_how(title, reading.settings.folder / EXPORTS / CANDIDATE)]


def _show_how(title: str, folder: Path) -> tuple[str, str]:
    """Return what shows the commands that stand in the heads of exported files."""
    return (title, f"grep -sE 'apply:|undo:' {quote_word(folder)}/*")


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
    explanation = reading.summary.explanation
    if key is not None:
        keep(reading.settings.folder, NAME, key, page)
    if key is not None and explanation is not None:
        from tuner.report.explanation.as_json import explanation_json

        keep(reading.settings.folder, EXPLANATION, key, json.dumps(explanation_json(explanation)).encode())


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
