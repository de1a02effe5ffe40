"""Live progress, on a terminal and in a log."""

import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper
from statistics import fmean
from threading import active_count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from tests.unit.simulated_study import make_summary
from tuner.campaign.progress import Leader, Progress
from tuner.records import Failure, Metric, Role, State, measured_by
from tuner.report.progress import (
    ASCII_BARS,
    BARS,
    Drawn,
    LineProgress,
    LiveProgress,
    Sparkline,
    open_progress,
)
from tuner.statistics.baseline_level import Speedup

SPEEDUP = Speedup(log_ratio=0.27, variance=0.0004)
SUMMARY = make_summary(searches=6)
LEADERS = (
    Leader(changes={"sendfile": (True, False), "worker_processes": ("auto", 1)}, speedup=SPEEDUP, trials=2),
    Leader(
        changes={"keepalive_requests": (1000, 64000)},
        speedup=Speedup(log_ratio=0.1, variance=0.0004),
        trials=1,
    ),
)


def make_console(*, is_terminal: bool, width: int = 100) -> Console:
    return Console(record=True, width=width, force_terminal=is_terminal, color_system=None, file=StringIO())


def play(progress: Progress) -> None:
    trial = SUMMARY.trials[5]
    progress.stage("search", 3, 20)
    progress.time_left(130)
    progress.trial_begins(Role.SEARCH, "sendfile off")
    progress.trial_ends(trial, SPEEDUP)
    progress.leaders(LEADERS)
    progress.leaders(LEADERS)
    progress.trial_begins(Role.SEARCH, "worker_connections 1\x1b]0;title\x07")
    failure = Failure(kind="rejected", reason="[bold]bad[/bold]")
    progress.trial_ends(replace(trial, number=6, state=State.FAILED, failure=failure), None)
    pruned = Failure(kind="pruned", reason="clearly worse")
    progress.trial_begins(Role.SEARCH, "sendfile on")
    progress.trial_ends(replace(trial, number=7, state=State.PRUNED, failure=pruned), SPEEDUP)
    noise = Failure(kind="environment", reason="every window was spoiled")
    progress.trial_ends(replace(trial, number=8, state=State.INVALID, failure=noise), None)
    progress.note("steal of 6 % [link=x]in[/link] window 2")
    progress.stage("race", 0, 0)


def test_each_trial_is_one_plain_line_where_there_is_no_terminal() -> None:
    console = make_console(is_terminal=False)
    with open_progress(console) as progress:
        assert isinstance(progress, LineProgress)
        play(progress)

    assert console.export_text().splitlines() == [
        "search",
        "  #5 search  1.31× [1.26, 1.36]  sendfile off  (about 2 min 10 s left)",
        "  best estimate 1.31× [1.26, 1.36]  sendfile off, worker_processes 1",
        "  #6 search  failed: rejected  worker_connections 1 ]0;title   (about 2 min 10 s left)",
        "  #7 search  1.31× [1.26, 1.36]  pruned  sendfile on  (about 2 min 10 s left)",
        "  #8 search  not counted: other programs disturbed it  sendfile on  (about 2 min 10 s left)",
        "  steal of 6 % [link=x]in[/link] window 2",
        "race",
    ]


def test_a_terminal_shows_stage_leaders_trials_and_time_left() -> None:
    console = make_console(is_terminal=True)
    with open_progress(console) as progress:
        assert isinstance(progress, LiveProgress)
        play(progress)
        progress.stage("search", 4, 20)
        console.print(progress._screen())

    shown = console.export_text()
    for words in (
        "search (2 of 8), 4 of 20 trials", "0 s, about 2 min 10 s left", "best estimate",
        "1.31× [1.26, 1.36]  2 trials", "sendfile off, worker_processes 1", "1.11× [1.06, 1.15]  1 trial ",
        "keepalive_requests 64000",
        "▁x▁  1.31× to 1.31×", "steal of 6 % [link=x]in[/link] window 2", "pruned",
    ):  # fmt: skip
        assert words in shown


def test_leaders_show_what_they_differ_in_and_the_rates_of_both() -> None:
    progress = LiveProgress(make_console(is_terminal=True))
    baseline = next(trial for trial in SUMMARY.trials if trial.role is Role.BASELINE)
    rate_rps = fmean(each.goodput_rps for each in baseline.valid_windows)
    first, second = {"sendfile": (True, False), "aio": ("off", "threads")}, {"sendfile": (True, False)}
    progress.trial_ends(baseline, None)
    progress.leaders([Leader(changes=each, speedup=SPEEDUP, trials=2) for each in (first, second)])
    console = make_console(is_terminal=True)
    console.print(progress._screen())

    lines = [line.rstrip() for line in console.export_text().splitlines()]
    best = f"{rate_rps * SPEEDUP.ratio:,.0f} requests/s  1.31× [1.26, 1.36]  2 trials"
    assert f"baseline       {rate_rps:,.0f} requests/s" in lines
    assert f"best estimate  {best}   aio threads" in lines
    assert f"               {best}" in lines
    assert "all change     sendfile off" in lines


def test_ratios_of_something_else_than_goodput_are_no_ratios_of_requests_per_second() -> None:
    progress = LiveProgress(make_console(is_terminal=True))
    baseline = next(trial for trial in SUMMARY.trials if trial.role is Role.BASELINE)
    progress.trial_ends(measured_by(baseline, Metric.LATENCY_P99), None)
    progress.leaders([Leader(changes={"sendfile": (True, False)}, speedup=SPEEDUP, trials=2)])
    console = make_console(is_terminal=True)
    console.print(progress._screen())

    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert any(line.startswith("best estimate  1.31× [1.26, 1.36]  2 trials") for line in lines)


def test_a_wait_for_a_quiet_host_counts_down_until_the_next_trial() -> None:
    progress = LiveProgress(make_console(is_terminal=True))
    before = active_count()
    progress.waits(3600)
    console = make_console(is_terminal=True)
    console.print(progress._screen())
    progress.trial_begins(Role.SEARCH, "sendfile off")

    assert re.search(r"now +waiting for a quiet host, up to (1 h|59 min)", console.export_text())
    wait_for(lambda: active_count() == before)
    console.print(progress._screen())
    assert re.search(r"now +search  sendfile off", console.export_text())


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait for another thread."""
    for _ in range(500):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_live_display_fits_every_width(width: int) -> None:
    progress = LiveProgress(make_console(is_terminal=True, width=width))
    play(progress)
    console = make_console(is_terminal=False, width=width)
    console.print(progress._screen())

    shown = console.export_text()
    assert max(len(line) for line in shown.splitlines()) <= width
    assert "sendfile off, worker_processes 1" in " ".join(shown.split())


def test_a_low_terminal_shows_fewer_leaders_and_notes_and_the_newest_of_them() -> None:
    console = Console(width=80, height=15, force_terminal=True, color_system=None, file=StringIO())
    progress = LiveProgress(console)
    settings = {f"client_header_buffer_number_{number}": (1, 2) for number in range(6)}
    progress.leaders(
        [Leader(changes={**settings, "aio": ("off", place)}, speedup=SPEEDUP, trials=1) for place in range(5)]
    )
    for number in range(4):
        progress.note(f"note {number}: {'other programs disturbed it ' * 6}")
    progress.draw()
    with console.capture() as drawn:
        console.print(progress._drawn)

    lines = drawn.get().splitlines()
    assert len(lines) <= 15
    assert any(line.startswith("best estimate  1.31×") for line in lines)
    assert [number for number in range(4) if f"note {number}" in drawn.get()] == [3]


def test_rows_are_counted_into_which_a_narrower_terminal_breaks_lines() -> None:
    drawn = Drawn()
    drawn.screen = Text(f"{'x' * 100}\n{'y' * 31}{' ' * 50}\n\nz")
    make_console(is_terminal=True, width=100).print(drawn)

    assert [drawn.count_broken(width) for width in (120, 100, 99, 50, 31, 30)] == [0, 0, 1, 1, 3, 4]


def draw(sparkline: Sparkline, *, width: int = 60, encoding: str = "utf-8") -> str:
    console = Console(width=width, color_system=None, file=TextIOWrapper(BytesIO(), encoding=encoding))
    with console.capture() as drawn:
        console.print(sparkline)
    return drawn.get().rstrip("\n")


def test_a_sparkline_reaches_from_the_least_speedup_to_the_most() -> None:
    speedups = [math.log(0.5), None, 0.0, math.log(2)]

    assert draw(Sparkline(speedups)) == f"▁x{BARS[4]}█  0.50× to 2.00×"
    assert draw(Sparkline([None])) == ""


@given(st.lists(st.none() | st.floats(-5, 5), max_size=100), st.integers(24, 120))
def test_a_sparkline_fits_and_has_a_bar_for_each_of_the_last_trials(speedups, width) -> None:
    shown = draw(Sparkline(speedups), width=width)

    bars = shown.partition("  ")[0]
    assert len(shown) <= width
    assert set(bars) <= {*BARS, "x"}
    if any(each is not None for each in speedups):
        assert 0 < len(bars) <= len(speedups)
        assert [bar == "x" for bar in bars] == [each is None for each in speedups[-len(bars) :]]


def test_a_sparkline_needs_no_letters_that_an_encoding_lacks() -> None:
    assert draw(Sparkline([-0.7, 0.0, 0.7]), encoding="latin-1").startswith(
        f"{ASCII_BARS[0]}{ASCII_BARS[4]}{ASCII_BARS[-1]}"
    )
