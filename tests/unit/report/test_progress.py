"""Live progress, on a terminal and in a log."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tuner.campaign.progress import Progress
from tuner.records import Failure, Role, State
from tuner.report.progress import LineProgress, LiveProgress, open_progress
from tuner.statistics.control_level import Speedup

SPEEDUP = Speedup(log_ratio=0.27, variance=0.0004)
SUMMARY = make_summary(searches=6)


def make_console(*, is_terminal: bool, width: int = 100) -> Console:
    return Console(record=True, width=width, force_terminal=is_terminal, color_system=None, file=StringIO())


def play(progress: Progress) -> None:
    start = SUMMARY.starts[5]
    progress.stage("search", 3, 20)
    progress.time_left(130)
    progress.start_begins(Role.SEARCH, "sendfile off")
    progress.start_ends(start, SPEEDUP)
    progress.incumbent({"sendfile": (True, False), "worker_processes": ("auto", 1)}, SPEEDUP)
    progress.start_begins(Role.SEARCH, "worker_connections 1\x1b]0;title\x07")
    failure = Failure(kind="rejected", reason="[bold]bad[/bold]")
    progress.start_ends(replace(start, number=6, state=State.FAILED, failure=failure), None)
    pruned = Failure(kind="pruned", reason="clearly worse")
    progress.start_begins(Role.SEARCH, "sendfile on")
    progress.start_ends(replace(start, number=7, state=State.PRUNED, failure=pruned), SPEEDUP)
    progress.note("steal of 6 % [link=x]in[/link] window 2")
    progress.stage("race", 0, 0)


def test_each_start_is_one_plain_line_where_there_is_no_terminal() -> None:
    console = make_console(is_terminal=False)
    with open_progress(console) as progress:
        assert isinstance(progress, LineProgress)
        play(progress)

    assert console.export_text().splitlines() == [
        "search",
        "  #5 search  1.31× [1.26, 1.36]  sendfile off  (about 2 min 10 s left)",
        "  best so far 1.31× [1.26, 1.36]  sendfile off, worker_processes 1",
        "  #6 search  failed: rejected  worker_connections 1 ]0;title   (about 2 min 10 s left)",
        "  #7 search  1.31× [1.26, 1.36]  pruned  sendfile on  (about 2 min 10 s left)",
        "  steal of 6 % [link=x]in[/link] window 2",
        "race",
    ]


def test_a_terminal_shows_stage_incumbent_and_time_left() -> None:
    console = make_console(is_terminal=True)
    with open_progress(console) as progress:
        assert isinstance(progress, LiveProgress)
        play(progress)
        progress.stage("search", 4, 20)
        console.print(progress._screen())

    shown = console.export_text()
    for words in (
        "search", "4 of 20", "about 2 min 10 s left", "best so far", "1.31× [1.26, 1.36]",
        "sendfile off, worker_processes 1", "steal of 6 % [link=x]in[/link] window 2", "pruned",
    ):  # fmt: skip
        assert words in shown


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_live_display_fits_every_width(width: int) -> None:
    progress = LiveProgress(make_console(is_terminal=True, width=width))
    play(progress)
    console = make_console(is_terminal=False, width=width)
    console.print(progress._screen())

    assert max(len(line) for line in console.export_text().splitlines()) <= width
