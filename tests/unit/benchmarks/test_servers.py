"""The benchmark of all servers: its rows, what it keeps, its table."""

import json
from dataclasses import asdict, replace

import pytest

from benchmarks.servers.rows import ROWS, Row, choose_rows
from benchmarks.servers.run import Result, nothing, read_summary, run_row
from benchmarks.servers.table import write_table
from tuner.plugins import AdapterKind, adapter_names
from tuner.study import load_study

ROW = Row(name="h2o", title="h2o", server="h2o")
IMPROVED = Result(
    row="h2o", title="h2o", verdict="improved", reason="",
    gain={"ratio": 1.254, "low": 1.201, "high": 1.309, "pairs": 5}, metric="goodput",
    failures={"default": [0, 51234], "winner": [2, 64321]}, lines={"num-threads": [2, 1]}, seconds=291.4,
    servers={"h2o": "2.2.5"}, machine="a CPU, 2 CPUs",
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_names_a_server_that_there_is_or_has_a_study_that_can_be_read(row):
    if row.server:
        assert row.server in adapter_names(AdapterKind.SERVER)
    else:
        assert load_study(row.study).name == row.name


def test_rows_are_chosen_by_name_in_the_order_of_the_table():
    assert [row.name for row in choose_rows(["h2o", "apache-prefork"])] == ["apache-prefork", "h2o"]
    assert choose_rows([]) == ROWS


def test_a_row_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match=r"no row iis\. Take of apache-event"):
        choose_rows(["h2o", "iis"])


def test_what_has_a_verdict_is_not_run_again(tmp_path):
    (tmp_path / "h2o.json").write_text(json.dumps(asdict(IMPROVED)))

    assert run_row(ROW, tmp_path) == IMPROVED
    assert [path.name for path in tmp_path.iterdir()] == ["h2o.json"]


def test_a_row_whose_study_cannot_be_written_says_why(tmp_path):
    found = run_row(replace(ROW, server="no-such-server"), tmp_path)

    assert found.verdict == ""
    assert "no-such-server" in found.reason


def test_results_are_forgotten_when_they_are_wanted_again(tmp_path):
    (tmp_path / "h2o.json").write_text(json.dumps(asdict(IMPROVED)))
    (tmp_path / "h2o.study").mkdir()

    found = run_row(replace(ROW, server="no-such-server"), tmp_path, again=True)

    assert found.verdict == ""
    assert list(tmp_path.iterdir()) == []


def test_the_table_has_gain_failures_lines_seconds_and_the_reason():
    not_proven = replace(IMPROVED, title="nginx", verdict="not proven", reason="Too few pairs.", lines={})
    missing = nothing(Row(name="caddy", title="Caddy"), "a|b")

    written = write_table([IMPROVED, not_proven, missing]).splitlines()

    assert written[2] == (
        "| h2o | improved | 1.25× [1.20, 1.31] | 5 | 0 of 51234 → 2 of 64321 | 1 | 291 |  |"
    )
    assert written[3].endswith("| – | 291 | Too few pairs. |")
    assert written[4] == r"| Caddy | not measured | – | – | – | – | 0 | a\|b |"
    assert "- h2o: num-threads 2 → 1" in written
    assert written[-1] == "h2o 2.2.5"


def test_a_study_that_is_not_finished_has_no_verdict():
    arm = {"failures": 0, "requests": 10}
    summary = {
        "state": "interrupted", "verdict": None, "reason": None, "gain": None, "metric": "goodput",
        "default": arm, "winner": None,
        "fingerprint": {"cpu": "c", "cores": 2, "memory_mib": 64, "kernel": "6", "servers": {}},
    }  # fmt: skip

    found = read_summary(ROW, summary, 3.0)

    assert (found.verdict, found.reason) == ("", "the study is interrupted")
    assert read_summary(ROW, summary | {"state": "finished"}, 3.0).verdict == "not proven"
