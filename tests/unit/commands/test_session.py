import json
from dataclasses import replace

import pytest

from tests.unit.simulated_hosts import write_targets
from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import SimulatedHost, make_setup, open_in_memory, space_of, write_study
from tests.unit.space.samples import HOST
from tests.unit.trials import DEFAULT, SPACE, window
from tuner.commands.contests.compare import resolve
from tuner.commands.session import (
    RunForecast,
    as_begun,
    follow_preset,
    look_ahead,
    read,
    settle_plan,
    settle_preset,
)
from tuner.errors import UsageError
from tuner.records import Role
from tuner.space import Preset, SpaceFacts, facts_to_json, load_space
from tuner.study.facts import CONFIRMATION, PRESET, SPACE_FACTS, VERDICT, Confirmation
from tuner.study.open_storage import open_storage
from tuner.study.presets import PRESETS
from tuner.study.storage import Opening

FACTS = SpaceFacts(names={**HOST}, versions={"nginx": (1, 22, 1)})


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


@pytest.fixture
def storage():
    return open_in_memory(SimulatedHost().clock)


def test_a_new_study_begins_with_the_preset_of_its_file_unless_another_is_asked(settings, storage):
    assert settle_preset(settings, None) == "quick"
    assert settle_preset(settings, storage) == "quick"
    assert settle_preset(settings, storage, "standard") == "standard"


def test_a_study_resumes_with_the_preset_that_it_began_with(settings, storage):
    storage.remember(PRESET, "standard")

    assert settle_preset(settings, storage) == "standard"
    with pytest.raises(
        UsageError, match=r"began with the preset 'standard', not 'quick'. Continue with --preset"
    ):
        settle_preset(settings, storage, "quick")


def test_the_budget_of_a_study_may_be_changed(tmp_path, storage):
    settings = write_study(tmp_path, more="")

    assert settle_plan(settings, storage, preset="quick", minutes=2).minutes == 2
    assert settle_plan(settings, storage, preset="quick", minutes=4, trials=3).trials == 3


def test_of_several_hosts_each_has_the_trials_of_the_preset_but_not_those_that_are_asked_for(tmp_path):
    settings = write_targets(tmp_path, ["ssh://a", "ssh://b", "ssh://c"])

    assert settle_plan(settings, None, preset="quick").trials == 3 * PRESETS["quick"].trials
    assert settle_plan(settings, None, preset="quick", trials=20).trials == 20


def test_time_that_is_too_short_for_the_preset_is_refused_and_another_preset_can_be_taken(settings, storage):
    with pytest.raises(
        UsageError, match=r"0\.5 minutes are too few: the shortest run of the preset 'standard' takes 3\.0"
    ):
        settle_plan(settings, storage, preset="standard", minutes=0.5)

    assert settle_plan(settings, storage, preset="quick", minutes=0.5).minutes == 0.5
    storage.remember(VERDICT, "improved")
    assert settle_plan(settings, storage, preset="quick", minutes=0.1).minutes == 0.1


def test_a_study_is_finished_once_it_has_its_verdict(settings):
    assert look_ahead(settings) is not None
    settings.folder.mkdir()
    storage = open_storage(settings.storage_url, settings.name)
    assert look_ahead(settings) is not None
    storage.remember(VERDICT, "not proven")
    assert look_ahead(settings) is None


def test_what_lies_ahead_is_the_preset_and_its_time_or_what_was_asked(settings):
    assert look_ahead(settings) == RunForecast(preset="quick", minutes=5, is_begun=False)
    assert look_ahead(settings, preset="standard") == RunForecast(
        preset="standard", minutes=75, is_begun=False
    )
    settings.folder.mkdir()
    open_storage(settings.storage_url, settings.name).remember(PRESET, "standard")

    assert look_ahead(settings, minutes=12) == RunForecast(preset="standard", minutes=12, is_begun=True)
    with pytest.raises(UsageError, match="began with the preset 'standard'"):
        look_ahead(settings, preset="quick")


def test_what_is_measured_later_follows_the_preset_of_the_run(settings):
    assert follow_preset(settings) == settings.preset
    settings.folder.mkdir()
    assert follow_preset(settings) == settings.preset
    open_storage(settings.storage_url, settings.name).remember(PRESET, "thorough")

    assert follow_preset(settings) == "thorough"
    assert follow_preset(settings, "quick") == "quick"


def test_a_file_that_was_edited_since_is_told_from_the_one_that_was_measured(settings, tmp_path):
    storage = open_begun_on_disk(settings)

    assert read(settings).changed == ""
    edited = write_study(tmp_path, more="content: /srv/www\n")
    assert "content was 'builtin', is '/srv/www'" in read(edited).changed
    with pytest.raises(UsageError, match="content was 'builtin'"):
        storage.claim(FINGERPRINT, definition=edited.definition(read(edited).space))


def test_a_run_of_an_edited_file_is_refused_before_it_says_how_long_it_will_take(settings, tmp_path):
    storage = open_begun_on_disk(settings)
    assert look_ahead(settings) is not None
    edited = write_study(tmp_path, more="content: /srv/www\n")

    for verdict in ("", "confirmed"):
        storage.remember(VERDICT, verdict)
        with pytest.raises(
            UsageError, match=r"content was 'builtin', is '/srv/www'\)\. Copy the study file to a new"
        ):
            look_ahead(edited)


def open_begun_on_disk(settings):
    """Begin a study as a run does, with one trial of the default."""
    setup = make_setup(settings, load_space(settings.space, facts=FACTS, base=settings.path.parent))
    settings.folder.mkdir()
    storage = open_storage(settings.storage_url, settings.name)
    storage.claim(FINGERPRINT, definition=settings.definition(setup.space))
    storage.remember(SPACE_FACTS, facts_to_json(FACTS, {}))
    opening = Opening(role=Role.BASELINE, config=setup.space.default(), arm="default")
    begun = storage.begin(opening, distributions={}, session="one")
    storage.end(storage.keep_window(begun, window(1000)), log_ratio=0.0, slacks={})
    return storage


def test_a_side_of_a_comparison_is_the_default_or_values_over_it(settings):
    setup = make_setup(settings, SPACE)

    assert resolve(settings, setup, "default") == DEFAULT
    assert resolve(settings, setup, {"sendfile": "off"}) == SPACE.complete({"sendfile": False})


def test_a_side_of_a_comparison_may_be_a_preset(settings):
    preset = Preset(name="copied", title="", source="", values={"sendfile": False})
    setup = make_setup(settings, replace(SPACE, presets=(preset,)))

    assert resolve(settings, setup, "copied") == SPACE.complete({"sendfile": False})
    with pytest.raises(UsageError, match=r"'copid' is no configuration\. Did you mean copied"):
        resolve(settings, setup, "copid")


def test_a_side_of_a_comparison_may_hold_less_than_the_default(settings):
    """To be measured is not to be shipped: recipes from elsewhere are tried as they are."""
    facts = SpaceFacts(names={**HOST})
    space = load_space(["apache-event"], facts=facts, base=settings.path.parent)
    setup = make_setup(settings, space)

    assert resolve(settings, setup, "hand-tuned-2012")["MaxRequestWorkers"] == 2
    assert resolve(settings, setup, {"ThreadsPerChild": 25, "Processes": 1})["MaxRequestWorkers"] == 25
    assert resolve(settings, setup, "all-started")["StartServers"] == 6


def test_a_value_that_is_wrong_is_refused(settings):
    setup = make_setup(settings, SPACE)

    with pytest.raises(UsageError, match="sendfiles"):
        resolve(settings, setup, {"sendfiles": "off"})
    with pytest.raises(UsageError, match="worker_connections"):
        resolve(settings, setup, {"worker_connections": "-5"})


def test_there_is_no_winner_before_the_confirmation(settings):
    setup = make_setup(settings, space_of("sendfile"))
    settings.folder.mkdir()
    storage = open_storage(settings.storage_url, settings.name)

    with pytest.raises(UsageError, match=r"the study has no winner yet. Finish the study with `tuner run`"):
        resolve(settings, setup, "winner")
    storage.remember(
        CONFIRMATION,
        Confirmation(config={"sendfile": False}, pairs=4, windows=2, extend_to=4, looks=1),
    )
    assert resolve(settings, setup, "winner") == {"sendfile": False}


def test_a_study_of_an_earlier_tuner_resumes_with_the_settings_that_it_searched(settings, tmp_path):
    """Its facts say nothing of the load; what cannot act was searched then."""
    facts = SpaceFacts(names={**HOST}, load={"pages": 1, "installed": False})
    space = load_space(["nginx"], facts=facts, base=tmp_path)
    kept = json.loads(json.dumps(facts_to_json(facts, {})))
    whole = replace(settings, space=("nginx",))
    setup = replace(make_setup(whole, space), space_facts=kept)
    assert "open_file_cache_valid" in space.inert

    earlier, today = (open_in_memory(SimulatedHost().clock) for _ in range(2))
    earlier.remember(SPACE_FACTS, {name: value for name, value in kept.items() if name != "load"})
    today.remember(SPACE_FACTS, kept)

    assert as_begun(setup, earlier).space.inert == {}
    assert as_begun(setup, today) is setup
    assert as_begun(setup, None) is setup
