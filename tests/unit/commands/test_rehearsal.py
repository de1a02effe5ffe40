"""What a check tries besides the servers: storage, earlier studies, optimizer."""

from dataclasses import replace

import pytest

from tests.unit.simulated_study import small_space
from tests.unit.simulation import make_setup, write_study
from tests.unit.trials import window
from tuner.commands.rehearsal import rehearse
from tuner.errors import UsageError
from tuner.records import Role
from tuner.study.facts import PRESET, VERDICT
from tuner.study.open_storage import open_storage
from tuner.study.storage import Opening


def try_all(settings, *, trusts=False):
    return rehearse(settings, make_setup(settings, small_space()), trusts=trusts)


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


def begin(settings, name=None):
    """Make a study of which the default was started once."""
    settings.folder.mkdir()
    storage = open_storage(settings.storage_url, name or settings.name)
    setup = make_setup(settings, small_space())
    storage.claim(setup.fingerprint, definition=settings.definition(setup.space))
    opening = Opening(role=Role.BASELINE, config=setup.space.default(), arm="default")
    begun = storage.begin(opening, distributions={}, session="one")
    storage.end(storage.keep_window(begun, window(1000)), log_ratio=0.0, slacks={})
    return storage


def test_a_study_that_has_not_begun_lacks_nothing_and_nothing_is_made(settings):
    assert try_all(settings) == ()
    assert not settings.folder.exists()


def test_an_optimizer_whose_package_is_missing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    settings = write_study(tmp_path, optimizer="gp")

    with pytest.raises(UsageError, match="needs the Python package torch"):
        try_all(settings)


def test_an_optimizer_of_the_authors_is_imported_with_trust_only(tmp_path, monkeypatch):
    (tmp_path / "theirs_alone.py").write_text("raise ZeroDivisionError('it was run')\n")
    monkeypatch.syspath_prepend(tmp_path)
    settings = write_study(tmp_path, optimizer="theirs_alone:Sampler")

    assert try_all(settings) == ("optimizer theirs_alone:Sampler: its code runs only with --trust",)
    with pytest.raises(UsageError, match=r"'theirs_alone:Sampler' cannot be imported.*it was run"):
        try_all(settings, trusts=True)


@pytest.mark.parametrize("name", ["nowhere_at_all:Sampler", "nowhere_at_all.samplers:Mine", ".mine:Sampler"])
def test_an_optimizer_whose_package_is_nowhere_is_refused_without_trust(tmp_path, name):
    settings = write_study(tmp_path, optimizer=name)

    with pytest.raises(UsageError, match=rf"simulated\.yaml: optimizer: '{name}': no Python package"):
        try_all(settings)


def test_an_earlier_study_that_is_not_there_is_refused(tmp_path):
    settings = write_study(tmp_path, more="warm_start: [gone.yaml]\n")

    with pytest.raises(
        UsageError,
        match=r"simulated\.yaml: warm_start: .*gone\.yaml: the file does not exist\. Name the file of an",
    ):
        try_all(settings)


def test_an_earlier_study_that_is_no_file_is_not_read(tmp_path):
    settings = write_study(tmp_path, more="warm_start: [/dev/zero]\n")

    with pytest.raises(UsageError, match=r"/dev/zero: this is no regular file"):
        try_all(settings)


def test_a_storage_that_is_no_database_is_refused(settings):
    settings.folder.mkdir()
    (settings.folder / "study.db").write_text("not a database, whatever its name says")

    with pytest.raises(UsageError, match="the storage cannot be used"):
        try_all(settings)


def test_another_studys_database_is_refused(settings):
    begin(settings, name="another")

    with pytest.raises(UsageError, match="holds the study 'another', not 'simulated'"):
        try_all(settings)


def test_a_study_whose_file_was_edited_is_refused_as_its_run_is(settings):
    begin(settings)
    assert try_all(settings) == ()

    with pytest.raises(UsageError, match="content was 'builtin', is '/srv/www'"):
        try_all(replace(settings, content="/srv/www"))


def test_too_little_time_is_refused(settings):
    with pytest.raises(UsageError, match=r"minutes: 0\.1 minutes are too few"):
        try_all(replace(settings, minutes=0.1))


def test_a_finished_study_needs_no_optimizer_any_more(settings):
    storage = begin(settings)
    storage.remember(PRESET, "quick")
    storage.remember(VERDICT, "confirmed")

    assert try_all(replace(settings, optimizer="nowhere:Sampler")) == ()
