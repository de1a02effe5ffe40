"""The page of a study: made, written, and kept, so that one that nothing has changed for is not made again.

Nothing heavy is imported here before a page has to be made.
"""

from pathlib import Path

from tuner.commands.session import Reading
from tuner.study import Study
from tuner.study.cache import keep, look_up
from tuner.study.digest import make_study_key
from tuner.study.folder import require_own, write_file, write_named

REPORT = "report.html"
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


def make_page(reading: Reading) -> bytes:
    """Make the page of a study with its sweeps and load curves."""
    from tuner.report.curve import read_curves
    from tuner.report.page import render_report
    from tuner.report.sweep import read_sweeps

    sweeps = read_sweeps(reading.settings, reading.summary.space)
    curves = read_curves(reading.settings)
    # A name that is not UTF-8 comes from Python with signs that cannot be encoded.
    return render_report(reading.summary, sweeps, curves).encode(errors="replace")


def keep_page(reading: Reading, page: bytes) -> None:
    """Keep the page of a study that is finished: others change from one trial to the next.

    Of one whose file was edited none is kept: who asks for it is told so each time.
    """
    is_final = reading.summary.state == "finished" and not reading.changed
    key = make_study_key(reading.settings) if is_final else None
    if key is not None:
        keep(reading.settings.folder, NAME, key, page)


def write_page(settings: Study, page: bytes, output: Path | None) -> Path:
    """Write a page; beside the study by default.

    Raises:
        UsageError: the report beside the study is a link or another user's.
        TargetError: it cannot be written.
    """
    if output is not None:
        write_named(output, page)
        return output
    write_file(settings.folder / REPORT, page, study_folder=settings.folder)
    return settings.folder / REPORT
