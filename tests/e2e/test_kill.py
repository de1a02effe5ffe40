"""kill -9 at any moment: nothing is left, nothing is lost, the same command finishes."""

import random
import signal
import time

import pytest

from tests.e2e.command_line import CommandLine
from tests.e2e.traces import eventually, picture, unchanged
from tuner.errors import TunerError
from tuner.settings import load_study
from tuner.storage import open_storage

pytestmark = pytest.mark.alone

KILLS = 20
BUDGET = ("--preset", "quick", "--minutes", "0.5", "--trials", "4")


def test_twenty_kills_leave_nothing_behind_and_lose_no_finished_window(tmp_path):
    tuner = CommandLine(tmp_path)
    study = tuner.write(space="nginx, {only: [sendfile, access_log_buffer, open_file_cache]}")
    moments = random.Random(5)  # noqa: S311 - moments, no secrets
    before = picture()
    windows: dict[int, int] = {}

    for _ in range(KILLS):
        process = tuner.start("run", study, *BUDGET)
        time.sleep(moments.uniform(0.2, 3.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()

        assert eventually(lambda: not tuner.processes()), "a process outlived the tuner"
        assert unchanged(before)
        now = finished_windows(study)
        assert all(now.get(number, 0) >= count for number, count in windows.items())
        windows = now

    completed = tuner.run("run", study, *BUDGET, timeout_s=180)
    if "too noisy" in completed.stderr:
        time.sleep(10)
        completed = tuner.run("run", study, *BUDGET, timeout_s=180)

    assert completed.returncode in {0, 1}, completed.stderr
    now = finished_windows(study)
    assert all(now.get(number, 0) >= count for number, count in windows.items())
    assert "finished" in tuner.run("run", study, *BUDGET).stderr
    assert unchanged(before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_restores_and_says_how_to_go_on(tmp_path, number):
    tuner = CommandLine(tmp_path)
    study = tuner.write()
    before = picture()
    process = tuner.start("run", study, "--preset", "quick")
    begun = eventually(lambda: process.poll() is not None or finished_windows(study), within_s=100)

    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert begun, said

    assert process.returncode == 130, said
    assert f"tuner run {study}" in said
    assert not tuner.processes()
    assert unchanged(before)
    shown = tuner.run("show", study)
    assert "stopped" in shown.stdout


def finished_windows(study):
    """Count the finished windows of every start, as the storage has them."""
    settings = load_study(study)
    if not (settings.folder / "study.db").exists():
        return {}
    try:
        storage = open_storage(settings.storage_url, settings.name, create=False)
    except TunerError:  # killed before the study was made
        return {}
    return {start.number: len(start.windows) for start in storage.starts() if start.windows}
