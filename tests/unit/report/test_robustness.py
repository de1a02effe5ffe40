"""How the screen, the page and the JSON tell what candidates gave under check loads."""

import math
import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.unit.simulated_study import make_summary
from tuner.export.provenance import describe_origin
from tuner.records import CheckLoad
from tuner.report.page import render_report
from tuner.report.rows import robustness_rows, side_rows
from tuner.report.summary import Found, as_candidate
from tuner.report.summary_json import summary_json
from tuner.report.terminal import final_screen
from tuner.report.wording import say_robustness
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.confirmation.robustness import Checked, Robustness, Side
from tuner.study.facts import Rejection

SUMMARY = make_summary(searches=6)
FEW = CheckLoad(name="25 connections", changes="connections", connections=25, keepalive=True)
MANY = CheckLoad(name="400 connections", changes="connections", connections=400, keepalive=True)
CLOSE = CheckLoad(name="Connection: close", changes="keepalive", connections=100, keepalive=False)
SLOW = CheckLoad(name="60 slow clients", changes="clients", connections=100, keepalive=True, slow_clients=60)


def side(goodput_rps, failed=0):
    return Side(goodput_rps=goodput_rps, failed=failed, asked=10_000)


def checked(check_load, candidate=8900.0, *, spread=0.2, finding="holds", failed=0):
    ratio = candidate / 9100
    return Checked(
        check_load=check_load, default=side(9100.0), candidate=side(candidate, failed), ratio=ratio,
        low=ratio / (1 + spread), high=ratio * (1 + spread), finding=finding,
    )  # fmt: skip


def found(*all_checked, left_out=None, failure=None, config=None):
    return Robustness(
        config=SUMMARY.winner.config if config is None else config, checked=all_checked,
        left_out=left_out or {}, pairs=2, failure=failure,
    )  # fmt: skip


EVERYWHERE = found(checked(FEW), checked(MANY), checked(CLOSE), checked(SLOW))


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (
            EVERYWHERE,
            (
                "holds from 25 to 400 connections and with Connection: close; with 60 slow clients: "
                "default 9,100, winner 8,900 requests/s"
            ),
        ),
        (found(checked(MANY)), "holds with 400 connections"),
        (
            found(checked(FEW), checked(MANY, 4550, finding="loses")),
            (
                "loses with 400 connections: default 9,100, winner 4,550 requests/s (0.50× [0.42, 0.60]); "
                "holds with 25 connections"
            ),
        ),
        (
            found(checked(MANY, failed=200, finding="fails")),
            (
                "fails with 400 connections: default 0 %, winner 2 % of requests; default 9,100, "
                "winner 8,900 requests/s"
            ),
        ),
        (
            found(checked(MANY, 8000, finding="undecided")),
            "undecided with 400 connections: default 9,100, winner 8,000 requests/s (0.88× [0.73, 1.05])",
        ),
        (
            found(checked(MANY, spread=0.01, finding="slower")),
            ("slower with 400 connections: default 9,100, winner 8,900 requests/s (0.98× [0.97, 0.99])"),
        ),
        (
            found(checked(FEW), checked(MANY, failed=50, finding="fails more")),
            (
                "fails more with 400 connections: default 0 %, winner 0.5 % of requests; default 9,100, "
                "winner 8,900 requests/s; holds with 25 connections"
            ),
        ),
        (
            found(checked(MANY), left_out={"Connection: close": "h2load cannot send this load"}),
            "holds with 400 connections; not tried: Connection: close (h2load cannot send this load)",
        ),
        (found(failure="nginx: it crashed"), "does not run under the check loads: nginx: it crashed"),
        (found(), ""),
    ],
)
def test_one_line_says_what_is_not_borne_then_what_holds(told, line):
    assert say_robustness(told) == line


@pytest.mark.parametrize(
    ("default_s", "winner_s", "said"),
    [
        (0.0, 2.0, ", but when slow clients come, winner serves less than half of that for 2 s"),
        (
            1.0,
            2.0,
            ", but when slow clients come, winner serves less than half of that for 2 s, the default for 1 s",
        ),
        (2.001, 2.003, ""),
        (2.0, 0.0, ""),
    ],
)
def test_a_winner_that_makes_room_for_slow_clients_more_slowly_is_called_so(default_s, winner_s, said):
    slow = checked(SLOW)
    slower = replace(
        slow, default=replace(slow.default, settling_s=default_s),
        candidate=replace(slow.candidate, settling_s=winner_s),
    )  # fmt: skip

    line = "with 60 slow clients: default 9,100, winner 8,900 requests/s"
    assert say_robustness(found(slower)) == line + said
    assert say_robustness(found(replace(slower, finding="undecided"))).endswith(f"]){said}"), "undecided, too"


def show(summary):
    console = Console(record=True, width=80, force_terminal=False, color_system=None, file=StringIO())
    console.print(final_screen(summary))
    return console.export_text()


def test_the_last_screen_says_where_the_winner_holds_and_what_was_rejected():
    other = found(checked(MANY, 4550, finding="loses"), config={"sendfile": False})

    text = " ".join(show(replace(SUMMARY, robustness=(other, EVERYWHERE))).split())

    assert "rejected loses with 400 connections: default 9,100, candidate 4,550" in text
    assert "robustness holds from 25 to 400 connections and with Connection: close;" in text


def test_without_check_loads_the_screen_is_as_before():
    assert "robustness" not in show(SUMMARY)
    assert "robustness" not in show(replace(SUMMARY, robustness=(found(),)))


def test_scripts_get_every_check_load_with_both_sides():
    (told,) = summary_json(replace(SUMMARY, robustness=(EVERYWHERE,)))["robustness"]

    assert (told["winner"], told["verdict"], told["text"]) == (True, "holds", say_robustness(EVERYWHERE))
    assert told["check_loads"][1] == {
        "name": "400 connections", "connections": 400, "keepalive": True, "slow_clients": 0,
        "verdict": "holds",
        "default": {"goodput_rps": 9100.0, "failure_rate": 0.0, "settling_s": 0.0},
        "candidate": {"goodput_rps": 8900.0, "failure_rate": 0.0, "settling_s": 0.0},
        "ratio": pytest.approx(0.978, abs=0.001), "low": pytest.approx(0.815, abs=0.001),
        "high": pytest.approx(1.174, abs=0.001),
    }  # fmt: skip


def test_the_page_has_a_table_of_them_only_where_there_are_some():
    title = "Robustness checks</h2>"

    assert title in render_report(replace(SUMMARY, robustness=(EVERYWHERE,)))
    assert title not in render_report(SUMMARY)


def test_the_table_of_the_report_has_a_row_for_each_check_load_and_for_what_is_left_out():
    told = replace(EVERYWHERE, left_out={"keep-alive": "ab cannot send this load"})

    rows = robustness_rows(replace(SUMMARY, robustness=(told,)))

    assert rows[1] == (
        "winner", "400 connections", "9,100", "8,900", "0.98× [0.82, 1.17]", "0 % → 0 %", "holds",
    )  # fmt: skip
    assert rows[-1] == ("winner", "keep-alive", "–", "–", "–", "–", "ab cannot send this load")


def test_the_table_of_the_report_says_undecided_where_the_screen_does():
    told = found(checked(MANY, 8000, finding="undecided"))

    (row,) = robustness_rows(replace(SUMMARY, robustness=(told,)))

    assert row[-1] == "undecided"
    assert say_robustness(told).startswith("undecided with 400 connections")


# A finished study whose only candidate was rejected

REASON = (
    "not confirmed: with 400 connections the default serves 9,100 requests/s and fails 0 %, the candidate "
    "serves 10 requests/s and fails 90 %"
)
NOT_SHIPPED = replace(
    SUMMARY, winner=None, gain=None, stop_reason=REASON,
    found=Found(
        config=SUMMARY.winner.config, speedup=Speedup(log_ratio=math.log(1.41), variance=0.002), reason=REASON
    ),
)  # fmt: skip


def test_a_study_that_found_something_never_says_that_nothing_beat_the_default():
    screen, page = " ".join(show(NOT_SHIPPED).split()), render_report(NOT_SHIPPED)

    assert "found 1.41× [1.29, 1.54], an estimate, not shipped: with 400 connections the default" in screen
    assert all(name in screen for name in SUMMARY.changes)
    assert "Rejected: 1.41× [1.29, 1.54], an estimate" in page
    assert "othing beat the default" not in screen + page


def test_the_page_of_a_rejected_candidate_has_its_failures_beside_the_default():
    failing = found(checked(FEW), checked(MANY, 10, finding="fails", failed=9000))
    shown = replace(NOT_SHIPPED, robustness=(failing,))
    cells = re.sub(r"<[^>]+>", " ", render_report(shown))

    assert "Keep the default. With 400 connections the default serves 9,100 requests/s" in cells
    assert re.search(r"failed with 400 connections\s+0 %\s+90 %", cells)
    assert "failed with 25 connections" not in cells
    assert "What the candidate changes" in cells
    assert "candidate 1" not in cells
    assert "does it help?" not in cells
    assert "helps" not in cells.split("Conclusions")[0]


def test_the_screen_has_the_candidate_beside_the_default_as_the_page_has():
    rows = [line.split() for line in show(NOT_SHIPPED).splitlines()]
    page = side_rows(as_candidate(NOT_SHIPPED))

    assert [row[1] for row in rows if row[:1] == ["candidate"]] == [page[0][2]]


def test_a_short_screen_of_what_is_not_proven_says_what_was_rejected_before():
    gain = replace(SUMMARY.gain, verdict="no worse")
    rejection = Rejection(config=SUMMARY.winner.config, reason="not confirmed: the winner breaks a <= 1")
    other = SUMMARY.space.complete({"aio": "threads"})
    unproven = replace(
        SUMMARY, gain=gain, rejections=(replace(rejection, config=other), rejection),
        robustness=(found(checked(MANY, 8000, finding="undecided")),),
    )  # fmt: skip
    console = Console(width=200, file=StringIO())
    console.print(final_screen(unproven, is_short=True))
    screen = console.file.getvalue()

    assert "rejected    aio threads: the candidate breaks a <= 1" in screen
    assert screen.count("rejected") == 1
    assert "candidate 8,000 requests/s" in screen
    assert "winner" not in screen
    assert "winner" not in summary_json(unproven)["robustness"][0]["text"]


def test_scripts_get_what_was_found_with_its_reason():
    told = summary_json(NOT_SHIPPED)

    assert (told["winner"], told["verdict"]) == (None, "rejected")
    assert told["found"]["reason"] == REASON
    assert told["found"]["changes"].keys() == SUMMARY.changes.keys()
    assert summary_json(SUMMARY)["found"] is None


def test_what_was_found_is_exported_as_a_candidate_and_marked_so():
    marked = describe_origin(as_candidate(NOT_SHIPPED))

    assert (
        "CANDIDATE, NOT A WINNER: 1.41× [1.29, 1.54] by estimate, not shipped: with 400 connections the "
        "default serves 9,100 requests/s and fails 0 %, the candidate serves 10 requests/s and fails 90 %"
    ) in marked
    assert not any("CANDIDATE" in line for line in describe_origin(SUMMARY))
