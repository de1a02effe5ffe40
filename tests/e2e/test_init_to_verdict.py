"""The way of somebody new, from `tuner init` to a verdict."""

import json
import re
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.testbed.processors import idle_processors_here

pytestmark = pytest.mark.more


def test_apache_runs_from_init_to_verdict(tmp_path: Path):
    with idle_processors_here() as through:
        tuner = CommandLine(tmp_path, through=through)

        made = tuner.run("init", "apache", "-o", "apache.yaml")
        completed = tuner.run_in_peace(
            "run", "apache.yaml", "--preset", "quick", "--minutes", "0.4", "--trials", "3"
        )

    assert made.returncode == 0, made.stderr
    assert completed.returncode in {0, 1}, completed.stderr
    assert "default" in completed.stdout


HTTP2 = "generator: h2load\n  protocol: h2\n  streams: 10"
CROWDED = "{allow: [semantic], parameters: {num-threads: {high: 400, default: 400}}}"
"""So many threads on two processors, and a write for each answer, are easily beaten: there is a finalist."""


@pytest.mark.alone  # beside others it may find nothing that is better
def test_h2o_runs_over_http2_from_init_through_its_confirmation(tmp_path: Path):
    with idle_processors_here() as through:
        tuner = CommandLine(tmp_path, through=through)
        made = tuner.run("init", "h2o", "-o", "h2o.yaml")
        study = tmp_path / "h2o.yaml"
        text = study.read_text().replace("connections: 100", "connections: 20")
        text = re.sub(r"generator: wrk .*", HTTP2, text).replace("  - h2o\n", f"  - h2o\n  - {CROWDED}\n")
        study.write_text(f"{text}line_price: 0\n")

        completed = tuner.run_in_peace(
            "run", "h2o.yaml", "--preset", "quick", "--minutes", "0.5", "--trials", "5"
        )
        shown = json.loads(tuner.run("show", "h2o.yaml", "--json").stdout)

    assert made.returncode == 0, made.stderr
    assert completed.returncode in {0, 1}, completed.stderr
    assert shown["state"] == "finished"
    assert shown["gain"]["pairs"] >= 1
    assert shown["fingerprint"]["generator"].startswith("h2load")
