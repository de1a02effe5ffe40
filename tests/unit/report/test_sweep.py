"""A sweep as people see it: the screen at any width, the page, and what it says to do."""

import csv
import json
import re
from dataclasses import replace
from html import unescape
from io import StringIO

import plotly.io
import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tests.unit.simulation import TUNED, space_of
from tests.unit.trials import trial
from tuner.records import Failure, Metric, Role, State
from tuner.report.figures.objects import to_plotly
from tuner.report.markup import SCRIPT_TAG
from tuner.report.page import render_report
from tuner.report.summary import gather_arm
from tuner.report.sweep import Sweep, list_faults, list_followers, say_tolerance, sweep_json
from tuner.report.sweep.page import draw_sweep, render_sweep
from tuner.report.sweep.rows import draw_curve, sweep_csv, sweep_markdown, sweep_screen
from tuner.space.grid import place_value
from tuner.statistics.curves.sweep import judge_sweep
from tuner.study.facts import SweepPlan

SPACE = space_of(*TUNED)
CRASHED = {"state": State.FAILED, "failure": Failure(kind="crashed", reason="it crashed <b>\x1b[31m")}


def make_sweep(rates, *, name="worker_connections", baseline=0, special=(), crashed=(), lacks=None, blocks=6):
    """Make a sweep of these values → requests per second; those that crash give none."""
    points = [place_value(SPACE.open(), SPACE.default(), name, value) for value in rates]
    plan = SweepPlan(
        parameter=name, at="default", values=tuple(point.value for point in points),
        configs=tuple(point.config for point in points), control=baseline, is_log=True, special=special,
        lacks=lacks or {},
    )  # fmt: skip
    trials = []
    for block in range(blocks):
        for index, rate in enumerate(rates.values()):
            given = {
                "role": Role.SWEEP,
                "arm": plan.arms[index],
                "block": block,
                "config": plan.configs[index],
            }
            noisy = rate * (1 + 0.003 * ((7 * block + 3 * index) % 5 - 2))
            more = CRASHED if index in crashed else {}
            windows = () if index in crashed else (noisy,)
            trials.append(trial(len(trials), *windows, **given | more))
    arms = [gather_arm(config, [each for each in trials if each.arm == arm])
            for arm, config in zip(plan.arms, plan.configs, strict=True)]  # fmt: skip
    return Sweep(
        study="nginx", workload="wrk, 100 connections", space=SPACE, sweeping=judge_sweep(plan, trials, ()),
        arms=tuple(arms), metric=Metric.GOODPUT, trials=sum(each.counts for each in trials), seconds=232.0,
    )  # fmt: skip


@pytest.fixture
def peaked():
    return make_sweep({768: 10_000, 1500: 12_000, 3000: 15_000, 6000: 14_750, 12000: 9_000})


def printed(sweep, width):
    console = Console(width=width, record=True, force_terminal=False, file=StringIO())
    console.print(sweep_screen(sweep))
    return console.export_text()


def test_values_whose_server_was_still_changing_are_named(peaked):
    changing = replace(
        peaked, unsteady=(0, 1, 3, 0, 0), arms=tuple(replace(arm, trials=4) for arm in peaked.arms)
    )

    (said,) = list_faults(changing)

    assert said.startswith("3000: 3 of 4 trials were measured while goodput or the number of processes still")
    assert said.endswith("Set a longer `warmup_s:`.")
    assert list_faults(peaked) == []


@pytest.mark.parametrize("width", [28, 40, 60, 80, 120])
def test_no_line_is_longer_than_the_terminal(peaked, width):
    for line in draw_curve(peaked).lines(width):
        assert cell_len(line.plain) <= width
    assert all(len(line) <= width for line in printed(peaked, width).splitlines())


def test_the_wider_the_terminal_the_more_figures_it_shows(peaked):
    narrow, usual = ("\n".join(row.plain for row in draw_curve(peaked).lines(width)) for width in (40, 80))

    assert "1.50×" in narrow
    assert "[" not in narrow
    assert re.search(r"3000 +1\d,\d{3} +1\.\d\d× \[1\.\d\d, 1\.\d\d\]", usual)


def test_the_best_value_is_marked_and_the_line_of_no_change_drawn(peaked):
    rows = [row.plain for row in draw_curve(peaked).lines(80)]

    assert [("◆" in row, "●" in row) for row in rows[1:]] == [
        (False, False), (False, False), (True, False), (False, True), (False, False)
    ]  # fmt: skip
    assert "│" in rows[3]
    assert "1×" in rows[0]


def test_what_to_do_stands_at_the_end(peaked):
    last = printed(peaked, 80).strip().splitlines()[-1]

    assert re.fullmatch(r"Set worker_connections to 3000: 1\.\d\d× \[.*\] the goodput of 768\.", last)
    assert "3000 to 6000: within 3 % of the best." in printed(peaked, 80)


def test_markdown_begins_with_what_to_do_and_has_a_row_for_each_value():
    sweep = make_sweep({768: 10_000, 1500: 12_000, 3000: 15_000}, crashed=(1,))

    text = sweep_markdown(sweep)

    assert text.startswith("**Set worker_connections to 3000: ")
    assert "| worker_connections | of 768 | requests/s | " in text
    assert sum(line.startswith("| ") for line in text.splitlines()) == 2 + 3
    assert "- 1500 fails: it crashed \\<b\\>" in text
    assert "\x1b" not in text


def test_csv_has_a_line_for_each_value_with_what_follows_from_it():
    sweep = make_sweep({768: 10_000, 1500: 12_000, 3000: 15_000}, crashed=(1,))

    default, crashed, best = csv.DictReader(StringIO(sweep_csv(sweep)))

    assert (default["value"], default["worker_connections"]) == ("768", "768")
    assert (crashed["ratio"], crashed["goodput_rps"], crashed["failed_trials"]) == ("", "", "6")
    assert "it crashed" in crashed["fault"]
    assert float(best["low"]) < float(best["ratio"]) < float(best["high"])
    assert best["tolerated"] == "True"
    assert int(best["worker_rlimit_nofile"]) > 3000


def test_what_is_not_proven_is_not_advised():
    flat = make_sweep({768: 10_000, 1500: 10_010, 3000: 9_990}, blocks=2)

    assert flat.advice.startswith("Keep worker_connections at 768: ")


def test_a_best_value_alone_has_no_range():
    alone = make_sweep({768: 10_000, 1500: 12_000, 3000: 15_000, 6000: 12_000})

    assert say_tolerance(alone) == "No other value is known to be within 3 % of the best."
    assert alone.tolerated == (3000,)


def test_a_range_ends_where_a_value_is_worse_even_if_one_beyond_is_not():
    split = make_sweep({768: 10_000, 1500: 15_000, 3000: 11_000, 6000: 15_100})

    assert len(split.tolerated) == 1


def test_a_value_that_fails_is_shown_with_its_reason_and_steers_nothing():
    failing = make_sweep({768: 10_000, 1500: 12_000, 3000: 15_000}, crashed={2})

    text = printed(failing, 80)
    page = render_sweep(failing)

    assert failing.best == 1500
    assert "no measurement" in text
    assert "3000 fails: it crashed" in text
    assert "\x1b" not in text
    assert "<b>" not in page


def test_a_value_with_which_less_is_held_is_shown_and_not_named_best():
    lacking = make_sweep(
        {768: 10_000, 1500: 12_000, 3000: 15_000}, lacks={2: "nginx has capacity for 5 connections"}
    )

    assert lacking.best == 1500
    assert "3000 has less capacity than the default, so it is not named best: nginx has capacity for 5" in (
        " ".join(printed(lacking, 200).split())
    )
    assert lacking.estimates[2].ratio == pytest.approx(1.5, abs=0.03)


def test_choices_that_are_as_good_are_listed():
    choices = make_sweep({"on": 10_000, "off": 10_000}, name="sendfile", special=(0, 1))

    assert say_tolerance(choices) == "on, off: within 3 % of the best."
    assert sweep_json(choices)["tolerance"]["low"] is None


def test_special_values_stand_apart_by_their_label():
    special = make_sweep({0: 10_000, 100: 13_000, 1000: 15_000}, name="open_file_cache", special=(0,))

    axis = draw_sweep(special)["layout"]["xaxis"]

    off, low, high = axis["tickvals"]
    assert axis["ticktext"] == ["off", "100", "1000"]
    assert off > high > low
    assert list_followers(special)["open_file_cache_valid"] == ["–", "60 s", "60 s"]


def test_the_page_loads_nothing_and_has_every_value(peaked):
    page = render_sweep(peaked)

    assert not re.search(r"(src|href)=|@import|url\(", page.replace(SCRIPT_TAG, ""))
    for value in peaked.values:
        assert f">{peaked.show(value)}<" in page
    assert page == render_sweep(peaked)
    assert len(page) < 100_000


def test_the_figure_has_every_value_inside_its_axes(peaked):
    figure = draw_sweep(peaked)
    points = [trace for trace in figure["data"] if trace["mode"] == "markers"]
    low, high = figure["layout"]["yaxis"]["range"]

    assert sum(len(trace["x"]) for trace in points) == len(peaked.values)
    assert {trace["name"] for trace in points} == {"measured", "within 3 % of the best", "best"}
    for trace in points:
        error = trace["error_y"]
        for at, below, above in zip(trace["y"], error["arrayminus"], error["array"], strict=True):
            assert low <= at - below <= at <= at + above <= high
    assert to_plotly(figure).data


def test_a_notebook_shows_the_figure(peaked, monkeypatch):
    monkeypatch.setattr(plotly.io.renderers, "default", "plotly_mimetype")
    bundle = peaked._repr_mimebundle_()

    assert json.loads(json.dumps(bundle))["application/vnd.plotly.v1+json"]["data"]


def test_the_report_shows_sweeps_with_what_to_do(peaked):
    shown = render_report(make_summary(searches=3), [peaked])

    assert '<h2 id="sweeps">' in shown
    assert peaked.advice in unescape(shown)
    assert 'id="sweep-0"' in shown
    assert '<h2 id="sweeps">' not in render_report(make_summary(searches=3))


def test_json_has_every_value_and_no_number_that_json_lacks(peaked):
    data = json.loads(json.dumps(sweep_json(peaked), allow_nan=False))

    assert [each["value"] for each in data["values"]] == [768, 1500, 3000, 6000, 12000]
    assert data["best"]["value"] == 3000
    assert data["tolerance"] == {"loss": 0.03, "values": [3000, 6000], "low": 3000, "high": 6000}
    assert 0 < data["best"]["low"] < data["best"]["ratio"] < data["best"]["high"]
    assert data["blocks"] == 6


def test_a_sweep_without_a_measurement_says_so():
    nothing = make_sweep({768: 10_000, 1500: 12_000}, crashed={0, 1}, blocks=2)

    assert nothing.best is None
    assert "Keep worker_connections at 768: no value gave a usable measurement" in nothing.advice
    assert printed(nothing, 80)
    assert render_sweep(nothing)
    assert sweep_json(nothing)["best"] is None


def test_another_metric_is_named(peaked):
    per_cpu = replace(peaked, metric=Metric.PER_CPU)

    assert "CPU second" in per_cpu.advice
    assert "CPU second" in draw_sweep(per_cpu)["layout"]["yaxis"]["title"]["text"]
