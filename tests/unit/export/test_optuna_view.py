"""What Optuna's own tools see of a study, by what they ask a storage."""

from dataclasses import replace

import optuna
import pytest
from optuna.trial import TrialState

from tests.unit.simulated_study import make_summary
from tuner.export.optuna_view import copy_as_optuna
from tuner.records import Role, State
from tuner.study.objective import parse_constraint

SUMMARY = make_summary(searches=12)
BOUND = parse_constraint("failure_rate <= 0.01", "study.yaml: constraints")


@pytest.fixture(scope="module")
def study() -> optuna.Study:
    return optuna.load_study(study_name=SUMMARY.study, storage=copy_as_optuna(SUMMARY, (BOUND,)))


def test_each_start_is_a_trial_with_its_role_and_what_it_gave(study: optuna.Study) -> None:
    starts = [start for start in SUMMARY.starts if start.role.is_under_study_load]

    assert [trial.user_attrs["start"] for trial in study.trials] == [start.number for start in starts]
    assert {trial.user_attrs["role"] for trial in study.trials} >= {"control", "search", "confirm"}
    for trial, start in zip(study.trials, starts, strict=True):
        speedup = SUMMARY.speedups.get(start.number)
        if trial.state is TrialState.COMPLETE:
            assert speedup is not None
            assert trial.values == [speedup.ratio]
        if start.state in {State.FAILED, State.INVALID}:
            assert trial.state is TrialState.FAIL
            assert start.failure is not None
            assert trial.user_attrs["failure"] == start.failure.reason
    assert study.metric_names == ["speedup"]


def test_settings_are_parameters_under_their_names_with_values_as_the_server_has_them(
    study: optuna.Study,
) -> None:
    changed = {name for start in SUMMARY.starts for name in start.config}

    assert {name for trial in study.trials for name in trial.params} <= changed
    assert {trial.params["sendfile"] for trial in study.trials} == {"on", "off"}
    assert all(trial.distributions[name].single() is False for trial in study.trials for name in trial.params)


def test_importances_and_the_best_trial_can_be_asked_for(study: optuna.Study) -> None:
    importances = optuna.importance.get_param_importances(
        study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
    )

    assert set(importances) <= {name for trial in study.trials for name in trial.params}
    assert study.best_trial.values[0] == max(
        trial.values[0] for trial in study.trials if trial.state is TrialState.COMPLETE
    )


def test_what_breaks_a_bound_is_infeasible() -> None:
    first = SUMMARY.starts[0]
    windows = tuple(
        replace(window, failures=replace(window.failures, read=10**6)) for window in first.windows
    )
    broken = replace(SUMMARY, starts=(replace(first, windows=windows), *SUMMARY.starts[1:]))

    trials = optuna.load_study(study_name=broken.study, storage=copy_as_optuna(broken, (BOUND,))).trials

    assert max(trials[0].system_attrs["constraints"]) > 0
    assert max(trials[1].system_attrs["constraints"]) <= 0


def test_two_objectives_are_two_values_each_in_its_direction() -> None:
    summary = replace(SUMMARY, cost="latency_p99_ms")

    study = optuna.load_study(study_name=summary.study, storage=copy_as_optuna(summary, ()))

    assert [direction.name for direction in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert study.metric_names == ["speedup", "latency_p99_ms"]
    assert all(trial.values[1] > 0 for trial in study.trials if trial.state is TrialState.COMPLETE)
    assert len(study.best_trials) >= 1


def test_a_start_under_another_load_is_no_trial_and_one_that_runs_has_no_value() -> None:
    *others, last = SUMMARY.starts
    running = replace(last, number=last.number + 1, state=State.RUNNING, windows=())
    elsewhere = replace(last, role=Role.OTHER_LOADS)
    summary = replace(SUMMARY, starts=(*others, elsewhere, running))

    trials = optuna.load_study(study_name=summary.study, storage=copy_as_optuna(summary, ())).trials

    assert len(trials) == len(SUMMARY.starts)
    assert trials[-1].state is TrialState.RUNNING
    assert trials[-1].values is None
