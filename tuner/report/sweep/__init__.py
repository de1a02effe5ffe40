"""Sweeps of a study, recomputed from their storages: the response curve of one parameter each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuner.campaign.schedule import cost_s
from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.records import Metric
from tuner.report.summary import Arm, gather_arms
from tuner.report.summary_json import arm_json
from tuner.report.wording import capitalize, say_duration, say_estimate, say_metric, say_percent
from tuner.space import Space
from tuner.space.grid import GridPoint, follows
from tuner.statistics.curves.sweep import NEAR, WHOLE_BLOCKS, Sweeping, Tried, judge_sweep
from tuner.statistics.response_curve import Estimate
from tuner.study import Study
from tuner.study.facts import SWEEP, SweepPlan
from tuner.study.side_storages import SWEEPS, open_storages
from tuner.study.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The measured response of one parameter."""

    study: str
    """Name of the study."""
    workload: str
    """What the load generator sends, in words."""
    space: Space
    """What the study tunes; the parameter is one of it."""
    sweeping: Sweeping
    """The values that were tried, with the estimate and the interval of each."""
    arms: tuple[Arm, ...]
    """What the trials of each value gave, in the order of the plan's values."""
    metric: Metric
    """What is measured."""
    trials: int
    """Trials of all values together."""
    seconds: float
    """Wall time of all of it."""
    unsteady: tuple[int, ...] = ()
    """Of each value, its trials that were still changing when they were measured."""

    @property
    def plan(self) -> SweepPlan:
        """Return what was asked for."""
        return self.sweeping.plan

    @property
    def parameter(self) -> str:
        """Return the name of the parameter."""
        return self.plan.parameter

    @property
    def values(self) -> tuple[Scalar, ...]:
        """Return the values that were measured, in order."""
        return self.plan.values

    @property
    def estimates(self) -> tuple[Estimate | None, ...]:
        """Return the ratio of each value to the baseline; None where there is no measurement."""
        return tuple(each.estimate for each in self.sweeping.tried)

    @property
    def baseline(self) -> Scalar:
        """Return the value to which ratios are relative: what the parameter is without a sweep."""
        return self.plan.values[self.plan.control]

    @property
    def best(self) -> Scalar | None:
        """Return the value that is best, or as good as that; None where none may be named."""
        return None if self.sweeping.best is None else self.plan.values[self.sweeping.best]

    @property
    def tolerated(self) -> tuple[Scalar, ...]:
        """Return the values around the best one that lose no more than 3 % against it."""
        return tuple(self.plan.values[each.index] for each in self.sweeping.tried if each.is_tolerated)

    @property
    def advice(self) -> str:
        """Return what to do, in one sentence."""
        return advise(self)

    def show(self, value: Scalar) -> str:
        """Return a value as people read it."""
        return self.space.show(self.parameter, value)

    def _repr_mimebundle_(self, **options: object) -> object:
        """Return the figure, as notebooks show it."""
        from tuner.report.figures.objects import to_bundle
        from tuner.report.sweep.page import draw_sweep

        return to_bundle(draw_sweep(self), **options)


def gather_sweep(settings: Study, space: Space, storage: Storage) -> Sweep:
    """Recompute a sweep from its storage. Raises UsageError when it holds none."""
    plan = storage.recall(SWEEP)
    if plan is None:
        raise UsageError(f"{settings.name}: this storage holds no sweep. Make one with `tuner sweep`.")
    trials = storage.trials()
    return Sweep(
        study=settings.name, workload=settings.describe_load(), space=space, metric=storage.metric,
        sweeping=judge_sweep(plan, trials, settings.constraints, seed=settings.seed),
        arms=gather_arms(dict(zip(plan.arms, plan.configs, strict=True)), trials),
        unsteady=tuple(
            sum(each.counts and not each.steady for each in trials if each.arm == arm) for arm in plan.arms
        ),
        trials=sum(trial.counts for trial in trials), seconds=sum(map(cost_s, trials)),
    )  # fmt: skip


def read_sweeps(settings: Study, space: Space) -> tuple[Sweep, ...]:
    """Read the sweeps of a study in which something was measured; none where nobody made one.

    Raises:
        UsageError: a storage is a link or another user's.
        TargetError: a storage cannot be read.
    """
    return tuple(
        gather_sweep(settings, space, storage)
        for storage in open_storages(settings, SWEEPS)
        if storage.recall(SWEEP) is not None and any(trial.counts for trial in storage.trials())
    )


# In words


def name_best(sweep: Sweep) -> str:
    """Return the best value with its ratio: ThreadsPerChild 64: 1.12× [1.05, 1.19] of 25."""
    best = sweep.sweeping.best
    if best is None:
        return f"{sweep.parameter}: no value can be named best{_say_too_few(sweep)}"
    value, baseline = sweep.show(sweep.values[best]), sweep.show(sweep.baseline)
    estimate = sweep.estimates[best]
    if best == sweep.plan.control or estimate is None:
        return f"{sweep.parameter} {value}, its value at the {sweep.plan.at}, is as good as any"
    return (
        f"{sweep.parameter} {value}: {say_estimate(estimate)} of {baseline}, its value at the {sweep.plan.at}"
    )


def advise(sweep: Sweep) -> str:
    """Return what to do, in one sentence."""
    name, baseline, best = sweep.parameter, sweep.show(sweep.baseline), sweep.sweeping.best
    if best is None and (few := _say_too_few(sweep)):
        return f"Keep {name} at {baseline}{few}. Run the sweep again with more minutes to resume it."
    if best is None:
        return f"Keep {name} at {baseline}: no value gave a usable measurement."
    value, estimate = sweep.show(sweep.values[best]), sweep.estimates[best]
    if best == sweep.plan.control or estimate is None:
        return f"Keep {name} at {baseline}: no other value is shown to be better."
    if estimate.low > 1:
        what = "goodput" if sweep.metric is Metric.GOODPUT else say_metric(sweep.metric)
        return f"Set {name} to {value}: {say_estimate(estimate)} the {what} of {baseline}."
    return (
        f"Keep {name} at {baseline}: {value} looks best with {say_estimate(estimate)}, which is not proven "
        "to be better."
    )


def _say_too_few(sweep: Sweep) -> str:
    """Return that too little was measured to name a value; empty where it was enough."""
    done = sweep.sweeping.blocks
    return f": {done} of at least {WHOLE_BLOCKS} blocks were measured" if 0 < done < WHOLE_BLOCKS else ""


def say_tolerance(sweep: Sweep) -> str:
    """Write the range around the best value that is as good: 12 to 40: within 3 % of the best."""
    if sweep.sweeping.best is None:
        return ""
    shown = [sweep.show(value) for value in sweep.tolerated]
    if len(shown) == 1:
        return f"No other value is known to be within {say_percent(NEAR)} of the best."
    is_range = sweep.sweeping.best not in sweep.plan.special
    said = f"{shown[0]} to {shown[-1]}" if is_range else ", ".join(shown)
    return f"{said}: within {say_percent(NEAR)} of the best."


def say_effort(sweep: Sweep) -> str:
    """Write what was measured: 9 values, 7 blocks, 63 trials, 3 min 52 s."""
    return (
        f"{len(sweep.values)} values, {sweep.sweeping.blocks} blocks, {sweep.trials} trials, "
        f"{say_duration(sweep.seconds)}"
    )


def list_faults(sweep: Sweep) -> list[str]:
    """Return why values may not be named best, and of which the server was still changing, a line each."""
    lacking = "has less capacity than the default, so it is not named best: "
    changing = [
        f"{sweep.show(value)}: {count} of {arm.trials} trials were measured while goodput or the number of "
        "processes still changed; the figure may be too low. Set a longer `warmup_s:`."
        for value, count, arm in zip(sweep.values, sweep.unsteady, sweep.arms, strict=False)
        if 2 * count > arm.trials
    ]
    return changing + [
        f"{sweep.show(sweep.values[each.index])} {'fails: ' if each.is_out else lacking}{each.fault}"
        for each in sweep.sweeping.tried
        if each.fault
    ]


def list_followers(sweep: Sweep) -> Mapping[str, Sequence[str]]:
    """Return what changes with the values: setting → what it is at each, in order; a dash where it is off."""
    plan, base = sweep.plan, sweep.plan.configs[sweep.plan.control]
    changed: dict[str, None] = {}
    for value, config in zip(plan.values, plan.configs, strict=True):
        point = GridPoint(value=value, config=config)
        changed |= dict.fromkeys(follows(sweep.space, base, point, plan.parameter))
    return {
        name: [sweep.space.show(name, config[name]) if name in config else "–" for config in plan.configs]
        for name in changed
    }


# For scripts


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    """Return a sweep as JSON values; keys are added, never renamed."""
    best = sweep.sweeping.best
    numbers = [value for value in sweep.tolerated if not isinstance(value, str)]
    return {
        "study": sweep.study,
        "parameter": sweep.parameter,
        "at": sweep.plan.at,
        "metric": sweep.metric.value,
        "workload": sweep.workload,
        "baseline": sweep.baseline,
        "values": [
            _value_json(sweep, each, arm) for each, arm in zip(sweep.sweeping.tried, sweep.arms, strict=True)
        ],
        "best": None if best is None else _value_json(sweep, sweep.sweeping.tried[best], sweep.arms[best]),
        "tolerance": None if best is None else {
            "loss": NEAR,
            "values": list(sweep.tolerated),
            "low": min(numbers) if best not in sweep.plan.special else None,
            "high": max(numbers) if best not in sweep.plan.special else None,
        },
        "advice": capitalize(sweep.advice),
        "blocks": sweep.sweeping.blocks,
        "trials": sweep.trials,
        "seconds": round(sweep.seconds, 1),
    }  # fmt: skip


def _value_json(sweep: Sweep, tried: Tried, arm: Arm) -> dict[str, Any]:
    value, estimate = sweep.values[tried.index], tried.estimate
    return {
        "value": value,
        "shown": sweep.show(value),
        "ratio": None if estimate is None else estimate.ratio,
        "low": None if estimate is None else estimate.low,
        "high": None if estimate is None else estimate.high,
        "chance_best": tried.chance_best,
        "chance_within_tolerance": tried.chance_near,
        "tolerated": tried.is_tolerated,
        **arm_json(arm),
        "fault": tried.fault or None,
    }
