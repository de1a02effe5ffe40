"""A sweep on the command line with a real server: measured, interrupted, resumed, read again."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.e2e.traces import eventually
from tests.testbed.processors import idle_processors_here

BUDGET = ("--minutes", "0.5", "--preset", "quick")
SWEEP = ("sweep", "apache.yaml", "ThreadsPerChild", "--values", "16,64", *BUDGET)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """One short sweep of Apache that was stopped in its first block, and then run to its end."""
    tuner = CommandLine(tmp_path_factory.mktemp("sweep"))
    with idle_processors_here() as through:
        tuner = CommandLine(tuner.folder, through=through)
        made = tuner.run("init", "apache", "-o", "apache.yaml")
        assert made.returncode == 0, made.stderr
        process = tuner.start(*SWEEP)
        eventually(lambda: list((tuner.folder / "apache.study/sweeps").glob("*.db")))
        time.sleep(5)
        process.send_signal(signal.SIGINT)
        stopped = process.communicate()[1]
        completed = tuner.run(*SWEEP, "-o", "sweep.html", "--json", timeout_s=120)
        again = tuner.run(*SWEEP, "--csv", "-o", "sweep.md", timeout_s=60)
    eventually(lambda: not tuner.processes())
    return tuner, process.returncode, stopped, completed, again


@pytest.mark.more
def test_ctrl_c_stops_a_sweep_and_says_how_it_resumes(swept):
    _, returncode, stopped, *_ = swept

    assert returncode == 130
    assert "Everything is in its earlier state again" in stopped
    assert "--values 16,64" in stopped


@pytest.mark.more
def test_the_sweep_resumes_and_ends_with_a_curve(swept):
    tuner, _, _, completed, _ = swept

    assert completed.returncode == 0, completed.stderr
    found = json.loads(completed.stdout)
    assert [each["value"] for each in found["values"]] == [16, 25, 64]
    assert found["baseline"] == 25
    assert all(each["low"] <= each["ratio"] <= each["high"] for each in found["values"])
    assert all(each["goodput_rps"] > 0 for each in found["values"])
    assert found["seconds"] <= 40
    assert found["advice"].startswith(("Set ThreadsPerChild to", "Keep ThreadsPerChild at 25"))
    for each in found["values"]:
        config = each["config"]
        assert config["MaxRequestWorkers"] % each["value"] == 0
        assert config["MaxRequestWorkers"] >= 150
    assert 'id="sweep"' in (tuner.folder / "sweep.html").read_text()


@pytest.mark.more
def test_the_same_command_again_shows_what_is_there(swept):
    tuner, *_, again = swept

    assert again.returncode == 0, again.stderr
    assert [line.split(",")[0] for line in again.stdout.splitlines()] == ["value", "16", "25", "64"]
    assert "| ThreadsPerChild | of 25 | requests/s |" in (tuner.folder / "sweep.md").read_text()


@pytest.mark.more
def test_a_sweep_leaves_no_process(swept):
    tuner, *_ = swept

    assert tuner.processes() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ThreadPerChild",), "ThreadsPerChild"),
        (("ThreadsPerChild", "--values", "0"), "0 is below its minimum"),
        (("MaxRequestWorkers",), "tuner derives it as"),
        (("CustomLog",), "`allow:` does not name semantic. Allow this parameter in"),
        (("ThreadsPerChild", "--minutes", "0.2"), "minutes are too few for"),
        (("ThreadsPerChild", "--at", "winner"), "has no"),
        (("ThreadsPerChild", "--values", "8", "--around", "default"), "Leave one of them out"),
    ],
)
def test_what_cannot_be_swept_is_refused(tmp_path: Path, arguments, said):
    tuner = CommandLine(tmp_path)
    tuner.call("init", "apache", "-o", "apache.yaml")

    refused = tuner.call("sweep", "apache.yaml", *arguments)

    assert refused.returncode == 2
    assert said in refused.stderr
    assert refused.stdout == ""
