"""A load curve on the command line with a real server: measured, shown, listed, and read again."""

import json
import re
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.e2e.traces import eventually
from tests.testbed.processors import idle_processors_here
from tuner.report.markup import SCRIPT_TAG

ROOMY = "worker_connections: 4096\nlisten_backlog: 4096\n"
CURVE = ("curve", "study.yaml", "default", "roomy.yaml", "--connections", "300,3000", "--minutes", "1")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """One short curve of nginx: its own settings, and room for more connections."""
    tuner = CommandLine(tmp_path_factory.mktemp("curve"))
    with idle_processors_here() as through:
        tuner = CommandLine(tuner.folder, variables={"COLUMNS": "80"}, through=through)
        tuner.write(connections=50)
        (tuner.folder / "roomy.yaml").write_text(ROOMY)
        completed = tuner.run(*CURVE, "-o", "curve.html", "--json", timeout_s=180)
        again = tuner.run(*CURVE, timeout_s=60)
    eventually(lambda: not tuner.processes())
    return tuner, completed, again


@pytest.mark.more
def test_where_the_default_fails_and_where_more_room_bears_the_load(drawn):
    _, completed, _ = drawn

    assert completed.returncode == 0, completed.stderr
    found = json.loads(completed.stdout)
    default, roomy = found["configurations"]
    assert (default["bears_up_to"], default["fails_from"]) == (300, 3000)
    assert (roomy["bears_up_to"], roomy["fails_from"]) == (3000, None)
    for point in roomy["points"]:
        assert point["goodput_rps"]["low"] <= point["goodput_rps"]["value"] <= point["goodput_rps"]["high"]
        assert point["latency_p99_ms"] > 0
    ratio = roomy["points"][0]["ratio"]
    assert ratio["low"] <= ratio["value"] <= ratio["high"]
    assert found["seconds"] <= 75


@pytest.mark.more
def test_the_same_command_again_shows_the_curve_within_the_terminal(drawn):
    _, _, again = drawn

    assert again.returncode == 0, again.stderr
    # It may serve next to nothing there, or nothing at all.
    first, second, *_ = again.stdout.splitlines()
    assert first.startswith("default: ")
    assert "from 3,000 connections on" in first
    assert re.fullmatch(r"roomy: (no failures|.*% failed) up to 3,000 connections", second)
    assert "█" in again.stdout
    assert all(len(line) <= 80 for line in again.stdout.splitlines())


@pytest.mark.more
def test_the_page_stands_alone(drawn):
    tuner, completed, _ = drawn
    page = (tuner.folder / "curve.html").read_text()
    points = [point for each in json.loads(completed.stdout)["configurations"] for point in each["points"]]

    # A processor that is busy with something else has failures, or no response, where an idle one has none.
    fails, answers = (any(point[what] for point in points) for what in ("failed", "latency_p99_ms"))
    assert ('"text":"failed, %"' in page, '"text":"p99, ms"' in page) == (fails, answers)
    assert SCRIPT_TAG not in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--connections", "many"), "'many' is no number"),
        (("--connections", "30000"), "connections are out of range. Give 1 to 20,000"),
        (("default", "default"), "is given twice"),
        (("winner",), "this storage has no study yet"),
        (("missing.yaml",), "the file does not exist"),
        (("--minutes", "0.1"), "minutes are too few for"),
    ],
)
def test_what_cannot_be_measured_is_refused(tmp_path: Path, arguments, said):
    tuner = CommandLine(tmp_path)
    tuner.write()

    refused = tuner.call("curve", "study.yaml", *arguments)

    assert refused.returncode == 2
    assert said in refused.stderr
    assert refused.stdout == ""
