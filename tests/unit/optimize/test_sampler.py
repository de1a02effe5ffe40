import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from tuner.optimize import NoisyGPSampler
from tuner.optimize.history import VARIANCE

SPACE = {
    "threads": IntDistribution(1, 1024, log=True),
    "delay": FloatDistribution(0.0, 1.0),
    "sendfile": CategoricalDistribution((True, False)),
    "cache": CategoricalDistribution(("off", "small", "large")),
    "backlog": IntDistribution(64, 4096),
    "nopush": CategoricalDistribution((True, False)),
}


def worth(params):
    """Log speedup: two settings that matter, one catastrophe, and what does nothing."""
    if not params["sendfile"] and params["nopush"]:
        return -5.0
    peak = -0.1 * abs(math.log(params["threads"] / 64))
    return peak + {"off": 0.0, "small": 0.2, "large": 0.3}[params["cache"]] - 0.3 * params["delay"]


BEST = 0.3


def make_study(sampler=None, direction="maximize"):
    return optuna.create_study(sampler=sampler or NoisyGPSampler(seed=1), direction=direction)


def tell(study, params, value, variance=None, space=SPACE, state=TrialState.COMPLETE, **more):
    attributes = {} if variance is None else {VARIANCE: variance}
    study.add_trial(
        create_trial(
            params=params, distributions={name: space[name] for name in params}, state=state,
            value=value, user_attrs=attributes, **more,
        )
    )  # fmt: skip


def optimise(sampler, trials, *, seed=0, noise=0.03, told=None, fails=None):
    """Run a study on the noisy surface; returns it with the true worth of each trial."""
    study, rng = make_study(sampler), np.random.default_rng(seed)
    for _ in range(trials):
        trial = study.ask(SPACE)
        trial.set_user_attr(VARIANCE, noise**2 if told is None else told)
        if fails is not None and fails(trial.params, rng):
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, worth(trial.params) + noise * rng.standard_normal())
    return study


def regret(study):
    return BEST - worth(study.sampler.incumbent(study).params)


def test_it_finds_more_than_a_random_search_of_the_same_length():
    ours = [regret(optimise(NoisyGPSampler(seed=seed), 30, seed=seed)) for seed in range(3)]
    theirs = []
    for seed in range(3):
        random = optimise(optuna.samplers.RandomSampler(seed=seed), 30, seed=seed)
        theirs.append(BEST - worth(random.best_trial.params))

    assert np.median(ours) < 0.5 * np.median(theirs)


def test_the_incumbent_is_not_the_luckiest_trial():
    study = make_study()
    rng = np.random.default_rng(3)
    for _ in range(12):
        params = {"delay": float(rng.random())}
        tell(study, params, -params["delay"], variance=1e-4)
    tell(study, {"delay": 0.9}, 1.0, variance=4.0)

    assert study.best_trial.params == {"delay": 0.9}
    assert study.sampler.incumbent(study).params["delay"] < 0.3


def test_the_incumbent_of_a_study_that_minimises_is_the_least():
    study = make_study(direction="minimize")
    for delay in (0.1, 0.3, 0.5, 0.9):
        tell(study, {"delay": delay}, delay, variance=1e-4)

    estimate = study.sampler.estimate(study)
    assert estimate.trial.params == {"delay": 0.1}
    assert estimate.mean == pytest.approx(0.1, abs=0.05)


def test_an_infeasible_trial_is_no_incumbent():
    study = make_study()
    tell(study, {"delay": 0.2}, 1.0, variance=1e-4, constraints={"errors": 0.5})
    assert study.sampler.incumbent(study) is None

    tell(study, {"delay": 0.6}, 0.1, variance=1e-4, constraints={"errors": -0.5})
    assert study.sampler.incumbent(study).params == {"delay": 0.6}


def crashes(params, _rng=None):
    """A third of the space."""
    return params["cache"] == "small"


def test_what_may_be_the_best_is_measured_again_where_the_noise_is_large():
    noisy = optimise(NoisyGPSampler(seed=1), 40, noise=1.0)
    tried = [tuple(trial.params.items()) for trial in noisy.trials]
    assert len(set(tried)) < len(tried)

    once = optimise(NoisyGPSampler(seed=1, repeats=False), 40, noise=1.0)
    assert len({tuple(trial.params.items()) for trial in once.trials}) == 40


def test_a_third_of_the_space_that_crashes_is_soon_left_alone():
    later = []
    for seed in range(2):
        study = optimise(NoisyGPSampler(seed=seed), 40, seed=seed, fails=crashes)
        later += [crashes(trial.params) for trial in study.trials[20:]]

    assert np.mean(later) < 0.05


def test_failures_at_random_do_not_lead_it_astray():
    def unlucky(_params, rng):
        return rng.random() < 0.3

    regrets = [regret(optimise(NoisyGPSampler(seed=seed), 30, seed=seed, fails=unlucky)) for seed in range(3)]
    assert np.median(regrets) < 0.1


def test_a_broken_constraint_is_avoided():
    study, rng = make_study(), np.random.default_rng(2)
    for _ in range(30):
        trial = study.ask({"delay": SPACE["delay"]})
        # What is worth most is not allowed.
        trial.set_constraint("errors", trial.params["delay"] - 0.5)
        trial.set_user_attr(VARIANCE, 0.05**2)
        study.tell(trial, trial.params["delay"] + 0.05 * rng.standard_normal())

    assert 0.4 < study.sampler.incumbent(study).params["delay"] <= 0.5
    assert np.mean([trial.params["delay"] > 0.55 for trial in study.trials[10:]]) < 0.3


def test_the_same_seed_gives_the_same_study_and_another_seed_another():
    def chosen(seed):
        return [trial.params for trial in optimise(NoisyGPSampler(seed=seed), 12).trials]

    assert chosen(5) == chosen(5)
    assert chosen(5) != chosen(6)


def test_a_resumed_study_continues_as_an_uninterrupted_one_would():
    whole = optimise(NoisyGPSampler(seed=4), 14)
    resumed = make_study(NoisyGPSampler(seed=4))
    resumed.add_trials(whole.trials[:13])

    assert resumed.ask(SPACE).params == whole.trials[13].params


def test_workers_of_one_study_try_different_points():
    study = optimise(NoisyGPSampler(seed=4), 12)
    asked = [study.ask(SPACE).params for _ in range(4)]

    assert len({tuple(params.items()) for params in asked}) == 4


def test_a_conditional_parameter_is_modelled_and_not_drawn_at_random():
    """Half of the points have a size, whose best is 0.8."""
    study, rng = make_study(), np.random.default_rng(0)
    for _ in range(30):
        trial = study.ask()
        value = 0.0
        if trial.suggest_categorical("cache", (True, False)):
            value = 0.5 - abs(trial.suggest_float("size", 0.0, 1.0) - 0.8)
        trial.set_user_attr(VARIANCE, 1e-4)
        study.tell(trial, value + 0.01 * rng.standard_normal())

    assert study.sampler.incumbent(study).params["size"] == pytest.approx(0.8, abs=0.07)
    sizes = [trial.params["size"] for trial in study.trials[12:] if "size" in trial.params]
    assert np.mean([abs(size - 0.8) < 0.2 for size in sizes]) > 0.6


@pytest.mark.parametrize(
    "values",
    [[1.0] * 9, [math.inf, -math.inf] * 4 + [1.0], [1e300, -1e300] * 4, [0.0] * 8 + [1e-12]],
    ids=["equal", "infinite", "huge", "nearly equal"],
)
def test_odd_values_still_give_a_suggestion(values):
    study, rng = make_study(NoisyGPSampler(seed=1, startup_trials=2)), np.random.default_rng(1)
    for value in values:
        tell(study, {"delay": float(rng.random()), "sendfile": bool(rng.integers(2))}, value, variance=0.01)

    for _ in range(3):
        params = study.ask(SPACE).params
        assert 0 <= params["delay"] <= 1


@pytest.mark.parametrize("variance", [math.nan, -1.0, "much", [1.0, 2.0], None, 0.0])
def test_an_odd_variance_is_inferred(variance):
    study, rng = make_study(NoisyGPSampler(seed=1, startup_trials=2)), np.random.default_rng(1)
    for _ in range(6):
        params = {"delay": float(rng.random())}
        tell(study, params, params["delay"], variance=variance)

    assert study.sampler.incumbent(study).params == max(
        (trial.params for trial in study.trials), key=lambda params: params["delay"]
    )


def test_a_study_of_failures_alone_still_gives_suggestions():
    study = make_study()
    for delay in np.linspace(0, 1, 12):
        tell(study, {"delay": float(delay)}, None, state=TrialState.FAIL)

    assert 0 <= study.ask({"delay": SPACE["delay"]}).params["delay"] <= 1
    assert study.sampler.incumbent(study) is None


def test_one_parameter_with_two_values_is_enough():
    space = {"nopush": SPACE["nopush"]}
    study = make_study()
    for number in range(14):
        trial = study.ask(space)
        study.tell(trial, float(trial.params["nopush"]) + 0.01 * (number % 3))

    assert study.sampler.incumbent(study).params == {"nopush": True}


def test_a_parameter_with_one_value_is_no_parameter():
    space = {"delay": SPACE["delay"], "fixed": IntDistribution(3, 3)}
    study = make_study()
    for _ in range(10):
        trial = study.ask(space)
        study.tell(trial, trial.params["delay"])

    assert {trial.params["fixed"] for trial in study.trials} == {3}


def test_sixty_parameters_are_not_too_many():
    space = {f"x{number}": FloatDistribution(0.0, 1.0) for number in range(60)}
    study = make_study()
    for _ in range(12):
        trial = study.ask(space)
        study.tell(trial, trial.params["x7"])

    assert len(study.trials[-1].params) == 60


def test_a_pruned_trial_counts_with_more_doubt():
    study = make_study()
    for delay in (0.1, 0.5, 0.9):
        tell(study, {"delay": delay}, delay, variance=1e-4)
    tell(study, {"delay": 1.0}, None, variance=1e-4, state=TrialState.PRUNED, intermediate_values={0: 0.2})

    assert study.sampler.incumbent(study).params == {"delay": 0.9}


def test_nothing_but_failures_is_no_model():
    study = optuna.create_study(sampler=NoisyGPSampler(seed=1, startup_trials=0), direction="maximize")
    for _ in range(3):
        study.tell(study.ask(SPACE), state=TrialState.FAIL)

    assert study.ask(SPACE).params.keys() == SPACE.keys()
