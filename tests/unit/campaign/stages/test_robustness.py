"""The candidate under loads that it was not tuned on, on a simulated host."""

from dataclasses import replace

import pytest

from tests.unit.simulation import (
    SMALL_PLAN,
    TUNED,
    SimulatedHost,
    cached_files_win,
    make_campaign,
    open_in_memory,
    space_of,
    write_study,
)
from tuner.campaign.campaign import calibrate
from tuner.campaign.stages.robustness import CANDIDATE_ARM, check_robustness, read_robustness
from tuner.records import Failure, Role, State
from tuner.statistics.confirmation.robustness import describe
from tuner.statistics.ranking import DEFAULT_ARM
from tuner.study.facts import ROBUSTNESS

PLAN = replace(SMALL_PLAN, robustness_s=20)
SPACE = space_of(*TUNED)
CANDIDATE = SPACE.complete({"open_file_cache": 2000})
ANOTHER = SPACE.complete({"open_file_cache": 1000})
ALL = ["25 connections", "400 connections", "Connection: close", "60 slow clients"]


def is_candidate(config):
    return bool(config["open_file_cache"])


def loses_with_many(config, check_load):
    return cached_files_win(config) - (1.4 if is_candidate(config) and check_load.connections == 400 else 0.0)


@pytest.fixture
def settings(tmp_path):
    return write_study(tmp_path)


def campaign_on(settings, host, **given):
    campaign = make_campaign(settings, host, open_in_memory(host.clock), plan=PLAN, **given)
    calibrate(campaign)
    return campaign


def of_robustness(campaign):
    return [trial for trial in campaign.trials if trial.role is Role.ROBUSTNESS]


def named(found):
    return {each.check_load.name: each for each in found.checked}


def test_a_candidate_that_is_better_everywhere_holds(settings):
    campaign = campaign_on(settings, SimulatedHost())

    found = check_robustness(campaign, CANDIDATE)

    assert found.verdict == "holds"
    assert [each.check_load.name for each in found.checked] == ALL
    assert all(1.0 < each.low < 1.197 < each.high for each in found.checked)
    assert not found.left_out
    assert [trial.arm for trial in of_robustness(campaign)].count(CANDIDATE_ARM) == found.pairs == 2


def test_a_candidate_that_loses_most_of_its_goodput_with_four_times_the_connections_loses(settings):
    campaign = campaign_on(settings, SimulatedHost(worth_in=loses_with_many))

    found = check_robustness(campaign, CANDIDATE)

    assert found.verdict == "loses"
    assert {name: each.finding for name, each in named(found).items()} == dict.fromkeys(ALL, "holds") | {
        "400 connections": "loses"
    }
    assert named(found)["400 connections"].ratio == pytest.approx(0.295, abs=0.02)


def test_a_loss_of_a_few_percent_is_seen_and_accepted(settings):
    host = SimulatedHost(worth_in=lambda config, _: -0.04 if is_candidate(config) else 0.0, sigma_trial=0.001)
    campaign = campaign_on(settings, host)
    exact = replace(PLAN, robustness_s=400)
    campaign.plan = exact

    found = check_robustness(campaign, CANDIDATE)

    assert found.verdict == "holds"
    assert "slower" in {each.finding for each in found.warnings}


def test_a_candidate_that_fails_requests_of_check_loads_fails(settings):
    host = SimulatedHost(
        failure_rate_in=lambda config, check_load: 0.2 * (is_candidate(config) and not check_load.keepalive)
    )

    found = check_robustness(campaign_on(settings, host), CANDIDATE)

    assert found.verdict == "fails"
    assert named(found)["Connection: close"].finding == "fails"
    assert named(found)["Connection: close"].candidate.failure_rate == pytest.approx(0.2, abs=0.001)


def test_more_failures_that_are_no_outage_are_told_and_reject_nothing(settings):
    host = SimulatedHost(failure_rate_in=lambda config, _: 0.02 if is_candidate(config) else 0.001)

    found = check_robustness(campaign_on(settings, host), CANDIDATE)

    assert found.verdict == "holds"
    assert {each.finding for each in found.warnings} == {"fails more"}


def test_an_outage_that_comes_now_and_then_is_looked_at_again(settings):
    """One trial of two that serves nothing may be an accident; every second one of five is none."""
    trials = iter(range(100))

    def fails_every_other_time(config, check_load):
        is_now = check_load.connections == 400 and is_candidate(config)
        return 0.6 if is_now and next(trials) % 2 else 0.0

    campaign = campaign_on(settings, SimulatedHost(failure_rate_in=fails_every_other_time))

    found = check_robustness(campaign, CANDIDATE)

    assert 2 < found.pairs <= 5
    assert found.is_rejected or found.warnings
    assert read_robustness(campaign.storage, campaign.trials, campaign.default) == (found,)


def test_failures_that_the_default_has_too_are_no_new_ones(settings):
    host = SimulatedHost(failure_rate_in=lambda config, _: 0.03 if is_candidate(config) else 0.02)

    assert check_robustness(campaign_on(settings, host), CANDIDATE).verdict == "holds"


def test_a_candidate_that_does_not_start_fails(settings):
    crash = Failure(kind="crashed", reason="nginx: it was killed by signal -11")
    host = SimulatedHost(fault=lambda config: crash if is_candidate(config) else None)
    campaign = campaign_on(settings, host)

    found = check_robustness(campaign, CANDIDATE)

    assert (found.verdict, found.failure) == ("fails", crash.reason)
    before = len(campaign.trials)
    assert check_robustness(campaign, CANDIDATE) == found
    assert len(campaign.trials) == before
    assert read_robustness(campaign.storage, campaign.trials, campaign.default) == (found,)


def test_trials_under_check_loads_never_enter_the_model(settings):
    campaign = campaign_on(settings, SimulatedHost(worth_in=lambda *_: -1.0))
    before, baselines = campaign.ranking(), campaign.baselines()

    check_robustness(campaign, CANDIDATE)

    after = campaign.ranking()
    assert (after.noise, after.speedups, after.entries) == (before.noise, before.speedups, before.entries)
    assert campaign.baselines() == baselines


def test_what_was_found_is_read_again_from_the_storage_and_not_measured_again(settings):
    campaign = campaign_on(settings, SimulatedHost(worth_in=loses_with_many))
    first = check_robustness(campaign, CANDIDATE)
    second = check_robustness(campaign, ANOTHER)
    made = len(campaign.trials)

    assert check_robustness(campaign, CANDIDATE) == first
    assert len(campaign.trials) == made
    # Noise that is known better by then changes nothing.
    calibrated = campaign.storage.trials()
    assert read_robustness(campaign.storage, calibrated, campaign.default) == (first, second)
    blocks = [(trial.block, trial.arm) for trial in of_robustness(campaign)]
    assert len(set(blocks)) == len(blocks)


@pytest.mark.parametrize("cut", range(0, 24, 3))
def test_a_check_that_was_cut_off_resumes_and_keeps_its_whole_pairs(settings, cut):
    host = SimulatedHost(worth_in=loses_with_many)
    storage = open_in_memory(host.clock)
    campaign = make_campaign(settings, host, storage, plan=PLAN)
    calibrate(campaign)
    host.steps, host.cut_at = 0, cut
    with pytest.raises(KeyboardInterrupt):
        check_robustness(campaign, CANDIDATE)
    host.cut_at = None

    again = make_campaign(settings, host, storage, plan=PLAN, session="second")
    found = check_robustness(again, CANDIDATE)

    assert found.verdict == "loses"
    assert all(trial.state is not State.RUNNING for trial in storage.trials())
    whole = [trial for trial in of_robustness(again) if trial.state is State.COMPLETE]
    assert all([window.check_load for window in trial.windows] == ALL for trial in whole)
    assert len(whole) <= 5
    (planned,) = storage.recall(ROBUSTNESS)
    assert planned.config == CANDIDATE


def test_without_time_for_it_nothing_is_measured_and_nothing_is_found(settings):
    campaign = campaign_on(settings, SimulatedHost(worth_in=loses_with_many))
    campaign.plan = SMALL_PLAN

    found = check_robustness(campaign, CANDIDATE)

    assert (found.verdict, found.checked, found.pairs) == ("holds", (), 0)
    assert not of_robustness(campaign)


def test_both_sides_of_a_pair_stand_next_to_each_other(settings):
    campaign = campaign_on(settings, SimulatedHost())

    check_robustness(campaign, CANDIDATE)

    trials = of_robustness(campaign)
    assert [trial.block for trial in trials] == [0, 0, 1, 1]
    assert {frozenset((a.arm, b.arm)) for a, b in zip(trials[::2], trials[1::2], strict=True)} == {
        frozenset((DEFAULT_ARM, CANDIDATE_ARM))
    }


MIX = "check_loads: [{name: yesterday, connections: 30, requests: [{path: /a}, {path: /b}]}]\n"


def test_a_candidate_that_cannot_serve_another_mix_of_the_study_is_rejected(tmp_path):
    settings = write_study(tmp_path, more=MIX)

    def fails_with_the_mix(config, check_load):
        return 0.3 if is_candidate(config) and check_load.connections == 30 else 0.0

    host = SimulatedHost(failure_rate_in=fails_with_the_mix)

    found = check_robustness(campaign_on(settings, host), CANDIDATE)

    assert list(named(found)) == [*ALL, "requests of yesterday"]
    assert found.verdict == "fails"
    assert named(found)["requests of yesterday"].finding == "fails"
    said = describe(found)
    assert said.startswith("with requests of yesterday the default serves ")
    assert said.endswith("and fails 30 %")
