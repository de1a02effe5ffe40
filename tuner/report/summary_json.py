"""A summary as `tuner show --json` prints it."""

import math
from collections.abc import Mapping
from typing import Any

from tuner.campaign.stages.fixed_rate import LatencyClaim
from tuner.ports import ConnectTime, Scalar
from tuner.records import Trial, Window
from tuner.records.latency import Quantile
from tuner.report.explanation.as_json import explanation_json, sensitivity_json
from tuner.report.summary import P99, Arm, Found, Sides, Summary
from tuner.report.wording import say_robustness
from tuner.space import describe_searched
from tuner.statistics.age import Trend
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.confirmation.paired_gain import Gain
from tuner.statistics.confirmation.robustness import Robustness, Side
from tuner.statistics.feasibility import Assessment
from tuner.statistics.pareto import FrontChoice


def summary_json(summary: Summary) -> dict[str, Any]:
    """Return the whole summary as JSON values."""
    best, winner, latency = summary.incumbent, summary.winner, summary.latency
    return {
        **_fields(summary, "study", "state", "stop_reason"),
        "verdict": summary.verdict,
        "reason": summary.reason,
        "fingerprint": _fields(
            summary.fingerprint, "host", "kernel", "servers", "cpu", "cores", "memory_mib", "generator",
            "co_located", "server_cpus", "generator_cpus",
        ),
        **_fields(summary, "preset", "workload", "objective", "constraints"),
        "metric": summary.metric.value,
        "default": arm_json(summary.default),
        "incumbent": None if best is None else {"config": dict(best[0]), "speedup": best[1].ratio},
        "winner": None if winner is None else arm_json(winner) | {
            "changes": _pairs(summary.changes),
            "ships": _pairs(summary.shipped),
            "also": {name: also for name in summary.shipped if (also := summary.space.also(name))},
        },
        "capacity": {
            "default": summary.space.capacity(summary.default.config),
            "winner": None if winner is None else summary.space.capacity(winner.config),
            "lacks": list(summary.lacks),
            "grows": [str(each) for each in summary.grows],
            "allowed": summary.space.allows_less,
        },
        "not_searched": {
            name: reasons
            for name, reasons in describe_searched(summary.space).items()
            if name in {"cannot_act", "held", "left_out"}
        },
        "gain": None if summary.gain is None else gain_json(summary.gain, summary.reason),
        "across_loads": summary.across or None,
        "loads": [
            {**_fields(each, "name", "weight", "workload"), **_sides_json(each)} for each in summary.by_load
        ],
        "across_hosts": summary.across_hosts or None,
        "hosts": [
            {"name": each.name, "worst": each.is_worst, **_sides_json(each)} for each in summary.by_host
        ],
        "feasibility": [_assessment_json(each) for each in summary.assessments],
        "expected_gain": summary.expected_gain,
        "front": [_choice_json(summary, number, choice) for number, choice in enumerate(summary.front, 1)],
        "found": None if summary.found is None else _found_json(summary, summary.found),
        "rejected": [{"config": dict(each.config), "reason": each.reason} for each in summary.rejections],
        "robustness": [_robustness_json(summary, each) for each in summary.robustness],
        "mix": {name: each.as_json() for name, each in summary.fidelity.items()},
        "latency": None if latency is None else _latency_json(latency),
        "noise": _fields(summary.noise, "sigma_window", "sigma_trial", "drift_per_s"),
        "sensitivity": []
        if summary.explanation is None
        else sensitivity_json(summary.explanation, summary.changes),
        "explanation": None if summary.explanation is None else explanation_json(summary.explanation),
        "mechanisms": [each.sentence for each in summary.mechanisms],
        "trials": [_trial_json(trial, summary.speedups.get(trial.number)) for trial in summary.trials],
        "timing": dict(summary.timing),
    }  # fmt: skip


def _found_json(summary: Summary, found: Found) -> dict[str, Any]:
    low, high = found.speedup.interval()
    return {
        "config": dict(found.config), "changes": _pairs(summary.space.changes(found.config)),
        "speedup": found.speedup.ratio, "low": low, "high": high, "reason": found.reason,
    }  # fmt: skip


def gain_json(gain: Gain, reason: str) -> dict[str, Any]:
    """Return a gain as `show` and `compare` print it, with the reason of its verdict."""
    names = ("ratio", "low", "high", "pairs", "verdict", "p_sign_flip", "hodges_lehmann")
    by_load, by_host = (
        {name: _fields(each, "ratio", "low", "high", "verdict") for name, each in parts.items()}
        for parts in (gain.by_load, gain.by_host)
    )
    return {
        **_fields(gain, *names), "metric": gain.metric.value, "reason": reason, **age_json(gain),
        "p99_ratio": None if gain.p99 is None else _fields(gain.p99, "ratio", "low", "high"),
        "by_load": by_load, "by_host": by_host,
    }  # fmt: skip


def age_json(gain: Gain) -> dict[str, Any]:
    """Return the seconds under load for which a gain holds, and how it changes within them."""
    age = gain.age
    if age is None:
        return {"age_s": None, "trend": None}
    trend = None if age.ratio is None else {
        **_trend_json(age.ratio),
        "certain": age.ratio.is_certain,
        "default": None if age.default is None else _trend_json(age.default),
        "winner": None if age.winner is None else _trend_json(age.winner),
    }  # fmt: skip
    return {"age_s": [round(age.from_s, 2), round(age.to_s, 2)], "trend": trend}


def _trend_json(trend: Trend) -> dict[str, float]:
    return _fields(trend, "change", "low", "high")


def _assessment_json(assessment: Assessment) -> dict[str, Any]:
    """Return what is known under one constraint; a limit of null is what the default has."""
    sides = {"winner": assessment.seen, "default": assessment.of_default}
    return {
        **_fields(assessment, "constraint", "metric", "limit", "probability"),
        **{
            side: None if seen is None else _fields(seen, "value", "low", "high")
            for side, seen in sides.items()
        },
    }


def _fields(record: object, *names: str) -> dict[str, Any]:
    """Return some attributes by name; JSON knows lists and dictionaries only."""
    values = {name: getattr(record, name) for name in names}
    return {
        name: list(each) if isinstance(each, tuple) else dict(each) if isinstance(each, Mapping) else each
        for name, each in values.items()
    }


def _pairs(changes: Mapping[str, tuple[Scalar, Scalar]]) -> dict[str, list[Scalar]]:
    return {name: list(pair) for name, pair in changes.items()}


def _choice_json(summary: Summary, number: int, choice: FrontChoice) -> dict[str, Any]:
    """Return one choice of the front; both ratios are relative to the default."""
    sides = {"goodput": choice.goodput, summary.cost or "cost": choice.cost}
    return {
        "pick": number,
        **{
            f"{name}_ratio": {"ratio": each.ratio, "low": each.interval()[0], "high": each.interval()[1]}
            for name, each in sides.items()
        },
        "trials": choice.trials,
        "is_winner": summary.is_winner(choice.config),
        "changes": _pairs(summary.space.changes(choice.config)),
    }


def _latency_json(claim: LatencyClaim) -> dict[str, Any]:
    return {
        **_fields(claim, "rate_rps", "pairs"),
        "p99_ms": {"default": _quantile_json(claim.default_p99), "winner": _quantile_json(claim.winner_p99)},
        "p99_ratio": _fields(claim.ratio, "ratio", "low", "high"),
    }


def _quantile_json(found: Quantile | None) -> dict[str, float | None] | None:
    return None if found is None else {"value": found.value_ms, "low": found.low_ms, "high": found.high_ms}


def _trial_json(trial: Trial, speedup: Speedup | None) -> dict[str, Any]:
    return {
        "number": trial.number,
        "role": trial.role.label,
        "state": trial.state.value,
        **_fields(trial, "arm", "block", "started_s", "config"),
        "speedup": None if speedup is None else speedup.ratio,
        "windows": [
            {
                "goodput_rps": window.goodput_rps,
                "duration_s": window.duration_s,
                # What the study compares: goodput, or where the load generator is the limit, per CPU second.
                "compared": math.exp(window.log_value),
                "failures": window.failures.total,
                "latency_p99_ms": None if window.latency is None else window.latency.quantiles_ms.get(P99),
                "connect_ms": None if window.connect_time is None else _connect_json(window.connect_time),
                **({"by_load": _parts_json(window)} if window.parts else {}),
                "valid": window.is_valid,
                "verdicts": [f"{verdict.check}: {verdict.reason}" for verdict in window.verdicts],
            }
            for window in trial.windows
        ],
        "reason": None if trial.failure is None else f"{trial.failure.kind}: {trial.failure.reason}",
    }


def _parts_json(window: Window) -> dict[str, Any]:
    """Return what a window gave under each of several loads."""
    return {
        name: {"goodput_rps": part.goodput_rps, "failures": part.failures.total}
        for name, part in window.parts.items()
    }


def _robustness_json(summary: Summary, found: Robustness) -> dict[str, Any]:
    return {
        "config": dict(found.config),
        "winner": summary.is_winner(found.config),
        **_fields(found, "verdict", "pairs", "failure"),
        "text": say_robustness(found, summary.side if summary.is_winner(found.config) else "candidate"),
        "check_loads": [
            {
                **_fields(each.check_load, "name", "connections", "keepalive", "slow_clients"),
                "verdict": each.finding,
                "default": _side_json(each.default),
                "candidate": _side_json(each.candidate),
                **_fields(each, "ratio", "low", "high"),
            }
            for each in found.checked
        ],
        "left_out": dict(found.left_out),
    }


def _sides_json(found: Sides) -> dict[str, Any]:
    """Return both sides under one load, or on one host; their configurations are those of the whole."""
    sides = {"default": found.default, "winner": found.winner}
    return {
        **{
            side: None if arm is None else {k: v for k, v in arm_json(arm).items() if k != "config"}
            for side, arm in sides.items()
        },
        "gain": None if found.gain is None else _fields(found.gain, "ratio", "low", "high", "verdict"),
    }


def _side_json(side: Side) -> dict[str, float]:
    return _fields(side, "goodput_rps", "failure_rate", "settling_s")


def arm_json(arm: Arm) -> dict[str, Any]:
    """Return what one configuration gave."""
    return {
        **_fields(arm, "config", "goodput_rps", "latency_p99_ms", "failures", "requests", "trials"),
        "failed_trials": arm.failed_trials,
        "lower_bound": arm.is_lower_bound,
        "requests_per_cpu_s": arm.requests_per_cpu_s,
        "connect_ms": None if arm.connect_time is None else _connect_json(arm.connect_time),
        "latency_ms": dict(arm.latency_ms),
        "window_s": arm.window_s,
        "memory_mib": arm.memory_mib,
    }


def _connect_json(time: ConnectTime) -> dict[str, float]:
    return {"min": time.min_ms, "mean": time.mean_ms, "max": time.max_ms}
