"""Wherever a gain is shown, the seconds under load that it holds for are, and a warning when it moves."""

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tuner.export.json_file import export_json
from tuner.export.provenance import describe_origin
from tuner.report.page import describe_age, describe_trends
from tuner.report.summary import Comparison
from tuner.report.summary_json import gain_json
from tuner.report.terminal import comparison_table, final_screen
from tuner.report.wording import say_age, say_trend
from tuner.statistics.age import Age, Trend

SHRINKS = Trend(change=-0.031, low=-0.05, high=-0.012)
STANDS = Trend(change=0.002, low=-0.01, high=0.014)
MOVING = Age(from_s=1.04, to_s=4.1, default=STANDS, winner=SHRINKS, ratio=SHRINKS)
STEADY = replace(MOVING, ratio=STANDS, winner=STANDS)
WARNING = (
    "he ratio of winner to default shrinks by 3.1 % [1.2, 5.0] from 1 to 4 s into the load: confirm with "
    "`tuner compare STUDY default winner --preset standard`"
)


def summary_at(age):
    summary = make_summary(searches=6)
    return replace(summary, gain=replace(summary.gain, age=age))


def show(shown):
    console = Console(record=True, width=80, force_terminal=False, color_system=None, file=StringIO())
    console.print(shown)
    return console.export_text()


@pytest.mark.parametrize(
    ("from_s", "to_s", "words"),
    [
        (1.04, 4.1, "1–4"), (0.96, 2.02, "1–2"), (0.0, 1.0, "0–1"), (5.2, 20.7, "5–21"),
        (10.0, 13.0, "10–13"), (21.9, 22.4, "22–23"),
    ],
)  # fmt: skip
def test_the_age_is_said_in_seconds_under_load(from_s, to_s, words):
    age = replace(MOVING, from_s=from_s, to_s=to_s)

    assert say_age(age) == f"measured {words} s into the load"


def test_an_unknown_age_is_not_spoken_of():
    assert (say_age(None), say_trend(None), describe_age(None), describe_trends(None)) == ("",) * 4
    assert "under load" not in show(final_screen(summary_at(None)))
    assert gain_json(summary_at(None).gain, "")["age_s"] is None


def test_the_last_screen_says_the_age_above_the_gain():
    text = show(final_screen(summary_at(STEADY)))

    assert text.splitlines()[-2] == "measured 1–4 s into the load"
    assert "ratio" not in text


def test_the_last_screen_warns_of_a_gain_that_moves_with_the_age():
    assert f"T{WARNING}" in " ".join(show(final_screen(summary_at(MOVING))).split())


def test_a_gain_that_grows_is_told_with_what_it_grows_by():
    grows = replace(MOVING, ratio=Trend(change=0.04, low=0.02, high=0.061))

    assert "grows by 4.0 % [2.0, 6.1] from" in say_trend(grows)


@pytest.mark.parametrize(
    "trend",
    [None, STANDS, Trend(change=-0.03, low=-0.07, high=0.01), Trend(change=0.01, low=0.01, high=0.01)],
)
def test_what_may_be_noise_or_is_small_is_no_warning(trend):
    assert say_trend(replace(MOVING, ratio=trend)) == ""


def test_where_no_preset_measures_later_seconds_none_is_recommended():
    late = replace(MOVING, from_s=5.0, to_s=20.0)

    assert say_trend(late).endswith("from 5 to 20 s into the load: how it changes later is not known")


def test_the_page_has_the_age_the_warning_and_the_change_of_each_side():
    said = "The gain was measured 1–4 s into the load and may differ later."
    assert describe_age(MOVING) == f"{said} T{WARNING}."
    assert describe_trends(MOVING) == (
        "From the youngest windows to the oldest: default grows by 0.2 % [−1.0, 1.4]; winner shrinks by "
        "3.1 % [1.2, 5.0]; their ratio shrinks by 3.1 % [1.2, 5.0]."
    )
    assert describe_trends(replace(MOVING, default=None, winner=None, ratio=None)) == ""


def test_scripts_get_the_age_and_the_trend_with_its_sides():
    told = gain_json(summary_at(MOVING).gain, "")

    assert told["age_s"] == [1.04, 4.1]
    assert told["trend"] == {
        "change": -0.031, "low": -0.05, "high": -0.012, "certain": True,
        "default": {"change": 0.002, "low": -0.01, "high": 0.014},
        "winner": {"change": -0.031, "low": -0.05, "high": -0.012},
    }  # fmt: skip
    alone = replace(MOVING, default=None, winner=None, ratio=None)
    assert gain_json(summary_at(alone).gain, "")["trend"] is None


def test_exports_say_it_beside_the_gain():
    lines = describe_origin(summary_at(MOVING))
    exported = json.loads(export_json(summary_at(MOVING))["tuner.json"])

    assert lines[1].startswith("gain: ")
    assert lines[2:4] == ("gain: measured 1–4 s into the load", f"WARNING: t{WARNING}")
    assert exported["gain"]["age_s"] == [1.04, 4.1]
    assert not any("WARNING" in line for line in describe_origin(summary_at(STEADY)))
    assert not any("under load" in line for line in describe_origin(summary_at(None)))


def test_a_comparison_speaks_of_its_own_sides():
    summary = summary_at(MOVING)
    comparison = Comparison(first=summary.default, second=summary.winner, gain=summary.gain)
    text = " ".join(show(comparison_table(comparison, "default", "old.yaml")).split())

    assert "measured 1–4 s into the load The ratio of old.yaml to default shrinks by" in text
    assert "`tuner compare STUDY default old.yaml --preset standard`" in text
