import math
from dataclasses import replace
from random import Random

import pytest

from benchmarks.simulated_host import HostKind, SimulatedHost
from tests.unit.statistics.made_trials import make_trial
from tuner.records import Role, State
from tuner.statistics.noise import (
    Noise,
    baseline_interval,
    detectable_gain,
    estimate_noise,
    half_width,
    pair_sd,
    size_pairs,
    trial_variance,
)


def noise_of(sigma_window: float, sigma_trial: float, drift_per_s: float = 0.0) -> Noise:
    return replace(Noise.PRIOR, sigma_window=sigma_window, sigma_trial=sigma_trial, drift_per_s=drift_per_s)


def simulated_baselines(kind: HostKind, count: int, windows: int = 3) -> SimulatedHost:
    host = SimulatedHost(kind=kind, rng=Random(7))  # noqa: S311 - no secret
    for _ in range(count):
        host.measure(0.0, windows=windows, role=Role.BASELINE)
    return host


def test_without_any_trial_the_noise_is_the_prior():
    noise = estimate_noise([])

    assert noise.sigma_window == pytest.approx(0.03)
    assert noise.sigma_trial == pytest.approx(0.02)
    assert (noise.degrees_window, noise.degrees_trial) == (5, 2)


def test_many_trials_give_the_true_noise_whatever_the_prior():
    kind = HostKind(name="", sigma_window=0.09, sigma_trial=0.06, drift_per_minute=0.02)
    noise = estimate_noise(simulated_baselines(kind, 600).trials)

    assert noise.sigma_window == pytest.approx(0.09, rel=0.05)
    assert noise.sigma_trial == pytest.approx(0.06, rel=0.15)
    assert math.sqrt(60 * noise.drift_per_s) == pytest.approx(0.02, rel=0.35)


def test_slow_drift_is_not_taken_for_noise_between_trials():
    baselines = [make_trial([0.002 * n, 0.002 * n], number=n, at_s=20.0 * n) for n in range(40)]

    assert estimate_noise(baselines).sigma_trial < 0.005


def test_windows_of_all_trials_tell_the_noise_within_a_trial():
    search = [
        make_trial([0.1, -0.1], number=n, role=Role.SEARCH, at_s=20.0 * n, config={"n": n})
        for n in range(200)
    ]
    noise = estimate_noise(search)

    assert noise.sigma_window == pytest.approx(math.sqrt(0.02), rel=0.03)
    assert noise.degrees_window == 205


def test_trials_that_do_not_count_tell_nothing_of_noise():
    failed = [make_trial([0.5, -0.5], number=n, state=State.INVALID) for n in range(20)]

    assert estimate_noise(failed) == estimate_noise([])


def test_one_stalled_window_hardly_changes_the_noise():
    host = simulated_baselines(HostKind(name="", sigma_window=0.03, sigma_trial=0.02), 30)
    before = estimate_noise(host.trials)
    stalled = make_trial([9.9, -4.6], number=99, role=Role.SEARCH)
    after = estimate_noise([*host.trials, stalled])

    assert after.sigma_window < 1.2 * before.sigma_window


def test_a_jump_of_the_level_hardly_changes_the_noise_between_trials():
    quiet = HostKind(name="", sigma_window=0.03, sigma_trial=0.02)
    before, after = simulated_baselines(quiet, 15), simulated_baselines(quiet, 30)
    jumped = [*before.trials, *(make_trial([*_lowered(s)], at_s=s.started_s) for s in after.trials[15:])]

    assert estimate_noise(jumped).sigma_trial < 0.06


def _lowered(trial):
    return [window.log_goodput - math.log(20_000) - 0.4 for window in trial.windows]


def test_hours_between_two_sessions_are_no_drift():
    first = [make_trial([0.001 * (n % 3)] * 2, number=n, at_s=20.0 * n) for n in range(10)]
    second = [
        make_trial([0.3 + 0.001 * (n % 3)] * 2, number=10 + n, at_s=9000 + 20.0 * n, session="second")
        for n in range(10)
    ]

    assert estimate_noise([*first, *second]).sigma_trial < 0.01


def test_the_variance_of_a_trial_has_its_own_effect_and_its_windows_share():
    noise = noise_of(0.04, 0.03)

    assert trial_variance(noise, 4) == pytest.approx(0.03**2 + 0.04**2 / 4)
    assert trial_variance(noise, 4, certain=False) == pytest.approx(4 * trial_variance(noise, 4))


@pytest.mark.parametrize(
    ("sd", "pairs", "width", "gain"),
    [(0.02, 6, 2.1, 2.8), (0.03, 10, 2.1, 3.0), (0.05, 8, 4.2, 5.8), (0.08, 16, 4.3, 6.0)],
)
def test_what_can_be_proved_agrees_with_the_tables_of_the_paired_t_test(sd, pairs, width, gain):
    noise = noise_of(0.0, sd / math.sqrt(2))

    assert pair_sd(noise, 2) == pytest.approx(sd)
    assert 100 * half_width(noise, pairs=pairs, windows=2) == pytest.approx(width, abs=0.15)
    assert 100 * detectable_gain(noise, pairs=pairs, windows=2) == pytest.approx(gain, abs=0.2)


@pytest.mark.parametrize(("drift_share", "interval"), [(0.0, 8), (0.09, 8), (0.3, 6), (0.6, 4), (5.0, 4)])
def test_the_more_a_host_drifts_the_more_often_the_baseline_is_measured(drift_share, interval):
    noise = noise_of(0.03, 0.02)
    drift = drift_share * trial_variance(noise, 3) / 20

    assert baseline_interval(replace(noise, drift_per_s=drift), 20.0, 3) == interval


def test_on_a_host_whose_trials_scatter_short_pairs_are_planned():
    pairs, windows = size_pairs(noise_of(0.08, 0.12), seconds=55, trial_cost_s=1.5, window_s=1.0)

    assert (pairs, windows) == (11, 1)


def test_on_a_host_with_expensive_trials_and_noisy_windows_long_pairs_are_planned():
    _, windows = size_pairs(noise_of(0.10, 0.01), seconds=1800, trial_cost_s=20, window_s=1.0)

    assert windows == 6


def test_at_least_two_pairs_are_planned_however_short_the_time():
    assert size_pairs(noise_of(0.03, 0.02), seconds=1, trial_cost_s=8, window_s=5)[0] == 2
