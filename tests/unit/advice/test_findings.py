"""Rules and what was read become findings: only with evidence, the worst first, each with its place."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.advice.test_rules import RULE
from tuner.advice.findings import Advice, Finding, Level, SeenServer, find_place, judge, rank
from tuner.advice.log_lines import LogLine
from tuner.advice.rules import FOLDER, read_rules
from tuner.ports import Scalar
from tuner.report.advice import advice_json, advice_markdown, advice_text

SECOND = """\
  worse:
    limit: Something else
    harm: fails
    now:
      - log: 'it is full'
    next:
      - log: 'it is nearly full'
    causes: [connections]
    settings:
      somewhere:
        outside: a unit
        why: It helps.
    cost: Nothing.
    source: nginx.org
"""
FACTS = {"connections": 100, "worker_connections": 20, "workers": 2}
CONFIGURATION = b"# worker_connections 1;\nevents {\n worker_connections 20;\n}\n"
NOW = 1_000_000.0


def see(
    folder: Path,
    *log: tuple[float | None, str],
    facts: Mapping[str, Scalar] = FACTS,
    text: str = RULE + SECOND,
) -> SeenServer:
    path = folder / "small.yaml"
    path.write_text(text)
    return SeenServer(
        server="nginx", rules=read_rules(path), scope=facts, current={"worker_connections": 20}, kernel={},
        files={PurePosixPath("/etc/nginx/nginx.conf"): CONFIGURATION},
        log=[
            LogLine(text=line, source="/var/log/error.log", at_s=at_s, message=line) for at_s, line in log
        ],
        kernel_log=(), now_s=NOW, started_s=NOW - 7200, tuned={"worker_connections"},
    )  # fmt: skip


def found(seen: SeenServer) -> list[tuple[str, Level]]:
    return [(each.rule, each.level) for each in rank(judge(seen))]


def test_a_condition_that_holds_is_a_finding_with_value_place_and_proposal(tmp_path: Path):
    (finding,) = rank(judge(see(tmp_path)))

    assert (finding.rule, finding.level) == ("small.connections", Level.NOW)
    assert finding.limit == "Connections of a worker: 20"
    assert finding.evidence[0].text == "100 are open"
    (proposal,) = finding.proposals
    assert (proposal.current, proposal.value, proposal.place) == (20, 40, "/etc/nginx/nginx.conf:3")


@pytest.mark.parametrize("missing", ["connections", "workers"])
def test_nothing_is_found_where_a_fact_is_not_known(tmp_path: Path, missing: str):
    facts = {name: value for name, value in FACTS.items() if name != missing}

    assert found(see(tmp_path, facts=facts)) == []


@pytest.mark.parametrize(
    ("at_s", "line", "expected"),
    [
        (NOW - 60, "it is full", [("small.worse", Level.NOW)]),
        (NOW - 60, "it is nearly full", [("small.worse", Level.NEXT)]),
        (NOW - 5000, "it is full", [("small.worse", Level.NEXT)]),
        (None, "it is full", [("small.worse", Level.NEXT)]),
        (NOW - 9000, "it is full", []),
        (NOW - 60, "it is empty", []),
    ],
    ids=["recent", "recent and near", "older", "of an unknown time", "before the start", "another line"],
)
def test_a_log_line_proves_a_limit_now_when_it_is_recent(tmp_path: Path, at_s, line, expected):
    assert found(see(tmp_path, (at_s, line), facts={})) == expected


def test_what_bites_now_is_not_mixed_with_what_was_near_before(tmp_path: Path):
    (finding, *_) = rank(judge(see(tmp_path, (NOW - 60, "it is full"), (NOW - 60, "it is nearly full"))))

    assert [each.text for each in finding.evidence] == [
        "1 line in the last hour, the last 1 minute ago: “it is full”"
    ]


def test_a_study_measures_what_it_can_change_and_what_stands_for_a_setting_that_follows(tmp_path: Path):
    facts = {**FACTS, "busy_workers": 150, "idle_workers": 0, "MaxRequestWorkers": 150, "ThreadsPerChild": 25}
    scope = {**facts, "server": "apache", "ServerLimit": 16}
    seen = replace(see(tmp_path), rules=read_rules(FOLDER / "apache.yaml"), scope=scope, current={})

    (found,) = judge(replace(seen, tuned={"Processes"}))

    assert [(each.name, each.value, each.hint) for each in found.proposals] == [
        ("MaxRequestWorkers", 300, ("Processes", 12))
    ]
    assert [each.hint for one in judge(replace(seen, tuned=())) for each in one.proposals] == [None]


def test_a_cause_stands_before_what_follows_from_it(tmp_path: Path):
    assert [name for name, _ in found(see(tmp_path, (NOW - 1, "it is full")))] == [
        "small.worse",
        "small.connections",
    ]


def advice(findings: tuple[Finding, ...]) -> Advice:
    return Advice(host="web1", servers=(), findings=findings, unread=("nginx: its log",), look_s=1.0)


def test_a_hostile_log_line_is_text_in_every_form(tmp_path: Path):
    hostile = "it is full \x1b[2J<script>alert(1)</script> [x](javascript:y) `z` |"
    told = advice(rank(judge(see(tmp_path, (NOW - 1, hostile), facts={}))))

    assert "\x1b" not in advice_text(told) + advice_markdown(told) + str(advice_json(told))
    assert "<script>" not in advice_markdown(told).replace("\\<", "")
    assert "](javascript" not in advice_markdown(told)
    assert "1 line in the last hour, the last 1 s ago" in advice_text(told)
    assert "Not read:" in advice_text(told)


def test_json_says_whether_something_bites_and_that_nothing_was_measured(tmp_path: Path):
    told = advice_json(advice(rank(judge(see(tmp_path)))))

    assert told["bites"] is True
    assert told["findings"][0]["measured"] is False
    assert told["findings"][0]["measure"].startswith("tuner init nginx --from-advice")
    assert advice_json(advice(()))["bites"] is False


def test_the_place_of_a_setting_on_a_line_with_others_is_found_and_a_comment_is_none():
    text = "worker_processes 2; events { worker_connections 33; }\n# events { worker_connections 44; }\n"
    files = {PurePosixPath("/srv/own.conf"): f"{text};worker_connections = 55\n".encode()}

    assert find_place("worker_connections", files, ()) == "/srv/own.conf:1"


def test_connections_that_wait_in_the_accept_queue_are_not_counted_as_open():
    facts: dict[str, Scalar] = {"global_maxconn": 7, "connections": 15, "queue_waiting": 8}
    seen = SeenServer(
        server="haproxy", rules=read_rules(FOLDER / "haproxy.yaml"), scope=facts, current={}, kernel={},
        files={}, log=(), kernel_log=(), now_s=0.0, started_s=0.0,
    )  # fmt: skip

    (found,) = judge(seen)

    assert [each.text for each in found.evidence] == ["7 of 7 connections are accepted, and 8 more wait"]
