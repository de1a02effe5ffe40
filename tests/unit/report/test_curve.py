"""A load curve as people see it: the screen at any width, the page, and what it says of a collapse."""

import json
import re
from csv import DictReader
from dataclasses import replace
from io import StringIO
from random import Random

import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tests.unit.trials import DEFAULT, trial
from tuner.ports import Failures, Latency
from tuner.records import Failure, Role, State
from tuner.report.curve import Curve, curve_json, say_collapse
from tuner.report.curve.page import draw_curve, render_curve
from tuner.report.curve.rows import curve_csv, curve_markdown, curve_screen, draw_goodput, list_rows
from tuner.report.figures.objects import to_plotly
from tuner.report.page import render_report
from tuner.statistics.curves.load_curve import judge_curve
from tuner.study.facts import CurvePlan

HOSTILE = "it stalled <b>\x1b[31m"
STALLED = {"state": State.FAILED, "failure": Failure(kind="stalled", reason=HOSTILE)}
DEFAULT_RATES = {100: 20_000, 1000: 18_000, 10_000: 5000}
WINNER_RATES = {100: 24_000, 1000: 23_000, 10_000: 20_000}


def make_curve(cells, *, connections=(100, 1000, 10_000), blocks=3):
    """Make a curve of these: name → connections → (requests per second, share that fails); None stalls."""
    plan = CurvePlan(
        names=tuple(cells), configs=(DEFAULT,) * len(cells), connections=connections, failure_limit=0.001
    )
    rng, trials = Random(1), []  # noqa: S311 - no secret
    for block in range(blocks):
        for (config, count), arm in zip(plan.cells, plan.arms, strict=True):
            told = cells[plan.names[config]][count]
            given = {"role": Role.CURVE, "arm": arm, "block": block, "config": DEFAULT}
            if told is None:
                trials.append(trial(len(trials), **given | STALLED))
                continue
            rate, share = told
            made = trial(len(trials), *(rate * (1 + 0.02 * rng.random()) for _ in range(2)), **given)
            windows = tuple(
                replace(
                    each,
                    failures=Failures(timeout=round(share * each.correct)),
                    latency=Latency(quantiles_ms={0.99: count / 50}, samples=each.correct),
                )
                for each in made.windows[:1]
            )
            trials.append(replace(made, windows=windows))
    return Curve(
        study="nginx", workload="wrk, 100 connections", load_curve=judge_curve(plan, trials),
        trials=sum(each.counts for each in trials), seconds=187.0,
    )  # fmt: skip


def rates(told, failing=()):
    return {count: (rate, 0.2 if count in failing else 0.0) for count, rate in told.items()}


@pytest.fixture
def curve():
    return make_curve({"default": rates(DEFAULT_RATES, (1000, 10_000)), "winner": rates(WINNER_RATES)})


@pytest.fixture
def stalling():
    return make_curve({"default": {**rates(DEFAULT_RATES), 10_000: None}, "tuned <i>": rates(WINNER_RATES)})


def printed(curve, width):
    console = Console(width=width, record=True, force_terminal=False, file=StringIO())
    console.print(curve_screen(curve))
    return console.export_text()


def test_the_collapse_of_each_configuration_is_named(curve):
    assert curve.verdict == (
        "default: failures from 1,000 connections on (17 %); winner: no failures up to 10,000 connections"
    )


def test_what_serves_nothing_is_named_as_that_with_the_reason(stalling):
    assert say_collapse(stalling, 0) == "default: serves nothing from 10,000 connections on"
    assert "default at 10,000 connections: it stalled <b> [31m" in printed(stalling, 80)


def test_a_few_failures_below_the_bound_are_said_and_no_collapse():
    curve = make_curve({"default": {100: (20_000, 0.0), 1000: (20_000, 0.00015), 10_000: (20_000, 0.0)}})

    assert curve.verdict == "default: 0.015 % failed up to 10,000 connections"


def test_a_configuration_without_any_trial_was_not_measured():
    curve = make_curve({"default": rates(DEFAULT_RATES)}, blocks=0)

    assert curve.verdict == "default: not measured"
    assert printed(curve, 80)
    assert render_curve(curve)


@pytest.mark.parametrize("width", [28, 40, 60, 80, 120])
def test_no_line_is_longer_than_the_terminal(curve, stalling, width):
    for each in (curve, stalling):
        assert all(cell_len(row.plain) <= width for row in draw_goodput(each).lines(width))
        assert all(len(line) <= width for line in printed(each, width).splitlines())


def test_the_usual_terminal_shows_every_figure_and_a_bar(curve):
    rows = [row.plain for row in draw_goodput(curve).lines(80)]

    assert re.search(r"connections +requests/s +failed +p99", rows[0])
    assert re.search(r"1,000 +default +18,\d{3} +✕ 17 % +20\.0 ms +█", rows[3])
    assert re.search(r"winner +20,\d{3} +0 +200 ms +█", rows[6])
    assert rows[2].count("█") > 3 * rows[5].count("█")


def test_a_wide_terminal_shows_the_ratio_to_the_first(curve):
    assert re.search(r"4\.\d\d× \[\d\.\d\d, \d\.\d\d\]", draw_goodput(curve).lines(120)[6].plain)


def panels_of(curve):
    """Return the titles of a curve's panels, from the top."""
    layout = draw_curve(curve)["layout"]
    return [layout[key]["title"]["text"] for key in sorted(layout) if key.startswith("yaxis")]


def test_the_figure_has_a_panel_for_each_quantity_and_the_page_every_number(curve):
    page = render_curve(curve)

    assert panels_of(curve) == ["requests/s", "failed, %", "p99, ms"]
    assert page == render_curve(curve)
    for row in list_rows(curve):
        assert all(cell.replace("<", "&lt;") in page for cell in row if cell)
    assert "http" not in page.replace("http-equiv", "")


def test_without_failures_there_is_no_figure_of_them():
    curve = make_curve({"default": rates(DEFAULT_RATES)})

    assert panels_of(curve) == ["requests/s", "p99, ms"]


def test_points_where_requests_fail_are_hollow_and_stalls_are_crosses(curve, stalling):
    default, winner = draw_curve(curve)["data"][:2]
    crosses = draw_curve(stalling)["data"][-1]

    assert [each.endswith("-open") for each in default["marker"]["symbol"]] == [False, True, True]
    assert not any(each.endswith("-open") for each in winner["marker"]["symbol"])
    assert (crosses["marker"]["symbol"], len(crosses["x"])) == ("x", 1)
    assert to_plotly(draw_curve(stalling)).data


def test_foreign_text_is_escaped_on_the_page(stalling):
    page = render_curve(stalling)

    assert "<b>" not in page
    assert "<i>" not in page
    assert "<b>" not in json.dumps(draw_curve(stalling))


def test_scripts_read_the_same_figures(curve, stalling):
    found = json.loads(json.dumps(curve_json(curve)))
    default, winner = found["configurations"]

    assert (default["bears_up_to"], default["fails_from"]) == (100, 1000)
    assert (winner["bears_up_to"], winner["fails_from"]) == (10_000, None)
    assert [point["ratio"] for point in default["points"]] == [None] * 3
    for point in winner["points"]:
        assert point["ratio"]["low"] <= point["ratio"]["value"] <= point["ratio"]["high"]
        assert point["failed"] == 0
    lost = curve_json(stalling)["configurations"][0]["points"][2]
    assert (lost["goodput_rps"], lost["fault"], lost["failed_trials"]) == (None, HOSTILE, 3)


def test_markdown_has_every_row_and_no_foreign_markup(curve, stalling):
    text = curve_markdown(curve)

    assert text.startswith("**default: failures from 1,000 connections on")
    assert text.count("\n| ") == 2 + len(list_rows(curve))
    assert "<b>" not in curve_markdown(stalling)
    assert "\x1b" not in curve_markdown(stalling)


def test_csv_has_a_line_for_each_configuration_and_number_of_connections(curve, stalling):
    rows = list(DictReader(StringIO(curve_csv(curve))))
    lost = list(DictReader(StringIO(curve_csv(stalling))))[-2]

    assert [(row["connections"], row["configuration"]) for row in rows[:2]] == [
        ("100", "default"), ("100", "winner"),
    ]  # fmt: skip
    assert float(rows[1]["low"]) <= float(rows[1]["ratio"]) <= float(rows[1]["high"])
    assert rows[0]["ratio"] == ""
    assert (rows[-1]["failures"], rows[-1]["bears"]) == ("0", "True")
    assert (lost["goodput_rps"], lost["failed_trials"]) == ("", "3")
    assert "it stalled" in lost["fault"]


def test_the_report_of_a_study_shows_its_curves(curve, stalling):
    page = render_report(make_summary(), (), [curve, stalling])

    assert page.count('id="curve-0"') == page.count('id="curve-1"') == 1
    assert "failures from 1,000 connections on" in page
