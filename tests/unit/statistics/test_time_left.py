from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.statistics.time_left import STAGES, Outlook
from tuner.study.presets import PRESETS

QUICK = Outlook(
    plan=PRESETS["quick"], trial_s=3.0, pair_trial_s=4.0, pairs=6, extension=0.0, search_s=100.0, trials=100,
    has_rate=False,
)  # fmt: skip
STANDARD = replace(QUICK, plan=PRESETS["standard"], trial_s=20.0, pair_trial_s=20.0, pairs=10)


def test_the_confirmation_takes_what_is_left_of_its_trials():
    assert QUICK.left_s("confirm", 3) == 3 * 4.0


def test_an_extension_that_may_follow_counts_by_its_chance():
    assert replace(STANDARD, extension=5.0).left_s("confirm", 4) == (4 + 2 * 5.0) * 20.0


def test_response_times_follow_the_confirmation_where_a_generator_keeps_a_rate():
    rate_s = 2 * 5 * (20.0 + 20.0)

    assert replace(STANDARD, has_rate=True).left_s("confirm", 2) == 2 * 20.0 + rate_s
    assert replace(STANDARD, has_rate=True).left_s("latency", 3) == 3 * 40.0
    assert replace(QUICK, has_rate=True).left_s("confirm", 2) == 2 * 4.0  # its plan has none


def test_a_race_that_goes_on_is_expected_to_end_with_the_trial_that_is_made():
    assert QUICK.left_s("race", 1) == 3.0 + QUICK.left_s("ablation", 35 / 3 + 2)


def test_stages_without_an_end_of_their_own_take_no_longer_than_their_plan():
    assert replace(STANDARD, trial_s=200.0).left_s("robustness", 0) < STANDARD.plan.confirm_s + 2 * 10 * 200
    slow = replace(STANDARD, trial_s=200.0)
    race_s = slow.left_s("search", 0) - slow.search_s - slow.left_s("ablation", 0) - (600.0 + 2 * 200.0)
    assert race_s == STANDARD.plan.race_s


def test_a_search_ends_with_its_time_or_with_its_trials():
    few = replace(QUICK, trials=5)

    assert QUICK.left_s("search", 0) - few.left_s("search", 0) == pytest.approx(100 - 5 * 1.2 * 3)


def test_what_the_calibration_takes_the_search_lacks():
    assert QUICK.left_s("calibrate", 4) == QUICK.left_s("calibrate", 1) == QUICK.left_s("search", 0)


@given(st.sampled_from(STAGES), st.integers(0, 50), st.floats(-500, 500), st.integers(0, 100))
def test_there_is_never_less_than_nothing_left_nor_less_than_in_later_stages(
    stage, missing, search_s, trials
):
    outlook = replace(STANDARD, search_s=search_s, trials=trials)
    later = STAGES[STAGES.index(stage) + 1 :]

    left_s = outlook.left_s(stage, missing)

    assert left_s >= 0
    if later:
        assert left_s >= outlook.left_s(later[0], 0)
