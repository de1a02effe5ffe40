"""Winners that are to hold on several hosts: what is measured where, and what is claimed."""

import math
from collections import Counter
from dataclasses import replace

import pytest

from tests.unit.simulated_hosts import play, write_targets
from tests.unit.simulation import SMALL_PLAN, SimulatedHost, cached_files_win
from tuner.campaign.stages.confirm import read_gain
from tuner.records import Role

NAMES = ("ssh://a", "ssh://b", "ssh://c")
PLAN = replace(SMALL_PLAN, trials=4, calibration_trials=6, race_s=4, ablation_s=4, pairs=2, extend_to=2)
"""On hosts with little noise; each trial asks the model several times, which takes most of the time."""


def hosts(**unlike):
    """Return three hosts, the first the slowest by far; `c` may be another in what settings do."""
    made = {
        name: SimulatedHost(
            seed=number + 1, level=lambda _, speed=number / 5: speed, sigma_trial=0.002, sigma_window=0.002
        )
        for number, name in enumerate(NAMES)
    }
    for name, value in unlike.items():
        setattr(made["ssh://c"], name, value)
    return made


def gain_of(played):
    settings = played.settings
    return read_gain(played.storage, played.storage.trials(), played.experiment.default, settings.constraints)


def test_each_host_confirms_with_pairs_of_its_own(tmp_path):
    played = play(write_targets(tmp_path, NAMES), hosts(), plan=PLAN)

    assert (played.failures, played.verdict) == ({}, "confirmed")
    gain = gain_of(played)
    assert [*gain.by_host] == [*NAMES]
    confirming = [trial for trial in played.storage.trials() if trial.role is Role.CONFIRM]
    assert Counter(trial.host for trial in confirming) == dict.fromkeys(NAMES, 2 * PLAN.pairs)
    assert all(each.ratio == pytest.approx(math.exp(0.18), rel=0.03) for each in gain.by_host.values())
    assert gain.low == min(each.low for each in gain.by_host.values())


def test_beside_others_that_show_the_noise_one_trial_of_the_default_is_enough_on_a_host(tmp_path):
    played = play(write_targets(tmp_path, NAMES), hosts(), plan=replace(PLAN, calibration_trials=3))

    assert not played.failures
    for name in NAMES:
        roles = [trial.role for trial in played.storage.trials() if trial.host == name]
        assert roles[:2] == [Role.BASELINE, Role.SEARCH]


def harmful_there(config):
    """Worth a tenth less than nothing where elsewhere it is worth a fifth."""
    return -0.1 if config["open_file_cache"] else 0.0


def test_a_gain_that_one_host_turns_into_a_loss_is_not_claimed(tmp_path):
    played = play(write_targets(tmp_path, NAMES), hosts(worth=harmful_there), plan=PLAN)

    assert not played.failures
    assert played.verdict != "confirmed"


def test_the_mean_may_be_a_gain_where_one_host_loses(tmp_path):
    settings = write_targets(tmp_path, NAMES, "across: mean\n")
    played = play(settings, hosts(worth=lambda config: 0.2 * cached_files_win(config)), plan=PLAN)

    gain = gain_of(played)
    assert played.verdict == "confirmed"
    logs = [math.log(each.ratio) for each in gain.by_host.values()]
    assert math.log(gain.ratio) == pytest.approx(sum(logs) / 3)
    assert gain.ratio == pytest.approx(math.exp(0.18 * 2.2 / 3), rel=0.03)


def test_what_fails_on_one_host_is_no_winner(tmp_path):
    failing = hosts(failure_rate=lambda config: 0.05 if config["open_file_cache"] else 0.0)
    played = play(write_targets(tmp_path, NAMES), failing, plan=PLAN)

    assert not played.failures
    assert played.verdict != "confirmed"
