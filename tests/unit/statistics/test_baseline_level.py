import math
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.statistics.made_trials import BASE, make_trial
from tuner.errors import TargetError
from tuner.records import Role, State
from tuner.statistics.baseline_level import BaselineLevel, Speedup, combine, is_unstable, speedups
from tuner.statistics.noise import Noise

QUIET = replace(Noise.PRIOR, sigma_window=0.02, sigma_trial=0.01, drift_per_s=1e-7)
STILL = replace(QUIET, drift_per_s=0.0)


def above_base(level, time_s):
    log, variance = level.at(time_s)
    return log - BASE, variance


def baselines_at(levels, every_s=60.0):
    return [make_trial([level] * 2, number=n, at_s=n * every_s) for n, level in enumerate(levels)]


def test_without_drift_the_level_is_the_mean_of_the_baselines_everywhere():
    level = BaselineLevel.fit(baselines_at([0.0, 0.02, 0.01, 0.03]), STILL)
    own = 0.01**2 + 0.02**2 / 2

    for time_s in (-100.0, 0.0, 75.0, 180.0, 1e6):
        assert above_base(level, time_s) == pytest.approx((0.015, own / 4))


def test_the_smoothed_level_agrees_with_the_weighted_least_squares_of_the_same_model():
    noise = replace(QUIET, drift_per_s=4e-6)
    times, seen = np.array([0.0, 50.0, 170.0, 200.0]), np.array([0.0, 0.03, -0.02, 0.01])
    trials = [
        make_trial([log] * 2, number=n, at_s=t) for n, (t, log) in enumerate(zip(times, seen, strict=True))
    ]
    own = 0.01**2 + 0.02**2 / 2
    asked = np.array([-30.0, 20.0, 100.0, 170.0, 260.0])
    # A random walk from far in the past: covariance drift · min(t, t'), with a trial that is all but unknown.
    shift, vague = 1000.0, 10.0
    walk = lambda a, b: vague + 4e-6 * np.minimum.outer(a + shift, b + shift)  # noqa: E731
    gain = walk(asked, times) @ np.linalg.inv(walk(times, times) + own * np.eye(4))
    variance = np.diag(walk(asked, asked) - gain @ walk(times, asked))

    level = BaselineLevel.fit(trials, noise)

    for index, time_s in enumerate(asked):
        assert above_base(level, time_s) == pytest.approx(
            (gain[index] @ seen, variance[index]), rel=1e-3, abs=1e-6
        )


def test_the_level_is_less_certain_between_baselines_and_after_the_last():
    level = BaselineLevel.fit(baselines_at([0.0, 0.0, 0.0]), replace(QUIET, drift_per_s=1e-5))

    assert (
        above_base(level, 60.0)[1]
        < above_base(level, 90.0)[1]
        < above_base(level, 180.0)[1]
        < above_base(level, 400.0)[1]
    )


def test_the_order_in_which_baselines_are_given_does_not_matter():
    baselines = baselines_at([0.0, 0.02, 0.01])

    assert BaselineLevel.fit(baselines[::-1], QUIET) == BaselineLevel.fit(baselines, QUIET)


def test_no_level_can_be_had_without_a_baseline_that_counts():
    with pytest.raises(TargetError, match="none of 1 trials of the default gave a measurement"):
        BaselineLevel.fit([make_trial(0.0, state=State.FAILED)], QUIET)


def test_a_baseline_far_from_its_prediction_raises_the_alarm_and_a_near_one_does_not():
    level = BaselineLevel.fit(baselines_at([0.0, 0.01, 0.0]), QUIET)

    assert level.alarm(make_trial([-0.2, -0.2], at_s=180))
    assert not level.alarm(make_trial([-0.04, -0.04], at_s=180))


def test_one_odd_baseline_is_no_jump_and_hardly_moves_the_level():
    level = BaselineLevel.fit(baselines_at([0.0, 0.0, -0.5, 0.0, 0.0]), QUIET)

    assert level.jumps == ()
    assert abs(above_base(level, 120.0)[0]) < 0.01


def test_two_odd_baselines_in_a_row_are_a_jump_and_the_level_begins_anew():
    level = BaselineLevel.fit(baselines_at([0.0, 0.01, 0.0, -0.3, -0.31, -0.3]), QUIET)

    assert level.jumps == ((120.0, 180.0),)
    assert above_base(level, 60.0)[0] == pytest.approx(0.003, abs=0.005)
    assert above_base(level, 300.0)[0] == pytest.approx(-0.303, abs=0.005)


def test_two_odd_baselines_on_opposite_sides_are_no_jump():
    assert BaselineLevel.fit(baselines_at([0.0, 0.0, 0.4, -0.4, 0.0]), QUIET).jumps == ()


def test_a_host_that_jumps_back_has_two_jumps():
    level = BaselineLevel.fit(baselines_at([0.0, 0.0, 0.5, 0.5, 0.0, 0.0]), QUIET)

    assert level.jumps == ((60.0, 120.0), (180.0, 240.0))


def test_between_the_baselines_around_a_jump_the_level_may_be_either():
    fitted = BaselineLevel.fit(baselines_at([0.0, 0.0, -0.4, -0.4]), QUIET)
    level, variance = above_base(fitted, 90.0)

    assert level == pytest.approx(-0.2, abs=0.01)
    assert math.sqrt(variance) == pytest.approx(0.2, abs=0.02)


def test_a_speedup_is_relative_to_the_level_at_its_time():
    baselines = [
        *baselines_at([0.0, 0.0, 0.0]),
        make_trial([-0.3] * 2, number=10, at_s=240),
        make_trial([-0.3] * 2, number=11, at_s=300),
    ]
    early = make_trial([0.1, 0.1], number=20, at_s=90, role=Role.SEARCH)
    late = make_trial([-0.2, -0.2], number=21, at_s=270, role=Role.SEARCH)

    found = speedups([*baselines, early, late], QUIET)

    assert found[20].log_ratio == pytest.approx(0.1, abs=1e-3)
    assert found[21].log_ratio == pytest.approx(0.1, abs=1e-3)
    assert found[20].variance > 0.01**2 + 0.02**2 / 2


def test_a_trial_that_never_became_steady_is_told_with_more_variance():
    trials = [make_trial([0.1] * 2, number=n + 5, at_s=30, role=Role.SEARCH, steady=n == 0) for n in range(2)]
    found = speedups([*baselines_at([0.0, 0.0]), *trials], STILL)

    assert found[6].variance - found[5].variance == pytest.approx(3 * (0.01**2 + 0.02**2 / 2))


def test_only_trials_that_count_have_a_speedup_and_none_has_one_without_a_baseline():
    failed = make_trial([0.1], number=5, role=Role.SEARCH, state=State.FAILED)

    assert 5 not in speedups([*baselines_at([0.0]), failed], QUIET)
    assert speedups([replace(failed, state=State.COMPLETE)], QUIET) == {}


def test_a_new_baseline_revises_the_speedups_of_the_past():
    candidate = make_trial([0.1, 0.1], number=9, at_s=90, role=Role.SEARCH)
    drifting = replace(QUIET, drift_per_s=1e-4)
    before = speedups([*baselines_at([0.0, 0.0]), candidate], drifting)[9]
    after = speedups([*baselines_at([0.0, 0.0, 0.08]), candidate], drifting)[9]

    assert after.log_ratio < before.log_ratio - 0.02
    assert after.variance < before.variance


def test_a_speedup_shows_itself_as_a_ratio_with_its_interval():
    speedup = Speedup(log_ratio=math.log(1.3), variance=0.01)

    assert speedup.ratio == pytest.approx(1.3)
    assert speedup.interval() == pytest.approx((1.3 * math.exp(-0.196), 1.3 * math.exp(0.196)), rel=1e-3)
    assert speedup.interval(0.5) == pytest.approx((1.3 * math.exp(-0.0674), 1.3 * math.exp(0.0674)), rel=1e-3)


def test_repeats_are_weighted_by_their_precision():
    together = combine([Speedup(log_ratio=0.0, variance=0.01), Speedup(log_ratio=0.05, variance=0.04)])

    assert together.log_ratio == pytest.approx(0.01)
    assert together.variance == pytest.approx(1 / 125)


def test_repeats_that_contradict_each_other_are_less_certain():
    agreeing = combine([Speedup(log_ratio=0.1, variance=0.001)] * 3)
    scattered = combine([Speedup(log_ratio=x, variance=0.001) for x in (-0.2, 0.1, 0.4)])

    assert scattered.variance > 10 * agreeing.variance


def test_there_is_no_combination_of_nothing():
    with pytest.raises(ValueError, match="no repeat to combine"):
        combine([])


def test_a_configuration_whose_trials_scatter_is_unstable_unless_that_is_what_their_variances_say():
    repeats = [Speedup(log_ratio=x, variance=0.001) for x in (0.3, 0.0, 0.25)]

    assert is_unstable(repeats)
    assert not is_unstable([replace(each, variance=0.01) for each in repeats])
    assert not is_unstable(repeats[:2])
