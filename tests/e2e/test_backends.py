"""Servers before applications, from `tuner init` to a verdict; short, as nobody reads the figures."""

import json
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.testbed.processors import idle_processors_here

pytestmark = pytest.mark.more

CASES = [("nginx", "h2o"), ("nginx", "php-fpm"), ("apache", "php-fpm"),
         ("nginx", "websocket-echo"), ("apache", "websocket-echo")]  # fmt: skip


@pytest.mark.parametrize(("server", "backend"), CASES)
def test_a_server_before_a_backend_runs_from_init_to_verdict(server: str, backend: str, tmp_path: Path):
    with idle_processors_here() as through:
        tuner = CommandLine(tmp_path, through=through)

        made = tuner.run("init", server, "--backend", backend, "-o", "both.yaml")
        completed = tuner.run_in_peace("run", "both.yaml", "--preset", "quick", "--minutes", "0.4")
        shown = json.loads(tuner.run("show", "both.yaml", "--json").stdout)

    assert made.returncode == 0, made.stderr
    assert completed.returncode in {0, 1}, completed.stderr
    assert shown["state"] == "finished"
    assert shown["default"]["goodput_rps"] > 0
    assert tuner.processes() == []
