import fcntl
import os
import subprocess
import sys

import pytest

from tests.unit.simulation import write_study
from tuner.errors import TargetError, UsageError
from tuner.study.lock import is_locked, locked

HOLDER = """
import sys
from pathlib import Path
from tuner.study.lock import locked
from tuner.study import load_study
with locked(load_study(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


@pytest.fixture
def holder(settings):
    """Another process that holds the study."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, settings.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_study_is_held_by_one_tuner_at_a_time(settings, holder):
    with (
        pytest.raises(TargetError, match=rf"another tuner is at work .* \(process {holder.pid}\)"),
        locked(settings),
    ):
        pytest.fail("two at a time")
    assert is_locked(settings)


def test_a_tuner_that_was_killed_holds_nothing_any_more(settings, holder):
    holder.kill()
    holder.wait()

    assert not is_locked(settings)
    with locked(settings):
        assert (settings.folder / "lock").read_text() == f"{os.getpid()}\n"


def test_a_folder_in_which_nothing_was_put_does_not_stay(settings):
    with pytest.raises(ValueError, match="refused"), locked(settings):
        raise ValueError("refused")

    assert not settings.folder.exists()
    with locked(settings):
        (settings.folder / "study.db").touch()
    with locked(settings):
        (settings.folder / "study.db").unlink()
    assert settings.folder.exists(), "it was there before"


def test_a_lock_that_was_removed_meanwhile_is_none(settings, monkeypatch):
    real = fcntl.flock

    def remove_first(descriptor, operation):
        (settings.folder / "lock").unlink()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)

    with pytest.raises(TargetError, match="another tuner"), locked(settings):
        pytest.fail("holds a file that nobody else sees")


def test_a_study_that_nobody_began_is_not_held(settings):
    assert not is_locked(settings)
    assert not settings.folder.exists()


def test_a_lock_is_let_go_when_something_goes_wrong(settings):
    def fail():
        with locked(settings):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert not is_locked(settings)


def test_looking_whether_a_study_is_held_does_not_hold_it(settings):
    with locked(settings):
        pass
    assert not is_locked(settings)
    assert not is_locked(settings)
    with locked(settings):
        assert is_locked(settings)


def test_a_folder_that_cannot_be_made_is_said(settings):
    settings.folder.write_text("a file")

    with pytest.raises(UsageError, match="this is not a folder"), locked(settings):
        pytest.fail("held")


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone does what others may have written")
def test_root_does_not_run_a_study_file_that_others_may_write(settings):
    for path, mode, folder_mode in ((settings.path, 0o666, 0o755), (settings.path.parent, 0o644, 0o777)):
        settings.path.chmod(mode)
        settings.path.parent.chmod(folder_mode)
        with pytest.raises(UsageError, match=f"{path}: other users may write to this file"), locked(settings):
            pass
    settings.path.parent.chmod(0o1777)  # as in /tmp, where only owners exchange files
    with locked(settings):
        pass
