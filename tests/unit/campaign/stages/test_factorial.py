"""Factorial trials around a finalist, on a host whose truth is known."""

import math
from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest

from tests.unit.simulation import (
    SIX,
    SIX_CHANGED,
    SMALL_PLAN,
    Log,
    SimulatedHost,
    make_campaign,
    open_in_memory,
    write_study,
)
from tuner.campaign.campaign import calibrate, run_campaign
from tuner.campaign.stages.ablation import ablate
from tuner.campaign.stages.confirm import CONFIRMED
from tuner.campaign.stages.factorial import choose_row, measure_effects
from tuner.explain.explanation import Finding
from tuner.explain.study import explain
from tuner.records import Failure, Role
from tuner.statistics.ranking import config_key
from tuner.study.storage import Opening

PLAN = replace(SMALL_PLAN, factorial=8, ablation_s=35)
CRASH = Failure(kind="crashed", reason="it was killed")


def three_of_six_matter(config):
    moved = [config["open_file_cache"] > 0, config["multi_accept"], not config["tcp_nodelay"]]
    return 0.2 * moved[0] + 0.15 * moved[1] + 0.1 * moved[2]


def campaign_of(tmp_path, *, plan=PLAN, finalist=SIX_CHANGED, seed=1, **host):
    """Measure a finalist that was found as a whole: no trial has some of its settings only."""
    host = SimulatedHost(**{"worth": three_of_six_matter, "seed": seed, **host})
    settings = write_study(tmp_path, seed=seed)
    campaign = make_campaign(settings, host, open_in_memory(host.clock), plan=plan, space=SIX)
    calibrate(campaign)
    for _ in range(4):
        campaign.make(Opening(role=Role.SEARCH, config=finalist, point=SIX.encode(finalist)))
    return campaign


class Counts(Log):
    """Writes down how many trials of its stage were done at each step."""

    def __init__(self):
        super().__init__()
        self.done = []

    def stage(self, name, done, total):
        super().stage(name, done, total)
        self.done.append(done)


def ablations(campaign):
    return [trial for trial in campaign.trials if trial.role is Role.ABLATION]


def keys_of(campaign):
    return [config_key(trial.config) for trial in ablations(campaign)]


def settings_of(campaign):
    found = explain(SIX, campaign.trials, SIX_CHANGED, metric="goodput_rps", seed=1)
    return {setting.parameter: setting for setting in found.settings}


@pytest.mark.parametrize("factors", [2, 3, 5, 8, 11])
def test_as_many_trials_as_settings_tell_all_of_them_apart(factors):
    rows = np.array([row for row in product((-1.0, 1.0), repeat=factors) if 0 < row.count(1.0) < factors])
    known = np.vstack([-np.ones(factors), np.ones(factors)])
    for _ in range(factors):
        known = np.vstack([known, rows[choose_row(rows, known)]])

    design = np.hstack([np.ones((len(known), 1)), known])
    assert np.linalg.matrix_rank(design) == factors + 1
    variances = np.linalg.inv(design.T @ design).diagonal()
    assert variances.max() < 1.0  # an effect is half the difference of its levels


def test_settings_that_were_always_tried_together_are_told_apart(tmp_path):
    campaign = campaign_of(tmp_path)
    assert {setting.finding for setting in settings_of(campaign).values()} == {Finding.UNKNOWN}

    measure_effects(campaign, SIX_CHANGED)

    settings = settings_of(campaign)
    helps = {name for name, setting in settings.items() if setting.finding is Finding.HELPS}
    assert len(ablations(campaign)) == 8
    assert helps == {"open_file_cache", "multi_accept", "tcp_nodelay"}
    assert all(
        settings[name].effect.low <= math.exp(effect) <= settings[name].effect.high
        for name, effect in {"open_file_cache": 0.2, "multi_accept": 0.15, "sendfile": 0.0}.items()
    )


def test_each_trial_has_some_of_the_settings_and_is_allowed(tmp_path):
    campaign = campaign_of(tmp_path)

    measure_effects(campaign, SIX_CHANGED)

    for trial in ablations(campaign):
        assert SIX.changes(trial.config)
        assert SIX.changes(trial.config).items() < SIX.changes(SIX_CHANGED).items()
        assert not SIX.violations(trial.config)
        assert not SIX.lacks(trial.config)


def test_a_later_session_makes_the_trials_that_are_missing(tmp_path):
    whole, again = campaign_of(tmp_path), campaign_of(tmp_path)
    measure_effects(whole, SIX_CHANGED)
    again.plan = replace(PLAN, factorial=3)
    measure_effects(again, SIX_CHANGED)
    assert len(ablations(again)) == 3

    again.plan = PLAN
    measure_effects(again, SIX_CHANGED)
    measure_effects(again, SIX_CHANGED)

    assert keys_of(again) == keys_of(whole)


def test_what_crashed_is_not_tried_again(tmp_path):
    campaign = campaign_of(
        tmp_path,
        fault=lambda config: CRASH if config["open_file_cache"] and not config["multi_accept"] else None,
    )

    measure_effects(campaign, SIX_CHANGED)

    crashed = [config_key(trial.config) for trial in ablations(campaign) if not trial.counts]
    assert crashed
    assert len(crashed) == len(set(crashed))


def test_few_settings_are_tried_more_than_once(tmp_path):
    two = SIX.complete({"open_file_cache": 2000, "multi_accept": True})
    campaign = campaign_of(tmp_path, finalist=two)

    measure_effects(campaign, two)

    assert sorted(Counter(keys_of(campaign)).values()) == [4, 4]


def test_a_single_setting_needs_none(tmp_path):
    one = SIX.complete({"open_file_cache": 2000})
    campaign = campaign_of(tmp_path, finalist=one)

    measure_effects(campaign, one)

    assert not ablations(campaign)


def test_they_end_with_the_time_of_the_study(tmp_path):
    campaign = campaign_of(tmp_path, plan=replace(PLAN, factorial=1000))
    campaign.clock.sleep(campaign.schedule.time_left_s() - 60)

    measure_effects(campaign, SIX_CHANGED)

    assert ablations(campaign)
    assert 0 < campaign.schedule.time_left_s() < 20


def test_before_the_confirmation_they_leave_it_its_time(tmp_path):
    campaign = campaign_of(tmp_path)
    campaign.clock.sleep(campaign.schedule.time_left_s() - 30)

    ablate(campaign, SIX_CHANGED)

    assert not ablations(campaign)


def test_half_of_the_ablation_is_theirs(tmp_path):
    plan = replace(PLAN, factorial=1000, ablation_s=20)
    campaign = campaign_of(tmp_path, plan=plan, sigma_trial=0.06, sigma_window=0.06)
    campaign.progress = Counts()

    ablate(campaign, SIX_CHANGED)

    cost_s = campaign.schedule.mean_cost_s()
    assert 20 < campaign.schedule.spent_s(Role.ABLATION) <= 40 + cost_s
    assert campaign.progress.done == [*range(len(ablations(campaign)) + 1)]


def test_a_confirmed_winner_is_explained_in_the_time_that_is_left(tmp_path):
    host = SimulatedHost(worth=three_of_six_matter)
    plan = replace(PLAN, trials=20, ablation_s=0)
    campaign = make_campaign(
        write_study(tmp_path), host, open_in_memory(host.clock), plan=plan, space=SIX
    )  # fmt: skip

    assert run_campaign(campaign) == CONFIRMED

    last = max(trial.number for trial in campaign.trials if trial.role is Role.CONFIRM)
    after = [trial for trial in campaign.trials if trial.number > last]
    assert 8 - 1 <= len(after) <= 8  # one may have shown what is left without idle settings
    assert {trial.role for trial in after} == {Role.ABLATION}
    made = len(campaign.trials)
    assert run_campaign(campaign) == CONFIRMED
    assert len(campaign.trials) == made


@pytest.mark.statistical
def test_effects_are_named_and_their_intervals_hold(tmp_path):
    """Six settings, of which about half act, by 8 to 25 %."""
    plan, held, named, idle = replace(PLAN, factorial=16, ablation_s=100), [], [], []
    for seed in range(12):
        rng = Random(seed)  # noqa: S311 - no secret
        effects = {name: rng.choice([0.0, rng.uniform(0.08, 0.22)]) for name in SIX.changes(SIX_CHANGED)}
        campaign = campaign_of(
            tmp_path, plan=plan, seed=seed, sigma_trial=0.02, sigma_window=0.03,
            worth=lambda config, effects=effects: sum(effects[name] for name in SIX.changes(config)),
        )  # fmt: skip
        measure_effects(campaign, SIX_CHANGED)
        for name, setting in settings_of(campaign).items():
            held.append(math.log(setting.effect.low) <= effects[name] <= math.log(setting.effect.high))
            (named if effects[name] else idle).append(setting.finding is Finding.HELPS)

    assert np.mean(held) >= 0.9
    assert np.mean(named) >= 0.7
    assert sum(idle) <= 2
