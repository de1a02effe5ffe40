"""A contest as people see it: the screen at any width, the page, Markdown, and what it claims."""

import csv
import io
import json
import re
from dataclasses import replace
from html import unescape
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.unit.simulation import TUNED, open_in_memory, space_of
from tests.unit.trials import trial
from tuner.ports import ConnectTime
from tuner.records import Failure, Metric, Role, State
from tuner.report.contest import gather_contest
from tuner.report.contest.page import draw_contest, render_contest
from tuner.report.contest.rows import contest_csv, contest_json, contest_markdown, contest_screen, draw_ratios
from tuner.report.contest.wording import list_claims, list_remarks, name_leader
from tuner.study.facts import CONTEST, METRIC, ContestPlan, Entrant
from tuner.study.objective import parse_constraint

SPACE = space_of(*TUNED)
CRASHED = {"state": State.FAILED, "failure": Failure(kind="crashed", reason="it crashed <b>\x1b[31m")}
FASTER = SPACE.complete({"open_file_cache": 1000})
RATES = {
    ("nginx", "default"): 1000,
    ("nginx", "tuned"): 2000,
    ("h2o", "default"): 1500,
    ("h2o", "tuned"): 1510,
}


class KeptTrials:
    """A storage that has these trials, and nothing else."""

    def __init__(self, plan, trials, metric):
        self.facts, self.kept, self.metric = {CONTEST: plan, METRIC: metric}, tuple(trials), metric

    def recall(self, fact):
        return self.facts.get(fact)

    def trials(self):
        return self.kept


def make_contest(
    rates, *, steps=False, crashed=(), notes=(), metric=Metric.GOODPUT, blocks=6, noise=0.003, **given
):
    """Make a contest of (study, name) → requests per second; those that crash give none."""
    plan = ContestPlan(
        entrants=tuple(
            Entrant(study=study, name=name, config=SPACE.default() if name == "default" else FASTER)
            for study, name in rates
        ),
        is_stepwise=steps, notes=notes,
    )  # fmt: skip
    trials = []
    for block in range(blocks):
        for index, (entrant, rate) in enumerate(zip(plan.entrants, rates.values(), strict=True)):
            noisy = rate * (1 + noise * ((7 * block + 3 * index) % 5 - 2))
            more = CRASHED if index in crashed else {}
            if more and block > 1:
                continue
            made = trial(
                len(trials), noisy, noisy, role=Role.CONTEST, arm=entrant.arm, block=block,
                config=entrant.config, **more,
            )  # fmt: skip
            windows = tuple(
                replace(window, counters={"server_cpu_s": 0.5}, metric=metric, **given)
                for window in made.windows
            )
            trials.append(replace(made, windows=() if more else windows))
    constraint = parse_constraint("failure_rate <= default", "here")
    load = SimpleNamespace(describe=lambda: "wrk, /index.html, 100 connections, keep-alive, http/1.1")
    settings = {study: SimpleNamespace(constraints=(constraint,), load=load) for study in plan.studies}
    spaces = dict.fromkeys(plan.studies, SPACE)
    return gather_contest(settings, spaces, KeptTrials(plan, trials, metric))


def shown(contest, width=80):
    text = StringIO()
    Console(file=text, width=width, color_system=None).print(contest_screen(contest))
    return text.getvalue()


def test_the_leader_is_named_with_what_it_is_ahead_of():
    assert re.fullmatch(
        r"nginx tuned leads: 1\.3\d× \[1\.3\d, 1\.3\d\] of h2o tuned", name_leader(make_contest(RATES))
    )


def test_what_is_not_told_apart_is_named_together():
    contest = make_contest({("nginx", "default"): 1000, ("h2o", "default"): 1001})

    assert name_leader(contest) == "No single leader: nginx default and h2o default are not told apart"
    assert list_claims(contest)[0].startswith("h2o default and nginx default are not told apart: 1.00×")


def test_the_claims_are_of_the_winners_of_what_tuning_gave_and_of_the_defaults():
    claims = list_claims(make_contest(RATES, noise=0.0001))

    assert [re.sub(r" is .*? of ", " > ", re.sub(r": .*", "", claim)) for claim in claims] == [
        "nginx tuned > h2o tuned",
        "nginx tuned > nginx default",
        "h2o tuned > h2o default",
        "h2o default > nginx default",
    ]


def test_steps_are_claimed_against_the_first_and_against_the_one_before():
    rates = {
        ("nginx", name): rate for name, rate in (("default", 1000), ("a", 1300), ("b", 1200), ("c", 1400))
    }

    claims = list_claims(make_contest(rates, steps=True, noise=0.0001))

    pairs = {tuple(re.split(r" is .*? of ", claim)) for claim in claims}
    assert pairs == {
        ("a", "default"), ("b", "default"), ("c", "default"), ("a", "b"), ("c", "b"),
    }  # fmt: skip


def test_the_best_step_stands_for_its_study():
    rates = {
        ("nginx", "default"): 1000, ("nginx", "a"): 1300, ("nginx", "b"): 1200, ("h2o", "default"): 1100,
        ("h2o", "a"): 900,
    }  # fmt: skip

    assert name_leader(make_contest(rates, steps=True, noise=0.0001)).startswith("nginx a leads: 1.18× [1.18")


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_the_figure_keeps_to_any_width(width):
    long = {("nginx", "default"): 1000, ("nginx", "a preset with a name that has no end at all, ever"): 1100}

    rows = draw_ratios(make_contest(long)).lines(width)

    assert len(rows) == 3
    assert all(cell_len(row.plain) <= width for row in rows)


def test_the_screen_shows_intervals_costs_failures_and_what_they_allow_for():
    screen = shown(make_contest(RATES, notes=("h2o: tuned in 5 min 00 s, 60 trials",)))

    assert all(len(line) <= 80 for line in screen.splitlines())
    for said in ("requests/s", "p99", "CPU/request", "failures", " µs", "h2o: tuned in 5 min", "◆"):
        assert said in screen
    assert "All 6 intervals together have 95 % confidence (Bonferroni)" in " ".join(screen.split())


def test_an_entrant_that_fails_is_shown_with_the_reason_and_never_leads():
    contest = make_contest({**RATES, ("h2o", "worse"): 9000}, steps=True, crashed=(4,))

    assert contest.faults == {4: "it crashed <b>\x1b[31m"}
    assert contest.leaders == (1,)
    screen = shown(contest, width=120)
    assert "no measurement" in screen
    assert "h2o worse is not named best: it crashed <b> [31m" in screen
    assert "0, 2 failed" in screen
    assert not any("worse" in claim for claim in list_claims(contest))


def test_foreign_text_stays_text_in_page_figure_and_markdown():
    contest = make_contest({**RATES, ("h2o", "<i>x|y`"): 9000}, steps=True, crashed=(4,))

    page, markdown = render_contest(contest), contest_markdown(contest)

    assert "<i>x" not in page
    assert "it crashed &lt;b&gt;" in page
    assert "<i>x" not in json.dumps(draw_contest(contest))
    assert "\\<i\\>x\\|y\\`" in markdown


def test_what_is_not_told_apart_from_the_default_bears_no_mark_of_a_winner():
    contest = make_contest({("nginx", "default"): 1000, ("nginx", "same"): 1001, ("nginx", "slow"): 800})
    faster = make_contest({("nginx", "default"): 1000, ("nginx", "fast"): 2000, ("nginx", "also"): 2001})

    assert contest.leaders == (0, 1)
    assert [trace["marker"]["symbol"] for trace in draw_contest(contest)["data"]] == [
        "diamond", "circle", "circle",
    ]  # fmt: skip
    (same,) = [line for line in shown(contest).splitlines() if line.startswith("same") and "●" in line]
    assert "◆" not in same
    assert faster.marked == faster.leaders == (1, 2)


def test_the_page_has_the_figure_every_pair_and_what_was_changed():
    page = render_contest(make_contest(RATES))
    text = unescape(re.sub(r"<[^>]+>", "", page))

    assert page == render_contest(make_contest(RATES))
    symbols = [trace["marker"]["symbol"] for trace in draw_contest(make_contest(RATES))["data"]]
    assert sorted(symbols) == ["circle", "circle", "circle", "diamond"]
    assert "open_file_cache 1000" in text
    assert len(re.findall(r"\d\.\d\d× \[\d\.\d\d, \d\.\d\d\]", text)) >= 12
    assert "http" not in re.sub(r"http/1\.1|http-equiv", "", page)


def test_connect_times_are_shown_where_the_generator_knows_them():
    timed = make_contest(RATES, connect_time=ConnectTime(min_ms=0.1, mean_ms=0.4, max_ms=21.0))

    assert "0.100 / 0.400 / 21.0 ms" in unescape(render_contest(timed))
    assert contest_json(timed)["entrants"][0]["connect_ms"] == {
        "min": 0.1,
        "mean": pytest.approx(0.4),
        "max": 21.0,
    }
    assert "connecting" not in render_contest(make_contest(RATES))
    assert contest_json(make_contest(RATES))["entrants"][0]["connect_ms"] is None


def test_markdown_has_a_row_for_each_entrant_and_a_line_for_each_claim():
    contest = make_contest(RATES)

    lines = contest_markdown(contest).splitlines()

    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 4
    assert len({line.count("|") for line in table}) == 1
    assert sum(line.startswith("- ") for line in lines) == len(list_claims(contest))


def test_csv_has_a_line_for_each_entrant():
    contest = make_contest(RATES, crashed=(2,))

    rows = list(csv.DictReader(io.StringIO(contest_csv(contest))))

    assert [row["configuration"] for row in rows] == list(contest.labels)
    assert rows[0]["ratio"] == "1.0"
    assert rows[2]["fault"]
    assert (rows[2]["ratio"], rows[2]["goodput_rps"]) == ("", "")
    assert [row["leads"] == "True" for row in rows] == [index in contest.leaders for index in range(4)]


def test_the_json_has_every_pair_both_ways_round():
    found = json.loads(json.dumps(contest_json(make_contest(RATES))))

    assert len(found["pairs"]) == 12
    assert all(each["low"] <= each["ratio"] <= each["high"] for each in found["pairs"])
    assert found["correction"] == "Bonferroni over 6 pairs"
    assert found["leaders"] == ["nginx tuned"]
    assert [each["label"] for each in found["entrants"]] == [
        "nginx default", "nginx tuned", "h2o default", "h2o tuned",
    ]  # fmt: skip
    assert found["entrants"][1]["changes"]["open_file_cache"] == {"default": 0, "value": 1000}
    assert found["entrants"][0]["cpu_us_per_request"] == pytest.approx(500, rel=0.02)


def test_a_contest_without_a_measurement_says_so():
    contest = make_contest(RATES, blocks=0)

    assert name_leader(contest).startswith("No leader can be named")
    assert "no measurement" in shown(contest)
    assert render_contest(contest)


def test_requests_per_cpu_second_are_named_where_they_are_compared():
    contest = make_contest(RATES, metric=Metric.PER_CPU, generator_cpu=0.95)

    assert "Requests per CPU second of the server" in " ".join(shown(contest).split())
    assert not any("lower bounds" in remark for remark in list_remarks(contest))


def test_a_plan_comes_back_from_the_storage_as_it_was():
    from tests.unit.simulation import SimulatedClock

    plan = ContestPlan(
        entrants=(Entrant(study="nginx", name="default", config={"a": 1, "b": True}, notes=("said",)),),
        is_stepwise=True, notes=("one", "two"),
    )  # fmt: skip
    storage = open_in_memory(SimulatedClock())
    storage.remember(CONTEST, plan)

    assert storage.recall(CONTEST) == plan
