"""A study that is measured by a worker of a scheduler of one's own, with a real server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.integration.waiting import wait_until
from tests.testbed.processors import idle_processors_here

pytestmark = pytest.mark.more


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """A scheduler of Dask on this machine; yields its address."""
    told = tmp_path / "scheduler.json"
    program = (
        sys.executable,
        "-m",
        "dask",
        "scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
    )
    process = subprocess.Popen((*program, "--scheduler-file", told), cwd=tmp_path, stderr=subprocess.DEVNULL)
    wait_until(lambda: told.exists() and told.read_text().endswith("}"), patience_s=30)
    yield json.loads(told.read_text())["address"]
    process.kill()
    process.wait()


def test_a_worker_measures_for_a_controller_and_both_end_as_they_should(tmp_path: Path, scheduler: str):
    with idle_processors_here() as through:
        tuner = CommandLine(tmp_path, through=through)
        study = tuner.write(space="nginx, {only: [tcp_nodelay, sendfile]}")
        worker = tuner.start("worker", study, "--scheduler", scheduler)
        done = tuner.run_in_peace(
            "run", study, "--scheduler", scheduler, "--minutes", "0.4", "--trials", "2", timeout_s=200
        )
        fleet = json.loads(tuner.run("fleet", study, "--scheduler", scheduler, "--json").stdout)
        os.kill(worker.pid, signal.SIGINT)
        _, said = worker.communicate(timeout=30)

    assert done.returncode in {0, 1}, done.stderr
    (host,) = fleet["hosts"]
    assert host["host"] == os.uname().nodename
    assert host["trials"] > 4
    assert host["silent_s"] < 10
    assert worker.returncode == 0
    assert "The host is in its earlier state again" in said
    assert not tuner.processes()


@pytest.mark.parametrize("command", ["run", "worker"])
def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path, command: str):
    tuner = CommandLine(tmp_path)
    study = tuner.write()

    done = tuner.run(command, study, "--scheduler", "tls://127.0.0.1:1")

    assert done.returncode == 3
    assert "tuner cannot reach tls://127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
