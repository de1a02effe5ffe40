"""The smallest configuration by price, on a host whose truth is known."""

from dataclasses import replace

import pytest

from tests.more import leave_to_more
from tests.unit.simulation import (
    SIX,
    SIX_CHANGED,
    SMALL_PLAN,
    TUNED,
    SimulatedHost,
    make_campaign,
    open_in_memory,
    write_study,
)
from tuner.campaign.campaign import calibrate
from tuner.campaign.stages.ablation import ablate
from tuner.campaign.stages.shortlist import reject
from tuner.records import Failure, Role
from tuner.space import Hint
from tuner.statistics.ranking import config_key
from tuner.study.storage import Opening

PLAN = replace(SMALL_PLAN, ablation_s=150)
CRASH = Failure(kind="crashed", reason="it was killed")


def two_of_six_matter(config):
    return (0.2 if config["open_file_cache"] else 0.0) + (0.1 if config["multi_accept"] else 0.0)


def finalist_of(tmp_path, *, seed=1, plan=PLAN, trials=4, space=SIX, **host):
    """Measure a finalist a few times, and two others of its kind."""
    host = SimulatedHost(**{"worth": two_of_six_matter, "seed": seed, **host})
    settings = write_study(tmp_path, seed=seed)
    campaign = make_campaign(settings, host, open_in_memory(host.clock), plan=plan, space=space)
    calibrate(campaign)
    for config in [SIX_CHANGED] * trials + [
        SIX.complete({"open_file_cache": 500, "sendfile": False}),
        SIX.complete({"worker_connections": 4000, "tcp_nodelay": False}),
    ]:
        campaign.make(Opening(role=Role.SEARCH, config=config, point=SIX.encode(config)))
    return campaign, host


def measured(campaign):
    return {config_key(trial.config) for trial in campaign.trials if trial.counts}


@pytest.mark.parametrize("seed", leave_to_more(range(4)))
def test_where_two_of_six_lines_matter_few_are_shipped_with_nearly_all_of_the_gain(tmp_path, seed):
    campaign, _ = finalist_of(tmp_path, seed=seed, sigma_trial=0.015, sigma_window=0.02)
    assert len(SIX.changes(SIX_CHANGED)) == 6

    left = ablate(campaign, SIX_CHANGED)

    assert len(SIX.changes(left)) <= 3
    assert two_of_six_matter(left) >= 0.97 * two_of_six_matter(SIX_CHANGED)


@pytest.mark.parametrize("ablation_s", leave_to_more([0, 8, 16, 60], 0, 16))
@pytest.mark.parametrize("noise", leave_to_more([0.06, 0.01]))
def test_nothing_ships_that_was_never_measured(tmp_path, ablation_s, noise):
    plan = replace(PLAN, ablation_s=ablation_s)
    campaign, _ = finalist_of(tmp_path, plan=plan, trials=1, sigma_trial=noise, sigma_window=noise)

    assert config_key(ablate(campaign, SIX_CHANGED)) in measured(campaign)


def test_without_time_the_finalist_stays_as_it_is(tmp_path):
    campaign, host = finalist_of(tmp_path, plan=replace(PLAN, ablation_s=0))
    host.clock.sleep(3600)
    made = len(campaign.trials)

    left = ablate(campaign, SIX_CHANGED)

    assert config_key(left) in measured(campaign)
    assert len(campaign.trials) == made


def test_a_line_that_does_harm_is_left_out(tmp_path):
    campaign, _ = finalist_of(
        tmp_path, worth=lambda config: two_of_six_matter(config) - (0.0 if config["sendfile"] else 0.08)
    )

    left = ablate(campaign, SIX_CHANGED)

    assert left["sendfile"]
    assert left["open_file_cache"]


@pytest.mark.parametrize(("named", "is_kept"), [((), True), (("open_file_cache",), False), (TUNED, True)])
def test_a_line_that_no_expert_named_has_to_be_worth_more_where_others_were_named(tmp_path, named, is_kept):
    """Without `sendfile` it is 2.5 % quicker: more than the price of a line, less than four of them."""
    hints = {"open_file_cache": Hint(odds=3, direction="up"), "sendfile": Hint(odds=3, value=False)}
    space = replace(
        SIX,
        parameters=tuple(
            replace(each, hint=hints.get(each.name) if each.name in named else None)
            for each in SIX.parameters
        ),
    )
    campaign, _ = finalist_of(
        tmp_path,
        space=space,
        worth=lambda config: two_of_six_matter(config) + (0.0 if config["sendfile"] else 0.025),
        sigma_trial=0.001,
        sigma_window=0.001,
    )

    left = ablate(campaign, SIX_CHANGED)

    assert left["open_file_cache"]
    assert (not left["sendfile"]) == is_kept


def test_a_reduction_that_crashes_is_never_shipped_and_not_started_for_ever(tmp_path):
    """Without `multi_accept` every configuration with a cache crashes."""
    campaign, _ = finalist_of(
        tmp_path,
        worth=lambda config: 0.2 if config["open_file_cache"] else 0.0,
        fault=lambda config: (
            CRASH if config["open_file_cache"] == 2000 and not config["multi_accept"] else None
        ),
    )

    left = ablate(campaign, SIX_CHANGED)

    assert left["multi_accept"] or left["open_file_cache"] != 2000
    assert config_key(left) in measured(campaign)
    crashed = [config_key(trial.config) for trial in campaign.trials if not trial.counts]
    assert max(map(crashed.count, crashed), default=0) <= 3


def test_what_was_refused_does_not_come_back_as_a_reduction(tmp_path):
    campaign, _ = finalist_of(tmp_path)
    first = ablate(campaign, SIX_CHANGED)
    reject(campaign, first, "it fails beside slow clients")

    second = ablate(campaign, SIX_CHANGED)

    assert config_key(second) != config_key(first)
    assert config_key(second) in measured(campaign)
