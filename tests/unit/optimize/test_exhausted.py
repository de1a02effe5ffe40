"""What is suggested where everything that is good was tried."""

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState

from tests.more import leave_to_more
from tuner.optimize import NoisyGPSampler
from tuner.optimize.history import VARIANCE

BITS = {f"bit{number}": CategoricalDistribution((0, 1)) for number in range(6)}


def ask(study, space, variance):
    trial = study.ask(space)
    trial.set_user_attr(VARIANCE, variance)
    return trial


@pytest.mark.parametrize("how", ["failed", "broken"])
def test_what_is_known_to_crash_is_left_alone_when_all_else_was_tried(how):
    """Of 64 cells 32 crash: after 60 trials the good ones are used up."""
    study = optuna.create_study(sampler=NoisyGPSampler(seed=0), direction="maximize")
    crashed = []
    for _ in range(80):
        trial = ask(study, BITS, 1e-3)
        is_bad = trial.params["bit0"] == 1
        crashed.append(is_bad)
        if how == "broken":
            trial.set_constraint("errors", 1.0 if is_bad else -1.0)
        if is_bad and how == "failed":
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, 0.1 * sum(trial.params.values()))

    assert sum(crashed[20:]) <= 3


def test_the_best_of_a_few_are_measured_again_and_the_worst_is_not():
    worth, rng = [0.0, 0.1, 0.2, -3.0, 0.25, -0.1], np.random.default_rng(0)
    study = optuna.create_study(sampler=NoisyGPSampler(seed=0), direction="maximize")
    tried = [0] * len(worth)
    for _ in range(60):
        trial = ask(study, {"cell": CategoricalDistribution(range(len(worth)))}, 0.01)
        cell = trial.params["cell"]
        tried[cell] += 1
        study.tell(trial, worth[cell] + 0.1 * rng.standard_normal())

    assert tried[3] <= 4
    assert tried[2] + tried[4] > 35


@pytest.mark.parametrize("seed", leave_to_more(range(4)))
def test_failures_by_chance_do_not_lead_to_the_worst(seed):
    """Twelve cells, and a third of the trials fail: the best few are measured again, and no other."""
    space = {"a": CategoricalDistribution(range(6)), "b": CategoricalDistribution(range(2))}
    rng = np.random.default_rng(seed)
    study = optuna.create_study(sampler=NoisyGPSampler(seed=seed), direction="maximize")
    for _ in range(60):
        trial = ask(study, space, 0.01)
        if rng.random() < 0.3:
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, trial.params["a"] + 0.5 * trial.params["b"] + 0.1 * rng.standard_normal())

    assert sum(trial.params["a"] < 3 for trial in study.trials[20:]) <= 6


def test_a_repeat_is_spent_on_what_is_feasible():
    """The best lies on the bound; what is worth more breaks it."""
    rng = np.random.default_rng(0)
    study = optuna.create_study(sampler=NoisyGPSampler(seed=0), direction="maximize")
    for _ in range(60):
        trial = ask(study, {"a": CategoricalDistribution(range(4))}, 0.01)
        trial.set_constraint("errors", abs(trial.params["a"] - 2) - 0.5)
        study.tell(trial, trial.params["a"] + 0.1 * rng.standard_normal())

    assert {trial.params["a"] for trial in study.trials[15:]} == {2}


def test_the_only_choice_that_works_is_taken():
    space = {"cache": CategoricalDistribution(("on", "off"))}
    study = optuna.create_study(sampler=NoisyGPSampler(seed=0, startup_trials=1), direction="maximize")
    for _ in range(30):
        trial = ask(study, space, 1e-3)
        if trial.params["cache"] == "off":
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, 1.0)

    assert {trial.params["cache"] for trial in study.trials[10:]} == {"on"}


def test_workers_share_what_is_left_of_a_small_space():
    space = {"cell": CategoricalDistribution(range(12))}
    study = optuna.create_study(sampler=NoisyGPSampler(seed=0), direction="maximize")
    for _ in range(6):
        trial = ask(study, space, 1e-6)
        study.tell(trial, -abs(trial.params["cell"] - 5))
    tried = {trial.params["cell"] for trial in study.trials}

    asked = [study.ask(space).params["cell"] for _ in range(12 - len(tried))]

    assert tried | set(asked) == set(range(12))


def test_where_nothing_was_feasible_yet_the_search_goes_on():
    space = {f"x{number}": optuna.distributions.FloatDistribution(0.0, 1.0) for number in range(4)}
    study = optuna.create_study(sampler=NoisyGPSampler(seed=0), direction="maximize")
    for _ in range(30):
        trial = ask(study, space, 1e-4)
        trial.set_constraint("errors", 1.0 if trial.params["x0"] > 0.1 else -1.0)
        study.tell(trial, trial.params["x1"])

    assert study.sampler.incumbent(study).params["x0"] <= 0.1
