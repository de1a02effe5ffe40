"""What happens to a study is in its folder, whatever the screen shows."""

import logging

import pytest

from tests.unit.simulation import space_of, write_study
from tuner.errors import TargetError, UsageError
from tuner.records import Role, State
from tuner.study import load_study
from tuner.study.lock import locked
from tuner.study.open_storage import open_storage
from tuner.study.storage import Opening

LOG = logging.getLogger("tuner.demo")
SECRET = "s3cret-v4lue"  # noqa: S105 - of nobody


def test_each_trial_and_the_error_that_ends_a_run_are_in_the_log(tmp_path):
    settings = write_study(tmp_path)

    def run():
        storage = open_storage(settings.storage_url, settings.name)
        opening = Opening(role=Role.BASELINE, config=space_of("sendfile").default())
        trial = storage.begin(opening, distributions={}, session="a")
        storage.end(trial, log_ratio=0.0, slacks={})
        raise TargetError("the target is gone")

    with pytest.raises(TargetError), locked(settings):
        run()

    text = (settings.folder / "log").read_text()
    assert "trial 0 begins: baseline" in text
    assert f"trial 0 ends: {State.RUNNING}" in text
    assert "the target is gone" in text
    assert "Traceback" in text


def test_headers_of_a_load_are_not_in_it(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(f"study: a\nservers: [nginx]\nspace: [nginx]\nload: {{headers: {{X-Own: {SECRET}}}}}\n")
    settings = load_study(path)

    with locked(settings):
        (settings.folder / "kept").touch()
        LOG.info("sends %s", settings.load.headers)

    text = (settings.folder / "log").read_text()
    assert "X-Own" in text
    assert SECRET not in text


def test_a_study_of_which_nothing_was_kept_has_no_log(tmp_path):
    settings = write_study(tmp_path)

    level = logging.getLogger("tuner").level
    with locked(settings):
        assert (settings.folder / "log").exists()
    assert not settings.folder.exists()
    assert logging.getLogger("tuner").level == level  # a program that uses the library logs as before


def test_a_link_in_its_place_is_refused(tmp_path):
    settings, other = write_study(tmp_path), tmp_path / "other"
    settings.folder.mkdir(mode=0o700)
    (settings.folder / "log").symlink_to(other)

    with pytest.raises(UsageError, match="this is a symbolic link"), locked(settings):
        pass
    assert not other.exists()
