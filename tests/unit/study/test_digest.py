from dataclasses import replace

import pytest

from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import SimulatedHost, open_on_disk, write_study
from tuner.records import Role
from tuner.study import load_study
from tuner.study.databases.storage_url import sqlite_url
from tuner.study.digest import make_study_key
from tuner.study.facts import PRESET, VERDICT
from tuner.study.folder import DATABASE
from tuner.study.open_storage import open_storage
from tuner.study.storage import Opening


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


@pytest.fixture
def storage(settings):
    storage = open_on_disk(settings, SimulatedHost().clock)
    storage.claim(FINGERPRINT, definition={"study": "test"})
    return storage


@pytest.mark.usefixtures("storage")
def test_reading_a_study_does_not_change_its_key(settings):
    before = make_study_key(settings)

    open_storage(settings.storage_url, settings.name, create=False).trials()

    assert before is not None
    assert make_study_key(load_study(settings.path)) == before


def test_every_fact_and_every_trial_changes_it(settings, storage):
    seen = [make_study_key(settings)]
    storage.remember(PRESET, "quick")
    seen.append(make_study_key(settings))
    storage.begin(Opening(role=Role.BASELINE, config={}), distributions={}, session="one")
    seen.append(make_study_key(settings))
    storage.remember(VERDICT, "confirmed")
    seen.append(make_study_key(settings))

    assert None not in seen
    assert len({*seen}) == len(seen)


@pytest.mark.usefixtures("storage")
@pytest.mark.parametrize("beside", ["sweeps", "curves"])
def test_so_does_what_is_measured_beside_it(settings, beside):
    before = make_study_key(settings)
    (settings.folder / beside).mkdir(mode=0o755)

    open_storage(sqlite_url(settings.folder / beside / "first.db"), settings.name)

    assert make_study_key(settings) not in {None, before}


@pytest.mark.usefixtures("storage")
def test_so_does_another_study_file(settings):
    assert make_study_key(replace(settings, seed=settings.seed + 1)) != make_study_key(settings)


@pytest.mark.usefixtures("storage")
def test_so_does_a_space_of_the_user_that_was_edited(settings):
    own = settings.path.with_name("own.yaml")
    own.write_text("parameters: {sendfile: {why: It was measured.}}")
    refined = replace(settings, space=(*settings.space, "./own.yaml"))
    before = make_study_key(refined)

    own.write_text("parameters: {sendfile: {why: It was read.}}")

    assert make_study_key(refined) not in {None, before}


def test_what_cannot_be_read_here_has_none(settings, tmp_path):
    assert make_study_key(settings) is None

    settings.folder.mkdir(mode=0o755)
    (settings.folder / DATABASE).write_text("no database")
    assert make_study_key(settings) is None

    (settings.folder / DATABASE).unlink()
    (settings.folder / DATABASE).symlink_to(tmp_path / "elsewhere.db")
    assert make_study_key(settings) is None
