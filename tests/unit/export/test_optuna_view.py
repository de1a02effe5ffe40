"""What Optuna's own tools see of a study, by what they ask a storage."""

from dataclasses import replace

import optuna
import pytest
from optuna.trial import TrialState

from tests.unit.simulated_study import make_summary
from tuner.export.optuna_view import copy_as_optuna, lay_out, weigh_settings
from tuner.records import Role, State
from tuner.study.objective import parse_constraint

SUMMARY = make_summary(searches=12)
BOUND = parse_constraint("failure_rate <= 0.01", "study.yaml: constraints")


@pytest.fixture(scope="module")
def study() -> optuna.Study:
    return optuna.load_study(study_name=SUMMARY.study, storage=copy_as_optuna(SUMMARY, (BOUND,)))


def test_each_trial_is_shown_with_its_role_and_what_it_gave(study: optuna.Study) -> None:
    trials = [trial for trial in SUMMARY.trials if trial.role.is_under_study_load]

    assert [shown.user_attrs["trial"] for shown in study.trials] == [trial.number for trial in trials]
    assert {shown.user_attrs["role"] for shown in study.trials} >= {"baseline", "search", "confirm"}
    for shown, trial in zip(study.trials, trials, strict=True):
        speedup = SUMMARY.speedups.get(trial.number)
        if shown.state is TrialState.COMPLETE:
            assert speedup is not None
            assert shown.values == [speedup.ratio]
        if trial.state in {State.FAILED, State.INVALID}:
            assert shown.state is TrialState.FAIL
            assert trial.failure is not None
            assert shown.user_attrs["failure"] == trial.failure.reason
    assert study.metric_names == ["speedup"]


def test_settings_are_parameters_under_their_names_with_values_as_the_server_has_them(
    study: optuna.Study,
) -> None:
    changed = {name for trial in SUMMARY.trials for name in trial.config}

    assert {name for shown in study.trials for name in shown.params} <= changed
    assert {shown.params["sendfile"] for shown in study.trials} == {"on", "off"}
    assert all(shown.distributions[name].single() is False for shown in study.trials for name in shown.params)


def test_importances_and_the_best_trial_can_be_asked_for(study: optuna.Study) -> None:
    importances = optuna.importance.get_param_importances(
        study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
    )

    assert set(importances) <= {name for shown in study.trials for name in shown.params}
    assert study.best_trial.values[0] == max(
        shown.values[0] for shown in study.trials if shown.state is TrialState.COMPLETE
    )


def test_what_is_derived_or_only_builds_others_is_no_parameter() -> None:
    without = [each for each in SUMMARY.space.parameters if each.name != "aio"]
    parameters = tuple(replace(each, internal=each.name == "sendfile") for each in without)
    space = replace(SUMMARY.space, parameters=parameters)

    laid_out = lay_out(space, [trial.config for trial in SUMMARY.trials])

    assert {"open_file_cache", "worker_processes"} <= {*laid_out}
    assert not {"sendfile", "aio"} & {*laid_out}


def test_importances_are_the_shares_of_the_effects_that_are_explained() -> None:
    summary = replace(SUMMARY, cost="latency_p99_ms")
    (weighed, of_cost) = weigh_settings(summary)["param_importances"]

    assert summary.explanation is not None
    assert {each["name"] for each in weighed} == {each.parameter for each in summary.explanation.settings}
    assert weighed == sorted(weighed, key=lambda each: -each["importance"])
    assert sum(each["importance"] for each in weighed) == pytest.approx(1)
    assert of_cost == []
    assert weigh_settings(replace(SUMMARY, explanation=None)) == {"param_importances": [[]]}


def test_what_breaks_a_bound_is_infeasible() -> None:
    first = SUMMARY.trials[0]
    windows = tuple(
        replace(window, failures=replace(window.failures, read=10**6)) for window in first.windows
    )
    broken = replace(SUMMARY, trials=(replace(first, windows=windows), *SUMMARY.trials[1:]))

    shown = optuna.load_study(study_name=broken.study, storage=copy_as_optuna(broken, (BOUND,))).trials

    assert max(shown[0].system_attrs["constraints"]) > 0
    assert max(shown[1].system_attrs["constraints"]) <= 0


def test_two_objectives_are_two_values_each_in_its_direction() -> None:
    summary = replace(SUMMARY, cost="latency_p99_ms")

    study = optuna.load_study(study_name=summary.study, storage=copy_as_optuna(summary, ()))

    assert [direction.name for direction in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert study.metric_names == ["speedup", "latency_p99_ms"]
    assert all(shown.values[1] > 0 for shown in study.trials if shown.state is TrialState.COMPLETE)
    assert len(study.best_trials) >= 1


def test_a_trial_under_another_load_is_not_shown_and_one_that_runs_has_no_value() -> None:
    *others, last = SUMMARY.trials
    running = replace(last, number=last.number + 1, state=State.RUNNING, windows=())
    elsewhere = replace(last, role=Role.ROBUSTNESS)
    summary = replace(SUMMARY, trials=(*others, elsewhere, running))

    shown = optuna.load_study(study_name=summary.study, storage=copy_as_optuna(summary, ())).trials

    assert len(shown) == len(SUMMARY.trials)
    assert shown[-1].state is TrialState.RUNNING
    assert shown[-1].values is None
