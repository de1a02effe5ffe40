"""What is shown of a winner that is to hold on several hosts."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.unit.campaign.test_across_hosts import NAMES, PLAN, hosts
from tests.unit.simulated_hosts import play, write_targets
from tests.unit.statistics.test_interaction import NAMES as WEBS
from tests.unit.statistics.test_interaction import SPACE, measured
from tuner.records.blend import AcrossHosts, Hosts
from tuner.report.page import render_report
from tuner.report.reasons import explain_gain, explain_spoiled
from tuner.report.rows import host_rows
from tuner.report.summary import summarize
from tuner.report.summary_json import summary_json
from tuner.report.terminal import final_screen
from tuner.statistics.ranking import rank


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    played = play(write_targets(tmp_path_factory.mktemp("hosts"), NAMES), hosts(), plan=PLAN)
    assert played.verdict == "confirmed", played.failures
    space = played.experiment.setup.space
    return summarize(
        played.settings, space, played.storage, running=False, version="test", with_explanation=False
    )


def printed(renderable):
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def test_each_host_has_a_row_and_the_worst_is_marked(summary):
    rows = host_rows(summary)
    worst = min(summary.by_host, key=lambda each: each.gain.ratio)

    assert [row[0].removesuffix(" (worst)") for row in rows] == [*NAMES]
    assert [row[0] for row in rows if row[0].endswith("(worst)")] == [f"{worst.name} (worst)"]
    assert {row[-1] for row in rows} == {"improved"}
    assert summary.gain.ratio == worst.gain.ratio


def test_the_screen_the_page_and_the_json_show_every_host(summary):
    screen, page, data = printed(final_screen(summary)), render_report(summary), summary_json(summary)

    for name in NAMES:
        assert name in screen
        assert name in page
    assert "The gain of the study is the worst ratio of 3 hosts." in screen
    assert [each["name"] for each in data["hosts"]] == [*NAMES]
    assert sum(each["worst"] for each in data["hosts"]) == 1
    assert data["across_hosts"] == "worst ratio of 3 hosts"
    assert data["gain"]["by_host"].keys() == set(NAMES)


def test_a_host_that_spoils_a_gain_is_named(summary):
    by_host = dict(summary.gain.by_host)
    by_host["ssh://c"] = replace(by_host["ssh://c"], ratio=0.9, low=0.85, high=0.95, verdict="worse")
    spoiled = replace(by_host["ssh://c"], by_host=by_host)

    said = explain_gain(spoiled)
    assert "It gains on 2 of 3 hosts" in said
    assert "but not on ssh://c 0.90× [0.85, 0.95], worse." in said
    assert explain_gain(summary.gain) == ""


def test_a_host_that_spoils_what_gains_on_the_others_is_named_where_nothing_was_confirmed():
    hosts = Hosts(names=WEBS, across=AcrossHosts.WORST)
    said = explain_spoiled(rank(SPACE, measured(0.35), (), hosts), hosts)

    assert "or more on each host but web3, where it gives 0." in said
    assert explain_spoiled(rank(SPACE, measured(), (), hosts), hosts) == ""
