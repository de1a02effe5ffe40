"""The last screen."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.unit.simulated_study import make_summary, small_space
from tuner.report.rows import describe_arm
from tuner.report.terminal import final_screen

SUMMARY = make_summary(searches=6)


def show(summary, **options) -> str:
    console = Console(record=True, width=100, force_terminal=False, color_system=None, file=StringIO())
    console.print(final_screen(summary, **options))
    return console.export_text()


def test_the_last_screen_has_both_sides_the_gain_and_the_difference() -> None:
    text = show(SUMMARY, report="nginx.study/report.html", exports=["nginx.study/exports/tuner.json"])

    gain = SUMMARY.gain
    assert gain is not None
    assert f"{gain.ratio:.2f}× [{gain.low:.2f}, {gain.high:.2f}], 6 pairs" in text
    assert f"{SUMMARY.default.goodput_rps:,.0f}" in text
    assert "sendfile            on    →  off" in text
    assert "nginx.study/report.html" in text
    assert "nginx.study/exports/tuner.json" in text
    assert len(text.splitlines()) <= 24, "one screen"


def test_a_short_screen_fits_a_terminal_and_ends_with_the_verdict() -> None:
    exports = [f"nginx.study/exports/{name}" for name in ("tuner-nginx.patch", "tuner.json", "undo.json")]
    console = Console(record=True, width=80, force_terminal=False, color_system=None, file=StringIO())
    console.print(final_screen(SUMMARY, report="nginx.study/report.html", exports=exports, is_short=True))
    lines = console.export_text().splitlines()

    assert len(lines) <= 22, "24 lines, with the command above and the prompt below"
    assert lines[-1].startswith("nginx-static: ")
    assert lines[-1].endswith("6 pairs of winner against default")
    assert "exports  nginx.study/exports/ (3 files)" in lines


def test_of_many_settings_a_short_screen_names_the_first_and_how_many_follow() -> None:
    winning = {
        "sendfile": False, "open_file_cache": 2000, "open_file_cache_valid": 30, "aio": "threads",
        "keepalive_requests": 100_000, "worker_processes": 1, "listen_backlog": 2048,
        "worker_connections": 4096, "keepalive_timeout": 30,
    }  # fmt: skip
    many = make_summary(searches=6, winning=winning, space=small_space(with_cache=True))
    short, whole = show(many, is_short=True), show(many)

    assert f"… and {len(many.shipped) - 7} more" in short
    assert sum(name in short for name in many.shipped) == 7
    assert all(name in whole for name in many.shipped)


def test_exports_of_what_is_not_proven_are_called_so() -> None:
    gain = SUMMARY.gain
    assert gain is not None
    unproven = replace(SUMMARY, gain=replace(gain, verdict="not proven"))

    exports = show(unproven, exports=["tuner.json"]).splitlines()

    (line,) = [line for line in exports if line.startswith("exports")]
    assert line.split("  ")[1] == "not proven: for tests, not for service"
    assert "for tests" not in show(SUMMARY, exports=["tuner.json"])


@pytest.mark.parametrize("width", [36, 40, 60])
def test_a_narrow_terminal_has_every_figure_whole(width: int) -> None:
    console = Console(record=True, width=width, force_terminal=False, color_system=None, file=StringIO())
    console.print(final_screen(SUMMARY))
    text = console.export_text()

    winner = SUMMARY.winner
    assert winner is not None
    for arm in (SUMMARY.default, winner):
        for figure in describe_arm(arm):
            assert figure in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width


def test_a_narrow_terminal_has_every_path_whole() -> None:
    paths = [
        "a-study-of-web1.study/exports/tuner-nginx-undo.patch",
        "a-study-of-web1.study/exports/tuner.json",
    ]
    console = Console(record=True, width=40, force_terminal=False, color_system=None, file=StringIO())
    console.print(final_screen(SUMMARY, report="a-study-of-web1.study/report/of/2026.html", exports=paths))

    text = console.export_text()
    joined = "".join(line.removeprefix("exports").strip() for line in text.splitlines())
    for path in paths:
        assert path in joined
    assert "…" not in text


def test_what_is_best_so_far_is_shown_until_the_study_is_finished() -> None:
    stopped = make_summary(searches=6, pairs=0)
    name, *_ = stopped.shipped

    assert name in show(stopped)
    assert name in show(replace(stopped, state="running"))
    assert name not in show(replace(stopped, state="finished", stop_reason="budget spent"))


def test_nothing_better_is_said_plainly() -> None:
    plain = replace(make_summary(searches=3, pairs=0), state="finished", stop_reason="budget spent")

    assert "nginx-static: nothing beat the default (budget spent)" in show(plain)


def test_a_stopped_study_says_that_its_best_is_not_confirmed() -> None:
    assert "not confirmed" in show(make_summary(searches=3, pairs=0))


def test_an_unproven_gain_is_called_not_proven() -> None:
    gain = SUMMARY.gain
    assert gain is not None

    assert "not proven" in show(replace(SUMMARY, gain=replace(gain, verdict="not proven")))


def test_a_verdict_is_called_by_its_name_with_its_reason() -> None:
    gain = SUMMARY.gain
    assert gain is not None
    broken = replace(
        SUMMARY, gain=replace(gain, verdict="infeasible"), reason="The winner fails 0.28 % of its requests."
    )

    *_, reason, headline = show(broken).splitlines()

    assert headline.startswith("nginx-static: infeasible, ")
    assert reason == "The winner fails 0.28 % of its requests."


def test_that_nothing_beat_the_default_is_said_once() -> None:
    plain = replace(
        make_summary(searches=3, pairs=0),
        state="finished",
        stop_reason="nothing beat the default in the search",
    )

    assert show(plain).splitlines()[-1] == "nginx-static: nothing beat the default in the search"


def test_failed_trials_stand_beside_those_that_count() -> None:
    winner = SUMMARY.winner
    assert winner is not None

    assert "6, 1 failed" in show(replace(SUMMARY, winner=replace(winner, failed_trials=1)))


def test_names_are_no_markup_on_the_last_screen() -> None:
    assert "[red]x[/red]" in show(replace(SUMMARY, study="[red]x[/red]"), report="[b]report[/b]")
