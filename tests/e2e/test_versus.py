"""Two real servers against each other on the command line: killed, resumed, read again."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.e2e.traces import eventually, sysctls
from tests.testbed.processors import idle_processors_here

VERSUS = ("versus", "nginx.yaml", "apache.yaml", "--presets", "--blocks", "3")
ONE_WORKER = "nginx, {presets: {one worker: {values: {worker_processes: 1}}}}"


@pytest.fixture(scope="module")
def raced(tmp_path_factory):
    """One short contest of nginx and Apache that was killed in its first block, and then run to its end."""
    folder = tmp_path_factory.mktemp("versus")
    before = sysctls()
    with idle_processors_here() as through:
        tuner = CommandLine(folder, through=through)
        tuner.write("nginx.yaml", name="nginx", space=ONE_WORKER, keepalive="false")
        tuner.write("apache.yaml", name="apache", server="apache", space="apache-event", keepalive="false")
        process = tuner.start(*VERSUS)
        eventually(lambda: list((folder / "nginx.study/contests").glob("*.db")))
        time.sleep(3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        eventually(lambda: not tuner.processes())
        after = sysctls()
        completed = tuner.run(*VERSUS, "-o", "versus.html", "--json")
        again = tuner.run(*VERSUS, "-o", "versus.md", environment={"COLUMNS": "80"})
    eventually(lambda: not tuner.processes())
    return tuner, (before, after), completed, again


@pytest.mark.more
def test_killed_in_the_middle_it_leaves_no_process_and_no_setting(raced):
    tuner, (before, after), *_ = raced

    assert after == before
    assert tuner.processes() == []


@pytest.mark.more
def test_the_same_command_resumes_and_ends_with_who_leads(raced):
    tuner, _, completed, _ = raced

    assert completed.returncode == 0, completed.stderr
    found = json.loads(completed.stdout)
    assert [each["label"] for each in found["entrants"]] == [
        "nginx default", "nginx one worker", "apache default",
    ]  # fmt: skip
    assert all(each["goodput_rps"] > 0 and each["trials"] >= 3 for each in found["entrants"])
    assert all(each["cpu_us_per_request"] > 0 for each in found["entrants"])
    assert len(found["pairs"]) == 6
    assert found["blocks"] == 3
    assert "table" in (tuner.folder / "versus.html").read_text()


@pytest.mark.more
def test_the_same_command_again_shows_what_is_there(raced):
    tuner, _, completed, again = raced

    assert again.returncode == 0, again.stderr
    assert json.loads(completed.stdout)["headline"] in " ".join(again.stdout.split())
    assert all(len(line) <= 80 for line in again.stdout.splitlines())
    assert (tuner.folder / "versus.md").read_text().startswith("**")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nginx.yaml",), "--presets"),
        (("nginx.yaml", "nginx.yaml"), "given twice"),
        (("nginx.yaml", "more.yaml"), "20 connections"),
        (("nginx.yaml", "none.yaml"), "the file does not exist"),
        (("nginx.yaml", "more.yaml", "--blocks", "2"), "Give at least 3"),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path: Path, arguments, said):
    tuner = CommandLine(tmp_path)
    tuner.write("nginx.yaml", name="nginx")
    tuner.write("more.yaml", name="more", connections=30)

    refused = tuner.call("versus", *arguments)

    assert refused.returncode == 2
    assert said in refused.stderr
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("default", "cached", "default"), "a configuration is named twice"),
        (("default", "cached", "cachd"), "Did you mean cached"),
        (("default", "cached", "article-2015", "--pairs", "2"), "Give at least 3"),
        (("default", "cached", "-o", "page.html"), "no HTML page for two configurations"),
    ],
)
def test_configurations_that_cannot_be_compared_are_refused(tmp_path: Path, arguments, said):
    tuner = CommandLine(tmp_path)
    tuner.write("nginx.yaml", name="nginx")

    refused = tuner.call("compare", "nginx.yaml", *arguments)

    assert refused.returncode == 2
    assert said in refused.stderr


def test_a_study_that_comes_with_tuner_is_listed_written_and_checked(tmp_path: Path):
    tuner = CommandLine(tmp_path)

    listed = json.loads(tuner.call("studies", "--json").stdout)
    written = tuner.call("init", "--study", "nginx-2015")
    checked = tuner.call("check", "nginx-2015.yaml")

    assert {"nginx-2015", "h2o-2015", "apache-2012"} <= {each["name"] for each in listed}
    assert written.stdout == "nginx-2015.yaml\n"
    assert checked.returncode == 0, checked.stderr
    assert tuner.call("init", "nginx", "--study", "nginx-2015").returncode == 2
    assert tuner.call("init").returncode == 2
