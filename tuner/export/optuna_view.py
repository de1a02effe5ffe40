"""A study as Optuna's own tools take it: a copy in memory, with the settings as parameters under their names.

The study's storage has what tuner needs: whole trials, and a value in logarithms. People who look at a study
with tools that know Optuna's want parameters, named objectives and what is feasible, and nothing that they do
there may reach the storage.
"""

import datetime as dt
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.exceptions import ExperimentalWarning
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from tuner.explain.explanation import Explanation
from tuner.ports import Scalar
from tuner.records import Role, State, Trial
from tuner.report.summary import Summary, gather_arm
from tuner.report.terminal import headline
from tuner.space import Space
from tuner.study.objective import METRICS, Constraint, slacks

SPEEDUP = "speedup"
FEASIBILITY = "constraints"
"""System attribute of a trial in which optuna-dashboard looks for slacks; at most 0 is feasible."""
STATES = {
    State.RUNNING: TrialState.RUNNING, State.COMPLETE: TrialState.COMPLETE, State.PRUNED: TrialState.PRUNED,
    State.FAILED: TrialState.FAIL, State.INVALID: TrialState.FAIL,
}  # fmt: skip


def copy_as_optuna(summary: Summary, constraints: Sequence[Constraint]) -> InMemoryStorage:
    """Return a storage with one study, in which every trial under the study's own load is a trial.

    The first objective is the speedup, relative to the default at that time; the second of a study that has
    one is the metric itself, in its own unit. A trial's user attributes say which trial it is, what it was
    for (role, arm, block) and what it gave. A trial that is not compared, as it is invalid or a metric is
    missing, is a failed trial.
    """
    storage = InMemoryStorage()
    cost = summary.cost
    study = optuna.create_study(
        storage=storage, study_name=summary.study,
        directions=["maximize", "minimize"] if cost else ["maximize"],
    )  # fmt: skip
    with warnings.catch_warnings(category=ExperimentalWarning, action="ignore"):
        study.set_metric_names([SPEEDUP, cost] if cost else [SPEEDUP])
    for key, value in _describe(summary).items():
        study.set_user_attr(key, value)
    trials = [trial for trial in summary.trials if trial.role.is_under_study_load]
    laid_out = lay_out(summary.space, [trial.config for trial in trials])
    baselines = [trial for trial in trials if trial.role is Role.BASELINE]
    for trial in trials:
        study.add_trial(_as_stored(summary, trial, laid_out, slacks(trial, constraints, baselines)))
    return storage


def _describe(summary: Summary) -> dict[str, str]:
    return {
        "result": headline(summary).plain, "state": summary.state, "objective": summary.objective,
        "constraints": ", ".join(summary.constraints), "workload": summary.workload,
    }  # fmt: skip


def lay_out(space: Space, configs: Sequence[Mapping[str, Scalar]]) -> dict[str, BaseDistribution]:
    """Return a distribution for each setting that has more than one value, as wide as what was tried.

    What is derived from others, or only builds them, is none that anybody chooses.
    """
    names = [each.name for each in space.parameters if not each.internal]
    tried = {name: {config[name] for config in configs if name in config} for name in names}
    return {name: _distribution(values) for name, values in tried.items() if len(values) > 1}


def weigh_settings(summary: Summary) -> dict[str, Any]:
    """Return the chart of importances as optuna-dashboard asks for it: shares of the effects, per objective.

    Optuna's own evaluator knows nothing of noise and of the default: it puts settings first that do nothing.
    Without an explanation every list is empty.
    """
    laid_out = lay_out(summary.space, [trial.config for trial in summary.trials])
    found = summary.explanation
    objectives = [found, *([found.beside if found else None] if summary.cost else [])]
    return {"param_importances": [_weigh(each, laid_out) for each in objectives]}


def _weigh(found: Explanation | None, laid_out: Mapping[str, BaseDistribution]) -> list[dict[str, Any]]:
    effects = {each.parameter: abs(each.effect.log) for each in (found.settings if found else ())}
    shown = {name: effect for name, effect in effects.items() if name in laid_out}
    whole = sum(shown.values()) or 1.0
    return [
        {"name": name, "importance": effect / whole, "distribution": type(laid_out[name]).__name__}
        for name, effect in sorted(shown.items(), key=lambda each: -each[1])
    ]


def _distribution(values: set[Scalar]) -> BaseDistribution:
    if all(type(value) is int for value in values):
        low, high = min(values), max(values)
        return IntDistribution(int(low), int(high))
    if all(type(value) in {int, float} for value in values):
        return FloatDistribution(float(min(values)), float(max(values)))
    return CategoricalDistribution(sorted({_plain(value) for value in values}))


def _plain(value: Scalar) -> str:
    """Return a choice as a server's file would have it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _as_stored(
    summary: Summary, trial: Trial, laid_out: Mapping[str, BaseDistribution], slack: Mapping[str, float]
) -> FrozenTrial:
    params = dict(_params(trial, laid_out))
    values = list(_values(summary, trial))
    state = STATES[trial.state]
    if state in {TrialState.COMPLETE, TrialState.PRUNED} and None in values:
        state = TrialState.FAIL
    stored = create_trial(
        state=state,
        values=[float(value) for value in values if value is not None]
        if state is TrialState.COMPLETE
        else None,
        params=params,
        distributions={name: laid_out[name] for name in params},
        user_attrs={key: value for key, value in _attributes(summary, trial) if value is not None},
        system_attrs={FEASIBILITY: list(slack.values())} if state is TrialState.COMPLETE else {},
    )
    stored.datetime_start = _as_time(trial.started_s)
    if state.is_finished():
        ends = (window.started_s + window.duration_s for window in trial.windows)
        stored.datetime_complete = _as_time(max(ends, default=trial.started_s))
    return stored


def _as_time(seconds: float) -> dt.datetime:
    """Return a local time without a zone, as Optuna's are."""
    return dt.datetime.fromtimestamp(seconds)  # noqa: DTZ006 - so are theirs


def _params(trial: Trial, laid_out: Mapping[str, BaseDistribution]) -> Iterator[tuple[str, Any]]:
    for name, distribution in laid_out.items():
        if name in trial.config:
            value = trial.config[name]
            yield name, _plain(value) if isinstance(distribution, CategoricalDistribution) else value


def _values(summary: Summary, trial: Trial) -> Iterator[float | None]:
    speedup = summary.speedups.get(trial.number)
    yield None if speedup is None else speedup.ratio
    if summary.cost:
        yield METRICS[summary.cost](trial)


def _attributes(summary: Summary, trial: Trial) -> Iterator[tuple[str, Any]]:
    arm = gather_arm(trial.config, [trial])
    speedup = summary.speedups.get(trial.number)
    yield from (("trial", trial.number), ("role", trial.role.label), ("arm", trial.arm or None))
    yield from (("block", trial.block), ("ended", trial.state.value))
    yield "speedup interval", None if speedup is None else [round(end, 4) for end in speedup.interval()]
    if arm.requests:
        yield from (("goodput_rps", round(arm.goodput_rps)), ("failures", arm.failures))
        yield "latency_p99_ms", arm.latency_p99_ms
    yield "failure", None if trial.failure is None else trial.failure.reason
