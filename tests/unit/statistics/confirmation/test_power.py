import math
from dataclasses import replace

import numpy as np
import pytest

from tuner.statistics.baseline_level import Speedup
from tuner.statistics.confirmation.power import ASSURANCE, LEAST_WINDOWS, NARROW_SHARE, assurance, plan_pairs
from tuner.statistics.noise import MAX_PAIRS, MAX_WINDOWS, Noise, half_width, pair_sd, t_quantile

NOISE = replace(Noise.PRIOR, sigma_window=0.04, sigma_trial=0.03)
SPENT = {"trial_cost_s": 1.5, "window_s": 1.0}
GAIN = Speedup(log_ratio=0.2, variance=0.03**2)


def cost_s(pairs, windows):
    return 2 * pairs * (SPENT["trial_cost_s"] + windows * SPENT["window_s"])


@pytest.mark.parametrize(
    ("gain", "sd", "pairs", "windows"),
    [(0.05, 0.0, 6, 2), (0.05, 0.03, 6, 2), (0.1, 0.05, 4, 1), (0.0, 0.0, 8, 2), (-0.05, 0.1, 5, 3)],
)
def test_the_assurance_is_the_share_of_simulated_confirmations_that_prove_a_gain(gain, sd, pairs, windows):
    rng = np.random.default_rng(3)
    true = rng.normal(gain, sd, 40_000)
    logs = true[:, None] + rng.normal(0, pair_sd(NOISE, windows), (len(true), pairs))
    low = logs.mean(axis=1) - t_quantile(pairs, 0.95) * logs.std(axis=1, ddof=1) / math.sqrt(pairs)

    told = assurance(Speedup(log_ratio=gain, variance=sd**2), NOISE, pairs=pairs, windows=windows)

    assert told == pytest.approx((low > 0).mean(), abs=0.012)


@pytest.mark.parametrize("gain", [-2.0, -0.5, 3.0])
def test_the_assurance_of_what_is_far_off_is_a_probability(gain):
    told = assurance(Speedup(log_ratio=gain, variance=0.3), NOISE, pairs=5, windows=1)

    assert 0 <= told <= 1


def is_enough(gain, pairs, windows):
    is_narrow = math.log1p(half_width(NOISE, pairs=pairs, windows=windows)) <= NARROW_SHARE * gain.log_ratio
    return is_narrow and assurance(gain, NOISE, pairs=pairs, windows=windows) >= ASSURANCE


@pytest.mark.parametrize("log_ratio", [0.08, 0.12, 0.2, 0.4])
def test_no_cheaper_confirmation_than_the_planned_one_is_likely_to_prove_the_gain(log_ratio):
    gain = replace(GAIN, log_ratio=log_ratio, variance=0.02**2)

    planned = plan_pairs(gain, NOISE, least=4, seconds=900, **SPENT)

    assert is_enough(gain, *planned)
    cheaper = [
        (pairs, windows)
        for pairs in range(4, MAX_PAIRS + 1)
        for windows in range(LEAST_WINDOWS, MAX_WINDOWS + 1)
        if cost_s(pairs, windows) < cost_s(*planned) and is_enough(gain, pairs, windows)
    ]
    assert cheaper == []


def test_a_larger_or_better_known_gain_never_takes_longer_to_prove():
    costs = [
        cost_s(*plan_pairs(replace(GAIN, log_ratio=each), NOISE, least=4, seconds=900, **SPENT))
        for each in (0.15, 0.2, 0.3, 0.6)
    ]

    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


@pytest.mark.parametrize("seconds", [20, 30, 60, 120])
def test_the_plan_never_takes_more_than_its_time(seconds):
    small = Speedup(log_ratio=0.02, variance=0.01**2)

    planned = plan_pairs(small, NOISE, least=4, seconds=seconds, **SPENT)

    assert cost_s(*planned) <= seconds
    assert planned[0] >= 4


def test_where_the_time_proves_nothing_it_gives_the_narrowest_interval():
    planned = plan_pairs(Speedup(log_ratio=0.0, variance=0.0), NOISE, least=4, seconds=90, **SPENT)
    width = half_width(NOISE, pairs=planned[0], windows=planned[1])

    others = [
        half_width(NOISE, pairs=pairs, windows=windows)
        for pairs in range(4, MAX_PAIRS + 1)
        for windows in range(LEAST_WINDOWS, MAX_WINDOWS + 1)
        if cost_s(pairs, windows) <= 90
    ]
    assert width == min(others)


def test_without_time_for_the_least_pairs_these_are_measured_all_the_same():
    assert plan_pairs(GAIN, NOISE, least=4, seconds=3, **SPENT) == (4, 1)
