"""What is lost with its host or its worker is begun once more, and not a third time."""

from dataclasses import replace

import pytest

from tests.more import leave_to_more
from tests.unit.simulated_hosts import play
from tests.unit.simulation import (
    SMALL_PLAN,
    TUNED,
    SimulatedClock,
    SimulatedHost,
    nothing_matters,
    open_in_memory,
    space_of,
    write_study,
)
from tests.unit.trials import DEFAULT
from tests.unit.trials import trial as make_trial
from tuner.campaign.lost_trials import may_begin
from tuner.campaign.suggest import observe
from tuner.errors import TargetError
from tuner.records import Failure, State
from tuner.statistics.ranking import config_key

NAMES = ("ssh://a", "ssh://b", "ssh://c", "ssh://d")
PLAN = replace(SMALL_PLAN, trials=6)
TRIED = {**DEFAULT, "sendfile": False}


def take_down(host, condemned):
    """Let a host be lost with each configuration that is condemned."""

    def fault(config):
        if condemned(config):
            raise TargetError("the host is gone")

    host.fault = fault
    return host


def play_with(tmp_path, condemned, worth=nothing_matters):
    hosts = {
        name: take_down(SimulatedHost(seed=seed, worth=worth), condemned) for seed, name in enumerate(NAMES)
    }
    return play(write_study(tmp_path), hosts, plan=PLAN)


def first_preset():
    space = space_of(*TUNED)
    return space.complete(space.presets[0].values)


def test_a_configuration_that_takes_its_host_down_takes_no_third_one(tmp_path):
    deadly = config_key(first_preset())
    played = play_with(tmp_path, lambda config: config_key(config) == deadly)

    assert {type(error) for error in played.failures.values()} == {TargetError}
    assert len(played.failures) == 2
    assert played.verdict is not None
    tried = [trial for trial in played.storage.trials() if config_key(trial.config) == deadly]
    assert [trial.state for trial in tried] == [State.INVALID, State.INVALID, State.FAILED]
    assert "lost the host or the worker twice" in tried[-1].failure.reason


@pytest.mark.parametrize("harmless", leave_to_more([1, 3, 4]))
def test_nor_does_one_that_was_harmless_at_first_but_for_hosts_that_are_at_it_at_once(tmp_path, harmless):
    deadly, begun = config_key(first_preset()), []

    def condemned(config):
        begun.extend([config] if config_key(config) == deadly else [])
        return config_key(config) == deadly and len(begun) > harmless

    played = play_with(tmp_path, condemned, worth=lambda config: 0.2 * (config_key(config) == deadly))

    assert played.failures
    assert played.verdict is not None


def test_the_model_learns_that_what_was_lost_twice_fails(tmp_path):
    deadly = first_preset()
    played = play_with(tmp_path, lambda config: dict(config) == deadly)

    point = played.experiment.setup.space.encode(deadly)
    (seen,) = (each for each in observe(played.experiment) if each.point == point)
    assert seen.log_ratio is None
    assert seen.constraints["started"] > 0


LOST = {"state": State.INVALID, "failure": Failure(kind="interrupted", reason="cut off")}


@pytest.fixture
def storage():
    return open_in_memory(SimulatedClock())


def lost(number, **unlike):
    return replace(make_trial(number, config=TRIED), host="web1", **{**LOST, **unlike})


def test_what_was_lost_on_several_hosts_at_once_was_lost_once(storage):
    at_once = [lost(1), lost(2), lost(3)]
    assert may_begin(storage, at_once, TRIED)

    begun_before_that_was_known = [*at_once, replace(lost(4), state=State.RUNNING, failure=None)]
    assert may_begin(storage, begun_before_that_was_known, TRIED)
    assert not may_begin(storage, [*at_once, lost(4)], TRIED)
    assert may_begin(storage, [*at_once, lost(4)], DEFAULT)


def test_what_gave_a_measurement_in_between_is_begun_again(storage):
    assert may_begin(storage, [lost(1)], TRIED)
    since = [lost(1), make_trial(2, 1000.0, config=TRIED), lost(3)]
    assert may_begin(storage, since, TRIED)
    assert not may_begin(storage, [*since, lost(4)], TRIED)


def test_what_a_person_ended_is_not_lost(storage):
    stopped = {"failure": Failure(kind="stopped", reason="cut off")}
    trials = [lost(number, **stopped) for number in range(4)]
    assert all(may_begin(storage, trials[:count], TRIED) for count in range(5))
