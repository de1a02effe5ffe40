"""The main job through the command line, against the real servers, short."""

import json
import math
from dataclasses import replace

import pytest

from tests.testbed.processors import idle_processors_here

pytestmark = pytest.mark.alone


def test_show_prints_what_the_contract_promises(finished):
    tuner, study, _ = finished

    shown = json.loads(tuner.run("show", study, "--json").stdout)

    assert shown["state"] == "finished"
    assert shown["fingerprint"]["servers"]["nginx"]
    assert shown["default"]["goodput_rps"] > 0
    assert {"config", "changes", "goodput_rps", "latency_p99_ms"} <= set(shown["winner"])
    assert {"ratio", "low", "high", "pairs", "verdict"} <= set(shown["gain"])
    assert shown["gain"]["low"] <= shown["gain"]["ratio"] <= shown["gain"]["high"]
    assert {"total_s", "load_s", "deploy_s", "suggest_s"} <= set(shown["timing"])
    roles = {trial["role"] for trial in shown["trials"]}
    assert {"baseline", "search", "confirm"} <= roles
    measured = [trial for trial in shown["trials"] if trial["state"] == "complete"]
    assert all(window["goodput_rps"] > 0 for trial in measured for window in trial["windows"])
    assert {"parameter", "effect", "low", "high", "kept"} <= set(shown["sensitivity"][0])


def test_the_gain_can_be_recomputed_from_the_windows_that_are_shown(finished):
    tuner, study, _ = finished
    shown = json.loads(tuner.run("show", study, "--json").stdout)
    pairs = {}
    for trial in shown["trials"]:
        if trial["role"] == "confirm" and trial["state"] == "complete":
            logs = sorted(math.log(window["compared"]) for window in trial["windows"] if window["valid"])
            middle = len(logs) // 2
            median = logs[middle] if len(logs) % 2 else (logs[middle - 1] + logs[middle]) / 2
            mean = sum(logs) / len(logs) if len(logs) < 5 else median
            pairs.setdefault(trial["block"], {})[trial["arm"]] = mean
    ratios = [pair["winner"] - pair["default"] for pair in pairs.values() if len(pair) == 2]

    assert len(ratios) == shown["gain"]["pairs"]
    assert math.exp(sum(ratios) / len(ratios)) == pytest.approx(shown["gain"]["ratio"])


def test_the_final_screen_says_what_was_found_and_where_everything_is(finished):
    _, _, completed = finished

    assert "pairs of winner against default" in completed.stdout
    assert "default" in completed.stdout
    assert "winner" in completed.stdout
    assert "report.html" in completed.stdout


def test_a_second_run_says_that_the_study_is_finished(finished):
    tuner, study, first = finished

    second = tuner.run("run", study)

    assert second.returncode == first.returncode
    assert "finished" in second.stderr


def test_report_and_explanation_are_real(finished):
    tuner, study, _ = finished

    page = tuner.run("report", study, "-o", "page.html", "--json")
    explained = replace(tuner, variables={"COLUMNS": "80"}).run("explain", study)

    assert json.loads(page.stdout) == {"file": "page.html"}
    assert b'id="history"' in (tuner.folder / "page.html").read_bytes()
    shown = json.loads(tuner.run("show", study, "--json").stdout)
    told = shown["explanation"]
    assert {each["parameter"] for each in shown["sensitivity"]} >= {"open_file_cache", "net.core.somaxconn"}
    assert math.prod(each["effect"]["ratio"] for each in told["settings"]) == pytest.approx(
        told["gain"]["ratio"]
    )
    assert all(each["parameter"] in explained.stdout for each in [*told["settings"], *told["others"]])
    assert max(map(len, explained.stdout.splitlines())) <= 80
    assert json.loads(tuner.run("explain", study, "--json").stdout) == told


def test_one_parameter_is_looked_into(finished):
    tuner, study, _ = finished

    told = tuner.run("explain", study, "--parameter", "open_file_cache")
    unknown = tuner.run("explain", study, "--parameter", "open_file_cash")

    assert "at the default" in told.stdout
    assert unknown.returncode != 0
    assert "open_file_cache" in unknown.stderr


def test_the_winner_is_exported_with_its_undo(finished):
    tuner, study, _ = finished

    exported = tuner.run("export", study, "--format", "json", "-o", "out", "--json")

    assert exported.returncode == 0, exported.stderr
    told = json.loads(exported.stdout)
    assert all(line in exported.stderr for line in told["warnings"])
    written = told["files"]
    assert any("undo" in name for name in written)
    assert all((tuner.folder / name).is_file() for name in written)


def test_a_comparison_prints_the_same_gain_object(finished):
    tuner, study, _ = finished
    hand = tuner.folder / "hand.yaml"
    hand.write_text("sendfile: off\nopen_file_cache: 1000\nnet.core.somaxconn: 8192\n")

    with idle_processors_here() as through:
        compared = tuner.run(
            "compare", study, "default", hand, "--pairs", "2", "--json", timeout_s=300, through=through
        )

    assert compared.returncode == 0, compared.stderr
    assert json.loads(compared.stdout)["pairs"] == 2


def test_check_says_what_will_run_and_what_will_be_written(finished):
    tuner, study, _ = finished

    checked, details = tuner.run("check", study), tuner.run("check", study, "-v")

    assert checked.returncode == 0, checked.stderr
    for word in ("nginx 1.", "wrk", "study.study/ only", "ready"):
        assert word in checked.stdout
    assert "co-located" in details.stdout


def test_nginx_and_the_kernel_are_tuned_as_one_space(finished):
    tuner, study, _ = finished

    shown = json.loads(tuner.run("show", study, "--json").stdout)

    assert set(shown["fingerprint"]["servers"]) == {"nginx", "sysctl"}
    for trial in shown["trials"]:
        assert {"sendfile", "open_file_cache", "net.core.somaxconn"} <= set(trial["config"])
