"""Baseline trials: the default measured again and again, and what its failures and jumps lead to."""

from collections.abc import Sequence

from tuner.campaign.experiment import Experiment
from tuner.errors import TargetError, UsageError
from tuner.measure.rate import refuse_rate
from tuner.ports import Config
from tuner.records import Check, Role, State, Trial
from tuner.statistics.baseline_level import BaselineLevel
from tuner.statistics.feasibility import LEAST_RULING, RULED_OUT, judge_feasibility
from tuner.statistics.jumps import requeue
from tuner.statistics.ranking import DEFAULT_ARM, as_baselines
from tuner.study.objective import RELATIVE, SERVER_CPU, UNLIKE_DEFAULT, unmeasured
from tuner.study.storage import Opening

MAX_FAILED = 3
LEAST_BEFORE = 2
"""Baseline trials from which a next one can be far away."""


def measure_baseline(experiment: Experiment) -> list[Config]:
    """Measure the default; a baseline trial far off is measured again at once.

    Returns the configurations that have to be measured again because the machine has changed since.

    Raises:
        TargetError: the default failed too often in a row, or does not take the rate of the study.
        UsageError: a constraint or a cost is not measured, or the default itself breaks a constraint.
    """
    opening = Opening(role=Role.BASELINE, config=experiment.default, arm=DEFAULT_ARM)
    baseline = experiment.make(opening)
    settings, load = experiment.setup.settings, experiment.setup.load
    if not baseline.counts:
        refuse_rate(settings, load, baseline.windows)
        _refuse_failing_default(experiment.own_trials(), baseline)
        return []
    _refuse_unmeasured(experiment, baseline)
    refuse_rate(settings, load, [window for each in experiment.baselines() for window in each.windows])
    _refuse_infeasible_default(experiment)
    earlier = [each for each in experiment.baselines() if each.number != baseline.number]
    if len(earlier) < LEAST_BEFORE or baseline.has_collapsed:
        return []
    if not BaselineLevel.fit(earlier, experiment.ranking().noise).alarm(baseline):
        return []
    experiment.progress.note(
        "the speed of the baseline has changed much since its last trials; tuner measures the baseline again"
    )
    experiment.make(opening)
    again = made_at_a_jump(experiment)
    if again:
        experiment.progress.note(
            f"the speed of the machine has changed; tuner measures {len(again)} "
            f"{'trial' if len(again) == 1 else 'trials'} again"
        )
    return again


def made_at_a_jump(experiment: Experiment) -> list[Config]:
    """Return the configurations that were measured between two baseline trials around a jump."""
    numbers = requeue(as_baselines(experiment.own_trials()), experiment.ranking().noise)
    return [trial.config for trial in experiment.trials if trial.number in numbers]


def _refuse_failing_default(trials: list[Trial], baseline: Trial) -> None:
    """Tolerate one or two failures; then the target is at fault."""
    last = [trial for trial in trials if trial.role is Role.BASELINE][-MAX_FAILED:]
    if len(last) == MAX_FAILED and all(_has_failed(trial) for trial in last):
        said = [verdict.reason for window in baseline.windows for verdict in window.verdicts]
        reason = baseline.failure.reason if baseline.failure else (said or ["unknown"])[-1]
        raise TargetError(f"target: the default configuration failed {MAX_FAILED} times in a row. {reason}")


def _has_failed(baseline: Trial) -> bool:
    """Return whether a baseline failed, or its generator in every window: that is not the host's noise."""
    windows = [{verdict.check for verdict in window.verdicts} for window in baseline.windows]
    return baseline.state is State.FAILED or (
        baseline.state is State.INVALID
        and bool(windows)
        and all(checks & {Check.GENERATOR, Check.SCHEDULE} for checks in windows)
    )


def _refuse_unmeasured(experiment: Experiment, baseline: Trial) -> None:
    """Raise UsageError for a bound that cannot be checked: it would count as kept."""
    settings = experiment.setup.settings
    unknown = unmeasured(baseline, settings.constraints, settings.objective)
    if unknown and not any(window.correct for window in baseline.valid_windows):
        failed = sum(window.failures.total for window in baseline.valid_windows)
        raise UsageError(
            f"{settings.path}: tuner cannot judge {' and '.join(unknown)}, because all {failed:,} requests "
            "of the default failed. Read the server's log, or send less load."
        )
    if unknown:
        unseen = _say_unseen(experiment, baseline, unknown)
        raise UsageError(
            f"{settings.path}: tuner cannot judge {' and '.join(unknown)}: {unseen}. Leave out this "
            "constraint or objective, or use a load generator that reports the metric."
        )


def _say_unseen(experiment: Experiment, baseline: Trial, unknown: Sequence[str]) -> str:
    """Return what was looked for in a baseline trial and is not there."""
    windows = baseline.valid_windows
    answered = sum(window.correct for window in windows)
    missing = []
    if any("latency" in each for each in unknown) and all(window.latency is None for window in windows):
        missing.append(f"{experiment.setup.load.generator.name} reported no response times")
    if any("cpu" in each for each in unknown) and all(
        SERVER_CPU not in window.counters for window in windows
    ):
        missing.append("the server's CPU time could not be read")
    if any("memory" in each for each in unknown) and all(window.memory_mib is None for window in windows):
        missing.append("the memory of the server's processes could not be read, which needs root")
    said = " and ".join(missing) or "nothing reported the metric"
    return f"{said} ({answered:,} correct responses)"


def _refuse_infeasible_default(experiment: Experiment) -> None:
    """Raise UsageError when the default breaks a bound by itself, before anything is searched under it."""
    settings = experiment.setup.settings
    if any(trial.role is not Role.BASELINE for trial in experiment.trials):
        return
    known = judge_feasibility(experiment.trials, settings.constraints, experiment.default)
    if not known.is_ruled_out(experiment.default):
        return
    sought = known.assess_sought(experiment.default)
    if known.default_fails and len(experiment.baselines()) == LEAST_RULING:
        for each in sought:
            experiment.progress.note(
                f"the default {each.finding}; the search looks for a configuration that meets "
                f"{each.constraint}"
            )
    bounded = (
        each for each in known.assess(experiment.default) if each.limit is not None and each not in sought
    )
    worst = min(bounded, key=lambda each: each.probability, default=None)
    if worst is not None and worst.probability < RULED_OUT:
        raise UsageError(
            f"{settings.path}: constraints: the default itself {worst.finding}, above the limit of "
            f"{worst.constraint}. To ask for no worse than the default, write `{worst.metric} <= "
            f"{RELATIVE}`. Or raise the limit, lower `connections:`, or search for a configuration that "
            f"meets the limit: `{worst.constraint} {UNLIKE_DEFAULT}`. tuner keeps the trials of the default."
        )
