"""When the winner must not ship, the next best configuration is confirmed."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.more import leave_to_more
from tests.unit.simulation import (
    SMALL_PLAN,
    SimulatedHost,
    cached_files_win,
    make_campaign,
    open_in_memory,
    write_study,
)
from tuner.campaign.campaign import run_campaign
from tuner.campaign.stages.confirm import read_gain
from tuner.records import Failure, Role
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM, config_key
from tuner.study.facts import CONFIRMATION, REJECTED, ROBUSTNESS
from tuner.study.presets import PRESETS

CRASH = Failure(kind="crashed", reason="nginx: it was killed by signal -11")
ARMS = (DEFAULT_ARM, WINNER_ARM)
PLAN = replace(SMALL_PLAN, trials=16)


def strike(campaign, seen):
    """Return the key of the first configuration that came to be confirmed, once there is one."""
    planned = campaign.storage.recall(CONFIRMATION)
    if planned is not None and not seen:
        seen.append(config_key(planned.config))
    return seen[0] if seen else None


def crash_the_first(campaign, host, seen):
    host.fault = lambda config: CRASH if config_key(config) == strike(campaign, seen) else None


def fail_requests_of_the_first(campaign, host, seen):
    host.failure_rate = lambda config: 0.05 if config_key(config) == strike(campaign, seen) else 0.0


WAYS = {
    crash_the_first: "not confirmed: winner: nginx: it was killed by signal -11",
    fail_requests_of_the_first: "not confirmed: the winner breaks failure_rate <= default",
}


@pytest.fixture
def started(tmp_path):
    host = SimulatedHost()
    settings = write_study(tmp_path)
    storage = open_in_memory(host.clock)
    return settings, host, storage, make_campaign(settings, host, storage, plan=PLAN)


def assert_the_next_best_was_confirmed(campaign, host, seen, reason):
    storage = campaign.storage
    (rejected, *_) = storage.recall(REJECTED)
    planned = storage.recall(CONFIRMATION)
    gain = read_gain(storage, campaign.trials, campaign.default, campaign.setup.settings.constraints)
    assert (config_key(rejected.config), rejected.reason) == (seen[0], reason)
    assert config_key(planned.config) != seen[0]
    assert planned.first_block >= PLAN.pairs
    assert gain.verdict == "improved"
    # Its pairs are its own: none of them is of the one that was rejected.
    confirmed = [trial for trial in campaign.trials if trial.role is Role.CONFIRM]
    later = [trial for trial in confirmed if trial.block >= planned.first_block]
    arms = {config_key(trial.config) for trial in later if trial.arm != DEFAULT_ARM}
    assert arms == {config_key(planned.config)}
    pairs = {}
    for trial in later:
        if trial.counts:
            pairs.setdefault((trial.block, trial.session), {})[trial.arm] = trial.log_goodput
    logs = [pair[WINNER_ARM] - pair[DEFAULT_ARM] for pair in pairs.values() if len(pair) == len(ARMS)]
    assert len(logs) == gain.pairs
    assert math.log(gain.ratio) == pytest.approx(np.mean(logs))
    # Four standard errors: of the trials' own luck and of their windows', for both sides.
    error = math.hypot(host.sigma_trial, host.sigma_window / math.sqrt(planned.windows))
    error *= math.sqrt(2 / gain.pairs)
    assert math.log(gain.ratio) == pytest.approx(cached_files_win(planned.config), abs=4 * error)


@pytest.mark.parametrize("way", WAYS)
def test_when_the_winner_must_not_ship_the_next_best_is_confirmed(started, way):
    _, host, _, campaign = started
    seen = []
    way(campaign, host, seen)

    assert run_campaign(campaign) == "confirmed"
    assert_the_next_best_was_confirmed(campaign, host, seen, WAYS[way])


@pytest.mark.parametrize(
    ("way", "after"),
    leave_to_more(
        product(WAYS, ("rejection", "plan", "pair")),
        (crash_the_first, "rejection"),
        (fail_requests_of_the_first, "plan"),
        (crash_the_first, "pair"),
    ),
)
def test_cut_off_between_two_confirmations_the_study_resumes_with_the_next_best(started, way, after):
    settings, host, storage, campaign = started
    seen = []
    way(campaign, host, seen)
    faults = host.fault

    def is_now(planned, trials):
        if storage.recall(REJECTED) is None:
            return False
        is_planned = config_key(planned.config) != seen[0]
        confirmed = [
            each for each in trials if each.role is Role.CONFIRM and each.block >= planned.first_block
        ]
        return {"rejection": True, "plan": is_planned, "pair": is_planned and len(confirmed) > 2}[after]

    def cut_off(config):
        if is_now(storage.recall(CONFIRMATION), campaign.trials):
            raise KeyboardInterrupt
        return faults(config)

    host.fault = cut_off
    with pytest.raises(KeyboardInterrupt):
        run_campaign(campaign)
    host.fault = faults
    host.clock.sleep(3600)

    again = make_campaign(settings, host, storage, plan=PLAN, session="second")

    assert run_campaign(again) == "confirmed"
    assert len(storage.recall(REJECTED)) == 1
    assert_the_next_best_was_confirmed(again, host, seen, WAYS[way])


def test_where_every_winner_must_not_ship_the_last_reason_is_the_verdict(tmp_path):
    host = SimulatedHost()
    storage = open_in_memory(host.clock)
    plan = replace(PLAN, minutes=4)
    campaign = make_campaign(write_study(tmp_path), host, storage, plan=plan)
    began_s = host.clock.time()
    default = dict(campaign.default)
    host.failure_rate = lambda config: (
        0.05 if storage.recall(CONFIRMATION) and dict(config) != default else 0.0
    )

    verdict = run_campaign(campaign)

    rejected = storage.recall(REJECTED)
    assert verdict == "not confirmed: the winner breaks failure_rate <= default"
    assert len({config_key(each.config) for each in rejected}) == len(rejected) > 1
    assert host.clock.time() - began_s < 1.15 * 60 * plan.minutes


def test_a_finished_study_is_not_confirmed_anew(started):
    settings, host, storage, campaign = started
    crash_the_first(campaign, host, [])
    verdict = run_campaign(campaign)
    made = len(storage.trials())

    again = make_campaign(settings, host, storage, plan=PLAN, session="second")

    assert run_campaign(again) == verdict
    assert len(storage.trials()) == made


def little_helps(config):
    """A gain so small that the pairs which would show it to a third do not fit in any quick study."""
    return cached_files_win(config) / 6


@pytest.mark.parametrize("seed", leave_to_more([1, 2, 3]))
def test_what_is_left_after_a_refusal_goes_to_the_next_best_however_many_pairs_were_planned(tmp_path, seed):
    """As planned, proving a small gain takes all the time that there is, so that none is ever left for it."""
    host = SimulatedHost(worth=little_helps, sigma_trial=0.01, sigma_window=0.03, seed=seed)
    storage = open_in_memory(host.clock)
    plan = replace(PRESETS["quick"], race_s=0, ablation_s=0)
    campaign = make_campaign(write_study(tmp_path, seed=seed), host, storage, plan=plan)
    began_s = host.clock.time()

    def fail_requests_of_the_first(config, check_load):
        first = storage.recall(ROBUSTNESS)[0].config
        return 0.2 if check_load.changes == "connections" and config == first else 0.0

    host.failure_rate_in = fail_requests_of_the_first

    run_campaign(campaign)

    (rejected, *_) = storage.recall(REJECTED)
    planned = storage.recall(CONFIRMATION)
    assert config_key(rejected.config) == config_key(storage.recall(ROBUSTNESS)[0].config)
    assert planned is not None
    assert config_key(planned.config) != config_key(rejected.config)
    assert len([each for each in campaign.trials if each.role is Role.CONFIRM]) >= 2 * plan.pairs
    assert host.clock.time() - began_s < 60 * plan.minutes


def two_settings_help(config):
    return (0.18 if config["open_file_cache"] else 0.0) + (0.15 if config["multi_accept"] else 0.0)


@pytest.mark.parametrize("seed", leave_to_more([1, 2, 3]))
def test_after_an_outage_a_quick_study_confirms_what_lacks_the_setting_to_blame(tmp_path, seed):
    host = SimulatedHost(
        worth=two_settings_help, seed=seed,
        failure_rate_in=lambda config, load: 0.3 * bool(config["open_file_cache"] and not load.keepalive),
    )  # fmt: skip
    storage = open_in_memory(host.clock)
    campaign = make_campaign(write_study(tmp_path, seed=seed), host, storage, plan=PRESETS["quick"])
    began_s = host.clock.time()

    assert run_campaign(campaign) == "confirmed"

    rejected, planned = storage.recall(REJECTED), storage.recall(CONFIRMATION)
    assert all(each.config["open_file_cache"] for each in rejected)
    assert len(rejected) <= 2
    assert planned.config["multi_accept"]
    assert not planned.config["open_file_cache"]
    assert host.clock.time() - began_s < 60 * PRESETS["quick"].minutes
