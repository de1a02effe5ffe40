"""Trials as they should not be, and still are."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from tuner.optimize import NoisyGPSampler
from tuner.optimize.history import VARIANCE

DELAY = FloatDistribution(0.0, 1.0)


def make_study(seed=1, direction="maximize", **more):
    return optuna.create_study(sampler=NoisyGPSampler(seed=seed, **more), direction=direction)


def add(study, params, value, distributions=None, variance=None, **more):
    study.add_trial(
        create_trial(
            params=params, distributions=distributions or dict.fromkeys(params, DELAY), value=value,
            user_attrs={} if variance is None else {VARIANCE: variance}, **more,
        )
    )  # fmt: skip


@pytest.mark.parametrize("slack", [math.inf, 1e308])
def test_a_constraint_may_be_broken_without_measure(slack):
    def worth(trial):
        delay = trial.suggest_float("delay", 0, 1)
        trial.set_constraint("latency", slack if delay > 0.5 else -1.0)
        return delay

    study = make_study()
    study.optimize(worth, n_trials=20)

    assert 0.4 < study.sampler.incumbent(study).params["delay"] <= 0.5
    assert np.mean([trial.params["delay"] > 0.5 for trial in study.trials[10:]]) < 0.5


def test_five_constraints_are_all_kept():
    def worth(trial):
        shares = [trial.suggest_float(f"share{number}", 0, 1) for number in range(5)]
        for number, share in enumerate(shares):
            trial.set_constraint(f"limit{number}", share - 0.6)
        return sum(shares)

    study = make_study()
    study.optimize(worth, n_trials=40)

    assert study.sampler.incumbent(study).value > 2.6
    assert np.mean([max(trial.params.values()) > 0.6 for trial in study.trials[20:]]) <= 0.75


def test_of_nothing_but_constants_the_mean_is_told():
    study, rng = make_study(), np.random.default_rng(0)
    study.optimize(lambda trial: trial.suggest_float("delay", 1, 1) + rng.standard_normal(), n_trials=16)

    estimate = study.sampler.estimate(study)
    values = [trial.value for trial in study.trials]
    assert estimate.mean == pytest.approx(np.mean(values))
    assert estimate.deviation == pytest.approx(np.std(values, ddof=1) / 4)


@pytest.mark.parametrize("scale", [1e-90, 1e-12, 1e-8, 1e8, 1e90])
def test_the_unit_of_the_values_is_of_no_importance(scale):
    def search(unit):
        study = make_study(direction="minimize")
        study.optimize(
            lambda trial: unit * (1 + (trial.suggest_float("delay", 0, 1) - 0.3) ** 2), n_trials=12
        )
        return study

    one, other = search(1.0), search(scale)

    assert [trial.params["delay"] for trial in other.trials] == pytest.approx(
        [trial.params["delay"] for trial in one.trials], abs=1e-6
    )
    estimates = one.sampler.estimate(one), other.sampler.estimate(other)
    assert estimates[1].deviation / scale == pytest.approx(estimates[0].deviation, rel=1e-3)


def test_repeats_tell_the_noise_where_nobody_else_does():
    """The best choice was measured sixty times, the others once each, some of them luckily."""
    wrong = 0
    for seed in range(6):
        study, rng = make_study(), np.random.default_rng(seed)
        choices = CategoricalDistribution(range(12))
        for choice in (*[0] * 60, *range(1, 12)):
            value = float(choice == 0) + rng.standard_normal()
            add(study, {"choice": choice}, value, {"choice": choices})
        wrong += study.sampler.incumbent(study).params["choice"] != 0

    assert wrong <= 2


@pytest.mark.parametrize("variance", [None, 1e-4])
def test_what_was_cut_short_is_not_recommended(variance):
    study = make_study(direction="minimize")
    for number, delay in enumerate(np.linspace(0, 1, 6)):
        add(study, {"delay": float(delay)}, 10.0 + number, variance=variance)
    add(study, {"delay": 0.5}, None, variance=variance, state=TrialState.PRUNED, intermediate_values={0: 1.0})

    assert study.sampler.incumbent(study).value == 10.0


def test_what_failed_nine_times_of_ten_is_not_recommended():
    study = make_study()
    for delay in (0.2, 0.4, 0.6):
        add(study, {"delay": delay}, delay, variance=1e-4)
    add(study, {"delay": 0.9}, 0.9, variance=1e-4)
    for _ in range(9):
        add(study, {"delay": 0.9}, None, state=TrialState.FAIL)

    assert study.sampler.incumbent(study).params == {"delay": 0.6}


def test_what_was_tried_within_wider_bounds_still_tells_where_the_best_is():
    study = make_study()
    for most in (100, 10):
        study.optimize(lambda trial: -((trial.suggest_float("delay", 0, most) - 4) ** 2), n_trials=12)  # noqa: B023

    assert study.sampler.incumbent(study).params["delay"] == pytest.approx(4, abs=0.5)
    later = [trial.params["delay"] for trial in study.trials[14:]]
    assert max(later) <= 10
    assert np.median(np.abs(np.array(later) - 4)) < 2


def test_bounds_may_depend_on_another_parameter():
    def worth(trial):
        most = trial.suggest_float("most", 0, 1)
        share = trial.suggest_float("share", 0, max(most, 0.05))
        return -((most - 0.8) ** 2) - (share - 0.6) ** 2

    for seed in range(3):
        study = make_study(seed)
        study.optimize(worth, n_trials=30)
        assert study.sampler.incumbent(study).value > -0.02


def test_noise_does_not_make_the_infeasible_the_incumbent():
    """Every point has one vote, so that the luckiest of many would win."""
    for seed in range(4):
        study, rng = make_study(seed), np.random.default_rng(seed)

        def worth(trial, rng=rng):
            share = trial.suggest_float("share", 0, 1)
            trial.set_constraint("errors", share - 0.5 + 0.2 * rng.standard_normal())
            trial.set_user_attr(VARIANCE, 1e-4)
            return share + 0.01 * rng.standard_normal()

        study.optimize(worth, n_trials=40)
        assert study.sampler.incumbent(study).params["share"] < 0.65


def test_a_variance_without_end_tells_nothing():
    study = make_study()
    for delay in (0.1, 0.5, 0.9):
        add(study, {"delay": delay}, delay, variance=1e-4)
    add(study, {"delay": 0.3}, 50.0, variance=math.inf)
    add(study, {"delay": 0.2}, 50.0, variance=1e308)

    assert study.sampler.incumbent(study).params == {"delay": 0.9}
    assert 0 <= study.ask({"delay": DELAY}).params["delay"] <= 1


def test_a_parameter_first_seen_late_is_drawn_the_same_after_a_resume():
    def run(study, trials):
        for _ in range(trials):
            trial = study.ask()
            value = trial.suggest_float("delay", 0, 1)
            if trial.number >= 6:
                value += trial.suggest_float("late", 0, 1)
            study.tell(trial, value)
        return study

    whole = run(make_study(), 7)
    resumed = make_study()
    resumed.add_trials(whole.trials[:6])

    assert run(resumed, 1).trials[6].params == whole.trials[6].params


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"seed": -1}, "seed: -1 is negative"),
        ({"seed": 1.5}, "seed: 1.5 is no whole number"),
        ({"startup_trials": "4"}, "startup_trials: '4' is no whole number"),
        ({"startup_trials": -1}, "startup_trials: -1 is negative"),
        ({"warm": {"delay": 0.3}}, "warm: .* is no sequence of parameters"),
        ({"warm": [None]}, "warm: .* is no sequence of parameters"),
    ],
)
def test_a_wrong_argument_is_refused_at_once(wrong, words):
    with pytest.raises((TypeError, ValueError), match=words):
        NoisyGPSampler(**wrong)


def test_what_an_earlier_study_had_otherwise_does_no_harm():
    study = make_study(warm=[{"delay": "much", "unknown": 1}, {"delay": 7.0}])
    study.optimize(lambda trial: trial.suggest_float("delay", 0, 1), n_trials=8)

    assert len(study.trials) == 8


def test_what_was_good_before_may_come_from_a_generator():
    def ask(warm):
        study = make_study(warm=warm)
        study.optimize(
            lambda trial: trial.suggest_float("delay", 0, 1) - abs(trial.suggest_float("share", 0, 1) - 0.3),
            n_trials=9,
        )
        return [trial.params for trial in study.trials]

    good = {"delay": 0.9, "share": 0.3}
    assert ask(each for each in [good]) == ask([good]) != ask([])


def test_several_objectives_have_a_front_and_no_incumbent():
    study = optuna.create_study(directions=["minimize"] * 2, sampler=NoisyGPSampler(seed=1))

    with pytest.raises(ValueError, match=r"study\.best_trials"):
        study.sampler.incumbent(study)


def test_what_was_good_before_is_taken_where_it_is_still_good_and_left_where_it_is_not():
    def worth(trial):
        trial.set_user_attr(VARIANCE, 1e-4)
        return -sum(abs(trial.suggest_float(f"x{number}", 0, 1) - 0.7) for number in range(8))

    def taken(value):
        count = 0
        for seed in range(3):
            study = make_study(seed=seed, warm=[{f"x{number}": value for number in range(8)}])
            study.optimize(worth, n_trials=25)
            count += sum(list(trial.params.values()).count(value) for trial in study.trials[10:])
        return count

    assert taken(0.69) > 2 * taken(0.01)


def test_what_an_earlier_study_lacks_is_drawn():
    def worth(trial):
        trial.set_user_attr(VARIANCE, 1e-4)
        return trial.suggest_int("known", 0, 99) / 99 + trial.suggest_float("new", 0, 1)

    study = make_study(warm=[{"known": 99}] * 20)
    study.optimize(worth, n_trials=20)

    assert study.sampler.incumbent(study).params["known"] == 99
    assert study.best_value > 1.8


def test_a_wrong_belief_does_not_trap_the_search():
    """Every earlier study swore by the worst corner."""
    belief = [dict.fromkeys([f"x{number}" for number in range(6)], 1.0)] * 3

    def worth(trial):
        at = [trial.suggest_float(f"x{number}", 0, 1) for number in range(6)]
        trial.set_user_attr(VARIANCE, 1e-4)
        return -sum((each - 0.1) ** 2 for each in at)

    study = make_study(warm=belief)
    study.optimize(worth, n_trials=40)

    assert study.sampler.incumbent(study).value > -0.15
