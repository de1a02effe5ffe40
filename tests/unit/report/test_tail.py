"""A winner that serves more and lets some wait for longer: said wherever its gain is."""

import re
from dataclasses import replace
from html import unescape
from io import StringIO

import pytest
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tuner.campaign.stages.fixed_rate import LatencyClaim
from tuner.export.provenance import describe_origin
from tuner.report.forms import comparison_markdown
from tuner.report.page import render_report
from tuner.report.rows import describe_rates
from tuner.report.summary import Comparison
from tuner.report.summary_json import gain_json
from tuner.report.terminal import comparison_table, final_screen
from tuner.statistics.age import Age
from tuner.statistics.confirmation.paired_gain import judge_pairs
from tuner.statistics.feasibility import Assessment

LONGER = judge_pairs([(0.0, 0.62), (0.0, 0.66), (0.0, 0.64)])
SAID = "take longer with the winner: their p99 is 1.90× [1.80, 1.99] that of the default"
REMEDY = "`constraints: [latency_p99_ms <= default]` in a new study rules that out."


YOUNG = Age(from_s=1.04, to_s=3.1, default=None, winner=None, ratio=None)


def summary_with(p99, *, age=None, **others):
    summary = make_summary(searches=6)
    return replace(summary, gain=replace(summary.gain, p99=p99, age=age), **others)


def show(shown):
    console = Console(record=True, width=400, force_terminal=False, color_system=None, file=StringIO())
    console.print(shown)
    return console.export_text()


def words_of(page):
    """Return the text of a page with code between backticks, as other places have it."""
    return unescape(re.sub("</?code>", "`", page))


def test_it_is_said_on_the_screen_in_the_report_in_exports_and_in_json():
    summary = summary_with(LONGER)

    assert f"The slowest 1 % of responses {SAID}. {REMEDY}" in show(final_screen(summary))
    assert f"The slowest 1 % of responses {SAID}. {REMEDY}" in words_of(render_report(summary))
    assert f"WARNING: The slowest 1 % of responses {SAID}. {REMEDY}" in describe_origin(summary)
    assert gain_json(summary.gain, "")["p99_ratio"] == pytest.approx(
        {"ratio": 1.896, "low": 1.804, "high": 1.993}, abs=0.001
    )


def test_of_young_servers_it_is_said_how_to_look_later():
    """Apache's prefork starts processes in its first four seconds, and connections wait for them."""
    young, old = (
        show(final_screen(summary_with(LONGER, age=age))) for age in (YOUNG, replace(YOUNG, from_s=6.0))
    )

    said = SAID.replace("with the winner:", "with the winner 1–3 s into the load:")
    assert f"{said}. `tuner compare STUDY default winner --preset standard` measures later; {REMEDY}" in young
    assert "measures later" not in old
    assert REMEDY in old


@pytest.mark.parametrize(
    "p99",
    [
        None,
        pytest.param(judge_pairs([(0.0, 0.9), (0.0, -0.3), (0.0, 0.8)]), id="may be noise"),
        pytest.param(judge_pairs([(0.0, 0.05), (0.0, 0.051), (0.0, 0.052)]), id="too little to matter"),
        pytest.param(judge_pairs([(0.0, -0.6), (0.0, -0.61), (0.0, -0.62)]), id="shorter"),
    ],
)
def test_what_is_not_shown_or_does_not_matter_is_not_said(p99):
    assert "take longer" not in show(final_screen(summary_with(p99)))
    assert "take longer" not in render_report(summary_with(p99))


def test_it_is_not_said_where_the_study_looks_at_response_times_itself():
    claim = LatencyClaim(rate_rps=1000, pairs=3, default_p99=None, winner_p99=None, ratio=LONGER)
    bounded = Assessment(
        constraint="latency_p99_ms <= 50 ms",
        metric="latency_p99_ms",
        limit=50.0,
        probability=0.99,
        seen=None,
        of_default=None,
        finding="keeps it",
        finding_of_default="keeps it",
    )

    assert "take longer" not in show(final_screen(summary_with(LONGER, latency=claim)))
    assert "take longer" not in show(final_screen(summary_with(LONGER, assessments=(bounded,))))


def test_a_comparison_says_it_of_its_second_side():
    summary = summary_with(LONGER)
    comparison = Comparison(first=summary.default, second=summary.winner, gain=summary.gain)
    said = (
        "The slowest 1 % of responses take longer with b.yaml: their p99 is 1.90× [1.80, 1.99] that of a.yaml"
    )

    assert said in show(comparison_table(comparison, "a.yaml", "b.yaml"))
    assert f"- {said}" in comparison_markdown(comparison, "a.yaml", "b.yaml").replace("\\", "")


def test_p99s_of_different_rates_are_said_not_to_compare_and_where_they_do():
    summary = make_summary(searches=6)
    slow, fast = (replace(summary.default, goodput_rps=rate, latency_p99_ms=4.0) for rate in (1000.0, 1300.0))
    said = "Do not compare these p99: one was measured at 1,000 requests/s, the other at 1,300. "
    shown = replace(summary, default=slow, winner=fast)

    assert describe_rates(slow, fast) == said + "`--preset standard` measures both at one rate."
    assert describe_rates(slow, fast, is_fixed=True).startswith(said)
    assert describe_rates(slow, replace(fast, goodput_rps=1040.0)) == ""
    assert describe_rates(slow, replace(fast, latency_p99_ms=None)) == ""
    assert said in show(final_screen(shown))
    assert said in words_of(render_report(shown))
    for longer in ("standard", "thorough"):  # such a study has measured what it can
        assert "--preset" not in show(final_screen(replace(shown, preset=longer)))
    assert ">p99, corrected; do not compare<" in render_report(shown)
    compared = Comparison(first=slow, second=fast, gain=LONGER)
    assert said in show(comparison_table(compared, "a", "b"))
