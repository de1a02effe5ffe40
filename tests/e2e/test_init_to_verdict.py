"""The way of somebody new, from `tuner init` to a verdict."""

from pathlib import Path

from tests.e2e.command_line import CommandLine
from tests.testbed.processors import idle_processors_here


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
