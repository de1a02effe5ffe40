import shutil

import pytest

from tests.unit.simulation import (
    STUDY,
    TUNED,
    SimulatedHost,
    cached_files_win,
    make_campaign,
    open_in_memory,
    open_on_disk,
    space_of,
)
from tuner.campaign.campaign import run_campaign
from tuner.campaign.warm_start import read_earlier
from tuner.errors import UsageError
from tuner.records import Role
from tuner.space.fitting import fit_into
from tuner.study import load_study


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished study in which cached files win; not to be changed."""
    settings = write(tmp_path_factory.mktemp("finished"), "earlier")
    host = SimulatedHost(worth=cached_files_win)
    run_campaign(make_campaign(settings, host, open_on_disk(settings, host.clock)))
    return settings


@pytest.fixture
def earlier(tmp_path, finished):
    shutil.copytree(finished.path.parent, tmp_path, dirs_exist_ok=True)
    return load_study(tmp_path / finished.path.name)


def write(folder, name, *more, servers="nginx"):
    path = folder / f"{name}.yaml"
    text = STUDY % (", ".join(TUNED), "tpe", 1)
    text = text.replace("study: simulated", f"study: {name}").replace("[nginx]", f"[{servers}]", 1)
    path.write_text("\n".join([text, *more]))
    return load_study(path)


def test_what_was_best_before_is_tried_first(tmp_path, earlier):
    settings = write(tmp_path, "later", "warm_start: [earlier.yaml]")
    best = space_of(*TUNED).decode(read_earlier(settings, space_of(*TUNED))[0].good[0])
    host = SimulatedHost(worth=cached_files_win)
    campaign = make_campaign(settings, host, open_in_memory(host.clock))

    run_campaign(campaign)

    searched = [trial.config for trial in campaign.trials if trial.role is Role.SEARCH]
    assert earlier.name == "earlier"
    assert best["open_file_cache"]
    presets = len(space_of(*TUNED).presets)
    assert best in searched[: presets + 1]
    assert searched.count(best) == 1


def test_the_good_points_are_a_few_of_the_best(tmp_path, earlier):
    settings = write(tmp_path, "later", "warm_start: [earlier.yaml]")

    (read,) = read_earlier(settings, space_of(*TUNED))

    assert earlier.folder.is_dir()
    assert 1 <= len(read.good) <= 4
    assert all(point["open_file_cache"] for point in read.good)


@pytest.mark.usefixtures("earlier")
def test_what_the_new_space_lacks_is_left_out(tmp_path):
    settings = write(tmp_path, "later", "warm_start: [earlier.yaml]")
    narrow = space_of("sendfile", "open_file_cache")

    (read,) = read_earlier(settings, narrow)

    assert read.good[0].keys() == {each.name for each in narrow.dimensions}


def test_values_out_of_range_are_pulled_into_it():
    space = space_of(*TUNED)

    config = fit_into(space, {**space.default(), "worker_connections": 10**9, "unknown": 3})

    assert not space.violations(config)


@pytest.mark.parametrize(
    ("more", "servers", "words"),
    [
        ("warm_start: [nowhere.yaml]", "nginx", ["nowhere.yaml", "the file does not exist"]),
        ("warm_start: [later.yaml]", "nginx", ["later.yaml", "this entry names your study itself"]),
        ("warm_start: [earlier.yaml]", "apache", ["earlier.yaml", "nginx", "Leave this entry out"]),
    ],
)
@pytest.mark.usefixtures("earlier")
def test_a_study_that_cannot_help_is_refused(tmp_path, more, servers, words):
    settings = write(tmp_path, "later", more, servers=servers)

    with pytest.raises(UsageError) as refused:
        read_earlier(settings, space_of(*TUNED))
    for word in words:
        assert word in str(refused.value)


def test_a_study_that_never_ran_is_refused(tmp_path):
    write(tmp_path, "idle")
    settings = write(tmp_path, "later", "warm_start: [idle.yaml]")

    with pytest.raises(UsageError, match="idle"):
        read_earlier(settings, space_of(*TUNED))


def test_a_choice_that_this_space_lacks_is_left_out():
    space = space_of("lingering_close", "sendfile")

    config = fit_into(space, {"lingering_close": "never", "sendfile": False})

    assert config == space.complete({"sendfile": False})
