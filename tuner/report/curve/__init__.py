"""Load curves of a study, recomputed from their storages: configurations under more and more connections."""

from dataclasses import dataclass
from typing import Any

from tuner.campaign.schedule import cost_s
from tuner.errors import UsageError
from tuner.report.wording import say_duration, say_percent
from tuner.statistics.curves.load_curve import LoadCurve, Spot, judge_curve
from tuner.statistics.response_curve import Estimate
from tuner.study import Study
from tuner.study.facts import CURVE, CurvePlan
from tuner.study.side_storages import CURVES, open_storages
from tuner.study.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Configurations measured under rising numbers of connections."""

    study: str
    """Name of the study."""
    workload: str
    """The study's own; its number of connections is what is varied."""
    load_curve: LoadCurve
    """Goodput, failures and p99 of each configuration at each number of connections."""
    trials: int
    """Trials of all configurations together."""
    seconds: float
    """Wall time of all of it."""

    @property
    def plan(self) -> CurvePlan:
        """Return what was asked for."""
        return self.load_curve.plan

    @property
    def names(self) -> tuple[str, ...]:
        """Return the configurations as they were asked for."""
        return self.plan.names

    @property
    def connections(self) -> tuple[int, ...]:
        """Return the numbers of connections, rising."""
        return self.plan.connections

    def spots(self, name: str) -> tuple[Spot, ...]:
        """Return what one configuration gave, by rising connections."""
        return self.load_curve.of(self.names.index(name))

    @property
    def verdict(self) -> str:
        """Return where each collapses: default: failures from 800 connections on; winner: no failures …."""
        return "; ".join(say_collapse(self, index) for index in range(len(self.names)))

    def _repr_mimebundle_(self, **options: object) -> object:
        """Return the figure, as notebooks show it."""
        from tuner.report.curve.page import draw_curve
        from tuner.report.figures.objects import to_bundle

        return to_bundle(draw_curve(self), **options)


def gather_curve(settings: Study, storage: Storage) -> Curve:
    """Recompute a load curve from its storage. Raises UsageError when it holds none."""
    plan = storage.recall(CURVE)
    if plan is None:
        raise UsageError(f"{settings.name}: this storage holds no load curve. Make one with `tuner curve`.")
    trials = storage.trials()
    return Curve(
        study=settings.name, workload=settings.load.describe(),
        load_curve=judge_curve(plan, trials, seed=settings.seed),
        trials=sum(trial.counts for trial in trials), seconds=sum(map(cost_s, trials)),
    )  # fmt: skip


def read_curves(settings: Study) -> tuple[Curve, ...]:
    """Read the load curves of a study in which something was measured; none where nobody made one.

    Raises:
        UsageError: a storage is a link or another user's.
        TargetError: a storage cannot be read.
    """
    return tuple(
        gather_curve(settings, storage)
        for storage in open_storages(settings, CURVES)
        if storage.recall(CURVE) is not None and storage.trials()
    )


# In words


def say_collapse(curve: Curve, config: int) -> str:
    """Write where one configuration collapses: winner: none up to 10,000 connections."""
    name, found = curve.names[config], curve.load_curve.find_collapse(config)
    if found.first is not None:
        return f"{name}: {_say_failing(found.first)}"
    if found.last is None:
        return f"{name}: not measured"
    upto = f"up to {found.last.connections:,} connections"
    worst = max((spot for spot in curve.load_curve.of(config) if spot.requests), key=_failed_share)
    return f"{name}: {f'{say_share(worst)} failed' if worst.failed else 'no failures'} {upto}"


def _failed_share(spot: Spot) -> float:
    return spot.failed / spot.requests


def _say_failing(spot: Spot) -> str:
    where = f"{spot.connections:,} connections"
    if spot.fault:
        return f"serves nothing from {where} on"
    if spot.chance >= 0.5 or not spot.failed:  # noqa: PLR2004 - as LIKELY: it is the trials that fail
        return f"{spot.failed_trials} of {spot.trials + spot.failed_trials} trials fail at {where}"
    return f"failures from {where} on ({say_share(spot)})"


def say_share(spot: Spot) -> str:
    """Write which share of the requests failed: 12 %; a dash where none was sent."""
    if not spot.requests:
        return "–"
    share = _failed_share(spot)
    return "0" if not share else f"{100 * share:.2g} %" if share < 0.1 else say_percent(share, 0)  # noqa: PLR2004 - digits


def say_failures_of(spot: Spot) -> str:
    """Write failed requests with the interval of their share: 1.2 % [0.9 %, 1.6 %]."""
    if spot.failures is None:
        return "–"
    low, high = (
        f"{100 * each:.2g} %" if each < 0.1 else say_percent(each, 0)  # noqa: PLR2004 - digits
        for each in (spot.failures.low, spot.failures.high)
    )
    return f"{say_share(spot)} [{low}, {high}]"


def say_effort(curve: Curve) -> str:
    """Write what was measured: 2 configurations, 5 numbers of connections, 3 blocks, 30 trials, 4 min."""
    count = len(curve.names)
    return (
        f"{count} configuration{'' if count == 1 else 's'}, {len(curve.connections)} numbers of connections, "
        f"{curve.load_curve.blocks} blocks, {curve.trials} trials, {say_duration(curve.seconds)}"
    )


def list_faults(curve: Curve) -> list[str]:
    """Return why a configuration gave no measurement under a load, each as one line."""
    return [
        f"{curve.names[spot.config]} at {spot.connections:,} connections: {spot.fault}"
        for spot in curve.load_curve.spots
        if spot.fault
    ]


# For scripts


def curve_json(curve: Curve) -> dict[str, Any]:
    """Return a load curve as JSON values; keys are added, never renamed."""
    plan = curve.plan
    return {
        "study": curve.study,
        "workload": curve.workload,
        "connections": list(plan.connections),
        "failure_limit": plan.failure_limit,
        "configurations": [
            {
                "name": name,
                "config": dict(plan.configs[index]),
                **_collapse_json(curve, index),
                "points": [_spot_json(spot) for spot in curve.load_curve.of(index)],
            }
            for index, name in enumerate(plan.names)
        ],
        "verdict": curve.verdict,
        "blocks": curve.load_curve.blocks,
        "trials": curve.trials,
        "seconds": round(curve.seconds, 1),
    }


def _collapse_json(curve: Curve, config: int) -> dict[str, Any]:
    found = curve.load_curve.find_collapse(config)
    return {
        "bears_up_to": None if found.last is None else found.last.connections,
        "fails_from": None if found.first is None else found.first.connections,
    }


def _spot_json(spot: Spot) -> dict[str, Any]:
    failures = spot.failures
    return {
        "connections": spot.connections,
        "goodput_rps": _estimate_json(spot.goodput),
        "ratio": _estimate_json(spot.ratio),
        "failed": spot.failed,
        "requests": spot.requests,
        "failure_rate": None if failures is None else
        {"value": failures.value, "low": failures.low, "high": failures.high},
        "latency_p99_ms": spot.p99_ms,
        "bears": spot.bears,
        "chance_bears": spot.chance,
        "trials": spot.trials,
        "failed_trials": spot.failed_trials,
        "fault": spot.fault or None,
    }  # fmt: skip


def _estimate_json(estimate: Estimate | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    return {"value": estimate.ratio, "low": estimate.low, "high": estimate.high}
