"""A study of several loads on the command line, with a real server: checked, run, shown."""

import json

import pytest

from tests.e2e.command_line import CommandLine
from tests.e2e.traces import eventually
from tests.testbed.processors import idle_processors_here

pytestmark = pytest.mark.more

STUDY = """\
study: several
servers: [nginx]
space: [nginx]
loads:
  - {content: tiny, weight: 3, connections: 20}
  - {content: html, connections: 10, generator: ab, keepalive: false, requests_total: 2000}
across_loads: worst
budget: {preset: quick}
"""


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    with idle_processors_here() as through:
        tuner = CommandLine(folder, through=through)
        tuner.write(text=STUDY)
        checked = tuner.run("check", "study.yaml", "--json")
        ran = tuner.run_in_peace("run", "study.yaml", "--minutes", "0.7", "--trials", "3")
        shown = tuner.run("show", "study.yaml", "--json")
        reported = tuner.run("report", "study.yaml", "-o", "report.html")
    eventually(lambda: not tuner.processes())
    return tuner, checked, ran, shown, reported


def test_a_check_tells_what_the_default_gives_under_each_load(several):
    _, checked, *_ = several

    assert checked.returncode == 0, checked.stderr
    assert set(json.loads(checked.stdout)["default"]["by_load"]) == {"tiny", "html"}


def test_a_run_measures_every_trial_under_each_load_to_a_verdict(several):
    _, _, ran, shown, _ = several

    assert ran.returncode in {0, 1}, ran.stderr
    assert "worst ratio of 2 loads" in ran.stdout
    found = json.loads(shown.stdout)
    assert [(each["name"], each["weight"]) for each in found["loads"]] == [("tiny", 0.75), ("html", 0.25)]
    assert all(each["default"]["goodput_rps"] > 0 for each in found["loads"])
    windows = [
        window
        for trial in found["trials"]
        if trial["role"] != "robustness"
        for window in trial["windows"]
        if window["valid"]
    ]
    assert windows
    assert all(set(window["by_load"]) == {"tiny", "html"} for window in windows)


def test_the_report_has_a_row_for_each_load(several):
    tuner, *_, reported = several

    assert reported.returncode == 0, reported.stderr
    page = (tuner.folder / "report.html").read_text()
    assert "Under each load" in page
    assert "The gain is the worst ratio of 2 loads" in page
