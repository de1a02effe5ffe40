"""When a running study is told to end, on simulated hosts."""

from dataclasses import replace

import pytest

from tests.unit.simulation import (
    Log,
    SimulatedHost,
    make_campaign,
    open_in_memory,
    write_study,
)
from tuner.campaign.campaign import calibrate, run_campaign
from tuner.records import Timing
from tuner.study.presets import PRESETS


class Watch(Log):
    """Writes down at which time which end was told, in seconds since the beginning."""

    def __init__(self, clock):
        super().__init__()
        self.clock, self.begun_s = clock, clock.monotonic()
        self.told = []

    def time_left(self, seconds):
        now_s = self.clock.monotonic() - self.begun_s
        self.told.append((now_s, now_s + seconds))


def watch(tmp_path, host, **given):
    campaign = make_campaign(write_study(tmp_path), host, open_in_memory(host.clock), **given)
    campaign.progress = Watch(host.clock)
    run_campaign(campaign)
    return campaign.progress.told, host.clock.monotonic() - campaign.progress.begun_s


NOISY = SimulatedHost(sigma_trial=0.04, sigma_window=0.06, seed=3)


@pytest.mark.statistical
@pytest.mark.parametrize("host", [SimulatedHost(), NOISY], ids=["calm", "noisy"])
def test_after_a_fifth_the_told_end_is_within_a_fifth_of_the_real_one(tmp_path, host):
    told, end_s = watch(tmp_path, host, plan=PRESETS["quick"])

    assert end_s < 60 * PRESETS["quick"].minutes - 10  # what the budget alone would say is something else
    assert all(abs(end - end_s) <= 0.2 * end_s for now_s, end in told if now_s >= 0.2 * end_s)


def test_in_the_last_stage_what_is_left_is_what_its_trials_take(tmp_path):
    told, end_s = watch(tmp_path, SimulatedHost(), plan=PRESETS["quick"])

    last = [end for now_s, end in told if now_s >= end_s - 15]
    assert last
    assert all(abs(end - end_s) <= 3 for end in last)


def test_how_long_a_trial_took_whose_session_was_killed_is_not_known(tmp_path):
    host = SimulatedHost()
    campaign = make_campaign(write_study(tmp_path), host, open_in_memory(host.clock))
    calibrate(campaign)
    known = campaign.storage.known.ended
    known[:] = [replace(trial, timing=Timing()) for trial in known]

    assert campaign.schedule.mean_cost_s() > 0
    assert campaign.count_ahead() == 1
