"""Windows follow the response time of a slow application, on a simulated host."""

import math
from dataclasses import replace

import pytest

from tests.unit.simulation import (
    BASE_RPS,
    SimulatedHost,
    cached_files_win,
    make_campaign,
    open_in_memory,
    write_study,
)
from tuner.campaign.campaign import calibrate, run_campaign
from tuner.records import Failure
from tuner.study.facts import PACE
from tuner.study.presets import PRESETS

CONNECTIONS = 100


def slow(throughput_rps):
    """Serve so many requests a second by default; how long a response takes follows from that."""
    return SimulatedHost(
        worth=lambda config: cached_files_win(config) + math.log(throughput_rps / BASE_RPS),
        reports_latency=False,
    )


def campaign_on(tmp_path, host, storage=None):
    storage = storage or open_in_memory(host.clock)
    return make_campaign(write_study(tmp_path), host, storage, plan=PRESETS["quick"])


@pytest.mark.parametrize(
    ("throughput_rps", "window_s"),
    [
        (20_000, 1.0),  # a response takes 5 ms
        (2_000, 1.0),  # 50 ms
        (100, 2.0),  # one second: 200 responses
        (40, 4.0),  # 2.5 s: a quick study has no time for longer windows
        (10, 4.0),
    ],
)
def test_a_window_has_many_response_times_or_many_responses(tmp_path, throughput_rps, window_s):
    campaign = campaign_on(tmp_path, slow(throughput_rps))

    calibrate(campaign)

    assert campaign.plan.window_s == window_s
    assert {window.duration_s for trial in campaign.trials for window in trial.valid_windows} == {window_s}
    known = campaign.storage.recall(PACE)
    assert (
        known is None
        if window_s == 1.0
        else known.response_s == pytest.approx(CONNECTIONS / throughput_rps, rel=0.1)
    )


def test_a_default_that_answers_nothing_in_a_second_gets_longer_windows(tmp_path):
    host = slow(50)
    silence = Failure(kind="stalled", reason="no correct response in 1.0 s of load")
    host.fault = lambda _: silence if campaign.plan.window_s == 1.0 else None
    campaign = campaign_on(tmp_path, host)

    calibrate(campaign)

    assert campaign.plan.window_s == 4.0
    assert all(trial.counts for trial in campaign.trials)


def test_windows_that_the_study_file_sets_stay_and_the_needed_ones_are_said(tmp_path):
    settings = replace(write_study(tmp_path), window_s=1.0)
    host = slow(100)
    campaign = make_campaign(settings, host, open_in_memory(host.clock), plan=settings.plan("quick"))

    calibrate(campaign)

    assert campaign.plan.window_s == 1.0
    assert campaign.setup.load.response_s == pytest.approx(
        1.0, rel=0.1
    )  # the queue of a window is waited for
    assert "`window_s:` sets windows of 1 s, and tuner would choose 2 s" in campaign.progress.notes[0]


def test_a_study_that_is_resumed_keeps_its_windows(tmp_path):
    host = slow(100)
    first = campaign_on(tmp_path, host)
    calibrate(first)

    again = campaign_on(tmp_path, host, first.storage)

    assert again.plan.window_s == first.plan.window_s == 2.0
    assert again.trials == first.trials
    assert again.setup.load.response_s == first.setup.load.response_s > 0


def test_a_slow_application_is_tuned_in_the_time_of_a_quick_study(tmp_path):
    host = slow(100)
    began_s = host.clock.time()

    assert run_campaign(campaign_on(tmp_path, host)) == "confirmed"
    assert host.clock.time() - began_s <= 60 * PRESETS["quick"].minutes
