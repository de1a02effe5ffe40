"""A campaign that is cut off anywhere resumes with the next run, and nothing that was finished is lost."""

from dataclasses import replace

import pytest

from tests.more import leave_to_more
from tests.unit.simulation import (
    SMALL_PLAN,
    SimulatedHost,
    make_campaign,
    nothing_helps,
    open_in_memory,
    open_on_disk,
    write_study,
)
from tuner.campaign.campaign import run_campaign
from tuner.records import Role, State
from tuner.statistics.ranking import config_key
from tuner.study.open_storage import open_storage

LAST_STEP = 128
"""A campaign of this size takes a few more."""
WHOLE_STUDY = 38
"""Trials of one when nothing goes wrong, at the most: 33 where a step of the ablation is spared."""
FAR_APART_S = 3600


def run_cut_off(settings, host, storage, cuts):
    """Run one campaign after the other, each cut off after so many steps, until one comes to its end."""
    for number, cut in enumerate((*cuts, None)):
        host.steps, host.cut_at = 0, cut
        campaign = make_campaign(settings, host, storage, session=f"session {number}")
        try:
            return campaign, run_campaign(campaign)
        except KeyboardInterrupt:
            host.clock.sleep(FAR_APART_S)
    raise AssertionError


@pytest.mark.parametrize("cut", leave_to_more(range(0, LAST_STEP, 11), 0, 33, 77, 110))
def test_a_study_that_was_cut_off_anywhere_reaches_its_verdict_and_keeps_every_window(tmp_path, cut):
    settings = write_study(tmp_path)
    host = SimulatedHost(cut_at=cut)
    storage = open_in_memory(host.clock)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(make_campaign(settings, host, storage))
    before = {trial.number: trial for trial in storage.trials()}
    host.clock.sleep(FAR_APART_S)
    host.cut_at = None

    campaign = make_campaign(settings, host, storage, session="second")
    verdict = run_campaign(campaign)

    after = {trial.number: trial for trial in storage.trials()}
    assert verdict == "confirmed"
    assert all(after[number].windows == trial.windows for number, trial in before.items())
    assert all(trial.state is not State.RUNNING for trial in after.values())
    assert campaign.trials == list(after.values())
    assert len(after) <= WHOLE_STUDY + 3


def test_a_study_that_is_cut_off_again_and_again_reaches_its_verdict(tmp_path):
    settings = write_study(tmp_path)
    host = SimulatedHost()
    storage = open_in_memory(host.clock)

    campaign, verdict = run_cut_off(settings, host, storage, cuts=range(11, 29, 3))

    assert verdict == "confirmed"
    assert len({trial.session for trial in campaign.trials}) == 7


@pytest.mark.parametrize("cut", leave_to_more(range(3, LAST_STEP, 17), 54, 105))
def test_every_arm_of_every_comparison_is_one_configuration(tmp_path, cut):
    """What is compared is settled before the first pair; a later session must not put in another."""
    settings = write_study(tmp_path)
    host = SimulatedHost()
    campaign, _ = run_cut_off(settings, host, open_in_memory(host.clock), cuts=[cut])

    arms: dict[tuple[Role, str], set[str]] = {}
    for trial in campaign.trials:
        if trial.arm:
            arms.setdefault((trial.role, trial.arm), set()).add(config_key(trial.config))
    assert {arm: len(configs) for arm, configs in arms.items()} == dict.fromkeys(arms, 1)


def run_twice(folder, cut_off):
    """Run a campaign that is cut off, and another one to its end an hour later; return that."""
    settings = write_study(folder)
    host = SimulatedHost()
    storage = open_in_memory(host.clock)
    campaign = make_campaign(settings, host, storage)
    host.fault = lambda _: cut_off(campaign)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(campaign)
    host.fault = lambda _: None
    host.clock.sleep(FAR_APART_S)

    again = make_campaign(settings, host, storage, session="second")
    run_campaign(again)
    return again


def sessions_of_blocks(campaign, role):
    """Return for each block in which sessions its trials were measured, in order."""
    found: dict[int, list[str]] = {}
    for trial in campaign.trials:
        if trial.role is role and trial.state is State.COMPLETE:
            found.setdefault(trial.block, []).append(trial.session)
    return found


def test_the_finished_pairs_of_a_confirmation_are_not_measured_again(tmp_path):
    again = run_twice(tmp_path, cut_off_in_the_third_pair)

    per_block = sessions_of_blocks(again, Role.CONFIRM)
    assert per_block[0] == per_block[1] == ["first", "first"]
    # Its first side was measured in the first session, and hours lie between them.
    assert per_block[2] == ["first", "second", "second"]
    assert per_block[3] == ["second", "second"]


def cut_off_in_the_third_pair(campaign):
    confirmed = [trial for trial in campaign.trials if trial.role is Role.CONFIRM]
    if len(confirmed) == 5:
        raise KeyboardInterrupt


def test_a_study_on_disk_resumes_in_another_process_that_opens_it_anew(tmp_path):
    settings = write_study(tmp_path)
    host = SimulatedHost(cut_at=60)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(make_campaign(settings, host, open_on_disk(settings, host.clock)))
    before = open_storage(settings.storage_url, settings.name, create=False).trials()
    host.cut_at = None

    again = make_campaign(settings, host, open_on_disk(settings, host.clock), session="second")
    verdict = run_campaign(again)

    after = open_storage(settings.storage_url, settings.name, create=False).trials()
    assert verdict == "confirmed"
    assert [trial.windows for trial in after[: len(before)]] == [trial.windows for trial in before]


def test_a_preset_that_was_cut_off_is_tried_again(tmp_path):
    settings = write_study(tmp_path)
    host = SimulatedHost(worth=nothing_helps)
    storage = open_in_memory(host.clock)
    campaign = make_campaign(settings, host, storage)
    space = campaign.setup.space
    first = space.complete(space.presets[0].values)

    def cut_off(config):
        if dict(config) == first:
            raise KeyboardInterrupt

    host.fault = cut_off
    with pytest.raises(KeyboardInterrupt):
        run_campaign(campaign)
    host.fault = lambda _: None

    again = make_campaign(settings, host, storage, session="second")
    run_campaign(again)

    tried = [trial for trial in again.trials if trial.role is Role.SEARCH]
    assert [trial.state for trial in tried][:2] == [State.INVALID, State.COMPLETE]
    assert tried[0].config == tried[1].config == first


def test_what_waits_to_be_measured_again_still_waits_in_the_next_session(tmp_path):
    settings = write_study(tmp_path)
    host = SimulatedHost()
    jump_s = host.clock.now_s + 40
    host.level = lambda time_s: 0.0 if time_s < jump_s else -0.4
    storage = open_in_memory(host.clock)
    plan = replace(SMALL_PLAN, trials=30)
    campaign = make_campaign(settings, host, storage, plan=plan)

    def cut_off(_config):
        if "the machine has changed" in " ".join(campaign.progress.notes):
            raise KeyboardInterrupt

    host.fault = cut_off
    with pytest.raises(KeyboardInterrupt):
        run_campaign(campaign)
    waiting = campaign.runner.openings[-1].config
    host.fault = lambda _: None

    again = make_campaign(settings, host, storage, plan=plan, session="second")
    run_campaign(again)

    repeated = [trial for trial in again.trials if trial.role is Role.REPEAT and trial.session == "second"]
    assert repeated[0].config == waiting


def test_a_cut_off_trial_with_all_its_windows_counts(tmp_path):
    settings = write_study(tmp_path)
    host = SimulatedHost()
    storage = open_in_memory(host.clock)
    campaign = make_campaign(settings, host, storage)
    # Steps of a trial with two windows: before it, begun, a window, a window, before it is ended.
    host.cut_at = 4
    with pytest.raises(KeyboardInterrupt):
        run_campaign(campaign)
    assert storage.trials()[0].state is State.RUNNING

    again = make_campaign(settings, host, storage, session="second")

    assert again.trials[0].state is State.COMPLETE
    assert len(again.trials[0].windows) == SMALL_PLAN.windows[1]
    assert len(again.baselines()) == 1


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_cut_off_trial_without_all_its_windows_says_nothing(tmp_path, cut):
    settings = write_study(tmp_path)
    host = SimulatedHost(cut_at=min(cut, 2))
    storage = open_in_memory(host.clock)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(make_campaign(settings, host, storage))

    again = make_campaign(settings, host, storage, session="second")

    assert again.trials[0].state is State.INVALID
    assert again.trials[0].failure.kind == "interrupted"
    assert again.baselines() == []


def test_the_time_of_earlier_sessions_is_spent(tmp_path):
    settings = write_study(tmp_path)
    host = SimulatedHost(cut_at=60)
    storage = open_in_memory(host.clock)
    first = make_campaign(settings, host, storage)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(first)
    spent_s = 60 * SMALL_PLAN.minutes - first.schedule.time_left_s()
    host.clock.sleep(FAR_APART_S)

    again = make_campaign(settings, host, storage, session="second")

    # But for the trial that was cut off, of which nobody knows what it took.
    one_trial_s = 4
    assert 60 * SMALL_PLAN.minutes - spent_s <= again.schedule.time_left_s()
    assert again.schedule.time_left_s() <= 60 * SMALL_PLAN.minutes - spent_s + one_trial_s
