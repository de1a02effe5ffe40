"""kill -9 at any moment: nothing is left, nothing is lost, the same command finishes."""

import signal

import pytest

from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import BUDGET, KILLS, finished_windows, interrupt
from tests.e2e.traces import eventually, picture, unchanged
from tests.more import leave_to_more

pytestmark = pytest.mark.alone


def test_kills_leave_nothing_behind_and_lose_no_finished_window(interrupted):
    expect_nothing_lost(*interrupted, kills=KILLS)


@pytest.mark.more
def test_twenty_kills_leave_nothing_behind_and_lose_no_finished_window(tmp_path):
    expect_nothing_lost(*interrupt(CommandLine(tmp_path), 20), kills=20)


def expect_nothing_lost(tuner, study, completed, ends, *, kills):
    assert completed.returncode in {0, 1}, completed.stderr
    assert len(ends) == kills + 1
    for earlier, later in zip([None, *ends], ends, strict=False):
        assert not later.processes, "a process outlived the tuner"
        assert not later.differences, f"the host is not as it was: {later.differences}"
        lost = {
            number: count
            for number, count in (earlier.windows if earlier else {}).items()
            if later.windows.get(number, 0) < count
        }
        assert not lost, "finished windows were lost"
    assert any(end.windows for end in ends[:-1]), "no kill came after a finished window"
    assert "finished" in tuner.run("run", study, *BUDGET).stderr


@pytest.mark.parametrize("number", leave_to_more([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
def test_a_signal_stops_restores_and_says_how_to_resume(tmp_path, number):
    tuner = CommandLine(tmp_path)
    study = tuner.write()
    before = picture()
    process = tuner.start("run", study, "--preset", "quick")
    begun = eventually(lambda: process.poll() is not None or finished_windows(study), within_s=100)

    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert begun, said

    assert process.returncode == 130, said
    assert f"tuner run {study} --preset quick" in said
    assert not tuner.processes()
    assert unchanged(before)
    shown = tuner.run("show", study)
    assert "stopped" in shown.stdout
