"""A study that was killed again and again and then run to its end, for the tests of what comes after."""

import random
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine, was_too_noisy
from tests.e2e.traces import differences, eventually, picture
from tuner.errors import TunerError
from tuner.study import load_study
from tuner.study.open_storage import open_storage

KILLS = 3
BUDGET = ("--preset", "quick", "--minutes", "0.4", "--trials", "4")
NGINX = "sendfile, access_log_buffer, open_file_cache, keepalive_requests"
KERNEL = "net.core.somaxconn, net.ipv4.tcp_notsent_lowat"
BAD_DEFAULT = "{keepalive_requests: {low: 3, default: 3}}"
"""Connections are made all the time, which about halves the goodput: whatever the machine and its noise, a
preset beats that, so that there is a winner to look at."""


@pytest.fixture
def tuner(tmp_path: Path) -> CommandLine:
    """The command line in a folder of the test; HOME and TUNER_STATE are those of this process."""
    return CommandLine(tmp_path)


@dataclass(frozen=True)
class Aftermath:
    """What there is after a run ended, however it did."""

    processes: list[int]
    """Of the run, a moment later."""
    differences: dict[str, object]
    """Of the host from what it was before all runs."""
    windows: dict[int, int]
    """The finished windows of every trial, as the storage has them."""


@pytest.fixture(scope="session")
def interrupted(tmp_path_factory):
    """One short real study of nginx and the kernel: killed at random moments, then run to its end."""
    return interrupt(CommandLine(tmp_path_factory.mktemp("study")), KILLS)


def interrupt(tuner, kills):
    """Kill runs of the study, each third one after it has finished another window, then run it to its end."""
    space = f"nginx, sysctl-net, {{only: [{NGINX}, {KERNEL}]}}, {{parameters: {BAD_DEFAULT}}}"
    study = tuner.write(server="nginx, sysctl", space=space, connections=50)
    moments = random.Random(5)  # noqa: S311 - moments, no secrets
    before = picture()
    ends = []
    for number in range(kills):
        process = tuner.start("run", study, *BUDGET)
        if number % 3 == 2:
            wait_for_another_window(process, study, ends[-1].windows)
        time.sleep(moments.uniform(0.2, 3.0))
        process.kill()
        process.communicate()
        ends.append(look_after(tuner, study, before))
    completed = tuner.run("run", study, *BUDGET, timeout_s=180)
    for _ in range(2):
        if was_too_noisy(completed):
            time.sleep(10)
            completed = tuner.run("run", study, *BUDGET, timeout_s=180)
    ends.append(look_after(tuner, study, before))
    return tuner, study, completed, ends


def wait_for_another_window(process, study, before):
    """Wait until the run has finished a window, or has ended."""
    eventually(lambda: finished_windows(study) != before or process.poll() is not None, within_s=100)


@pytest.fixture(scope="session")
def finished(interrupted):
    """The same study, which has ended."""
    tuner, study, completed, _ = interrupted
    assert completed.returncode in {0, 1}, completed.stderr
    return tuner, study, completed


def look_after(tuner, study, before):
    """Look at what a run has left."""
    eventually(lambda: not tuner.processes())
    return Aftermath(tuner.processes(), differences(before), finished_windows(study))


def finished_windows(study):
    """Count the finished windows of every trial, as the storage has them."""
    settings = load_study(study)
    if not (settings.folder / "study.db").exists():
        return {}
    try:
        trials = open_storage(settings.storage_url, settings.name, create=False).trials()
    except TunerError:  # killed before the study was made, or it is being made anew
        return {}
    return {trial.number: len(trial.windows) for trial in trials if trial.windows}
