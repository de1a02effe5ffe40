"""What was compared is named wherever a gain is shown."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tuner.export.provenance import describe_gain
from tuner.records import Metric
from tuner.report.page import describe_verdict
from tuner.report.rows import describe_limit, side_rows
from tuner.report.summary import Comparison
from tuner.report.summary_json import gain_json, summary_json
from tuner.report.terminal import comparison_table, final_screen
from tuner.report.wording import LOWER_BOUND

OF_GOODPUT = make_summary(searches=6)
LIMITED = replace(
    OF_GOODPUT,
    metric=Metric.PER_CPU,
    gain=replace(OF_GOODPUT.gain, metric=Metric.PER_CPU),
    default=replace(
        OF_GOODPUT.default, goodput_rps=15_210.0, requests_per_cpu_s=31_200.0, is_lower_bound=True
    ),
    winner=replace(OF_GOODPUT.winner, goodput_rps=15_330.0, requests_per_cpu_s=37_800.0, is_lower_bound=True),
)
NAMED = "requests per CPU second of the server"


def show(shown):
    console = Console(record=True, width=80, force_terminal=False, color_system=None, file=StringIO())
    console.print(shown)
    return " ".join(console.export_text().split())


def test_the_last_screen_names_what_was_compared_with_both_figures_and_why():
    text = show(final_screen(LIMITED))

    assert f"nginx-static: {NAMED}: {LIMITED.gain.ratio:.2f}×" in text
    assert (
        f"Goodput was limited by the load generator, so {NAMED} are compared: default 31,200, winner 37,800. "
        "Requests per second: default 15,210, winner 15,330."
    ) in text
    assert LOWER_BOUND not in text


def test_without_a_winner_the_reason_is_told_all_the_same():
    undecided = replace(LIMITED, winner=None, gain=None)

    assert describe_limit(undecided).endswith(
        f"{NAMED} are compared: default 31,200. Requests per second: default 15,210."
    )
    assert describe_limit(replace(undecided, default=OF_GOODPUT.default)).endswith(f"{NAMED} are compared.")


@pytest.mark.parametrize(("is_lower_bound", "limit"), [(True, LOWER_BOUND), (False, "")])
def test_goodput_is_a_lower_bound_where_only_the_winner_met_the_limit(is_lower_bound, limit):
    winner = replace(OF_GOODPUT.winner, is_lower_bound=is_lower_bound)

    assert describe_limit(replace(OF_GOODPUT, winner=winner)) == limit
    assert NAMED not in show(final_screen(OF_GOODPUT))


def test_the_report_and_exports_name_it():
    assert describe_verdict(LIMITED).text.startswith("Requests per CPU second of the server with the winner")
    assert describe_verdict(OF_GOODPUT).text.startswith("Correct responses per second with the winner")
    assert describe_gain(LIMITED).endswith(f"{NAMED} relative to the default")


def test_scripts_get_the_metric_beside_the_study_the_gain_and_both_sides():
    told = summary_json(LIMITED)

    assert told["metric"] == told["gain"]["metric"] == "goodput_per_cpu"
    assert told["winner"]["requests_per_cpu_s"] == 37_800.0
    assert gain_json(OF_GOODPUT.gain, "")["metric"] == "goodput"


def test_the_reciprocal_of_what_is_minimized_is_named():
    gain = replace(OF_GOODPUT.gain, metric=Metric.LATENCY_P99)
    of_p99 = replace(OF_GOODPUT, metric=Metric.LATENCY_P99, gain=gain)

    assert describe_verdict(of_p99).text.startswith("Speed of the slowest 1 % (1 / p99) with the winner")
    assert summary_json(of_p99)["metric"] == "latency_p99_ms"


def test_a_comparison_names_it():
    comparison = Comparison(first=LIMITED.default, second=LIMITED.winner, gain=LIMITED.gain)

    assert f"6 pairs of default in {NAMED}: improved" in show(
        comparison_table(comparison, "default", "winner")
    )


def test_the_memory_of_both_sides_is_shown_where_it_was_measured():
    sides = {"default": 31.25, "winner": 2300.0}
    measured = replace(
        OF_GOODPUT,
        **{name: replace(getattr(OF_GOODPUT, name), memory_mib=mib) for name, mib in sides.items()},
    )

    assert "memory of the server: 31.2 MiB → 2.25 GiB" in show(final_screen(measured))
    assert ("memory of the server", "31.2 MiB", "2.25 GiB") in side_rows(measured)
    assert summary_json(measured)["winner"]["memory_mib"] == 2300.0
    unread = replace(measured, default=replace(measured.default, memory_mib=None))
    assert "memory of the server" not in show(final_screen(unread))
