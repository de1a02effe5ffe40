from dataclasses import replace

from tests.unit.statistics.made_trials import make_trial
from tuner.records import Role
from tuner.statistics.jumps import carriers, requeue, suspects
from tuner.statistics.noise import Noise

QUIET = replace(Noise.PRIOR, sigma_window=0.02, sigma_trial=0.01, drift_per_s=1e-7)


def baselines_at(levels, every_s=60.0):
    return [make_trial([level] * 2, number=n, at_s=n * every_s) for n, level in enumerate(levels)]


def jump_with_search(**last):
    return [
        *baselines_at([0.0, 0.0, 0.0]),
        make_trial([0.1] * 2, number=20, at_s=30, role=Role.SEARCH, config={"a": 1}),
        make_trial([0.1] * 2, number=21, at_s=150, role=Role.SEARCH, config={"a": 2}),
        make_trial([0.1] * 2, number=22, at_s=160, role=Role.RACE, config={"a": 3}),
        make_trial([-0.3] * 2, number=3, at_s=180),
        make_trial([-0.3] * 2, number=4, at_s=200),
        *([make_trial([-0.2] * 2, number=23, at_s=220, role=Role.REPEAT, **last)] if last else []),
    ]


def test_search_trials_since_the_last_good_baseline_before_a_jump_are_measured_again():
    assert requeue(jump_with_search(), QUIET) == (21,)
    assert requeue(jump_with_search()) == (21,)


def test_what_was_measured_again_since_the_jump_is_not_queued_twice():
    assert requeue(jump_with_search(config={"a": 2}), QUIET) == ()


def test_without_a_confirmed_jump_nothing_is_measured_again():
    assert (
        requeue([*baselines_at([0.0, 0.0, -0.4]), make_trial(0.1, number=9, role=Role.SEARCH)], QUIET) == ()
    )
    assert requeue([], QUIET) == ()


def test_the_trial_right_before_a_jump_is_suspected():
    assert suspects(jump_with_search(), QUIET) == (21,)
    assert suspects(baselines_at([0.0, 0.0, 0.0]), QUIET) == ()
    assert suspects([], QUIET) == ()


def two_jumps(*before_second):
    """The level falls between 60 and 120 s, and again between 200 and 260 s."""
    return [
        *baselines_at([0.0, 0.0]),
        make_trial([0.1] * 2, number=10, at_s=80, role=Role.SEARCH, config={"a": 1}),
        make_trial([0.1] * 2, number=11, at_s=100, role=Role.SEARCH, config={"a": 2}),
        make_trial([-0.3] * 2, number=12, at_s=120),
        make_trial([-0.3] * 2, number=13, at_s=140),
        make_trial([-0.3] * 2, number=14, at_s=200),
        *(
            make_trial([-0.3] * 2, number=15 + i, at_s=220 + 10 * i, role=Role.REPEAT, config=config)
            for i, config in enumerate(before_second)
        ),
        make_trial([-0.7] * 2, number=30, at_s=260),
        make_trial([-0.7] * 2, number=31, at_s=280),
    ]


def test_the_suspected_trial_is_measured_again_as_the_last():
    assert suspects(two_jumps({"a": 1}, {"a": 3}), QUIET) == (11, 16)
    assert requeue(two_jumps({"a": 5}, {"a": 3}), QUIET) == (10, 15, 11, 16)


def test_what_was_around_two_jumps_is_not_tried_a_third_time():
    assert requeue(two_jumps({"a": 1}, {"a": 2}), QUIET) == ()


def test_what_was_around_one_jump_and_alone_before_another_leaves_something_behind():
    assert carriers(two_jumps({"a": 1}), QUIET) == ({"a": 1},)
    assert carriers(two_jumps({"a": 1}, {"a": 2}), QUIET) == ()
    assert carriers(two_jumps({"a": 5}), QUIET) == ()
