"""A study on one page: everything that is shown, exported or printed, recomputed from the storage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tuner.campaign.finals import read_gain
from tuner.campaign.fixed_rate import LatencyClaim, read_latency
from tuner.campaign.search import EXPECTED, left_to_gain
from tuner.errors import UsageError
from tuner.ports import Config, ConnectTime, Scalar
from tuner.records import Fingerprint, Role, Start, State, Window, is_censored
from tuner.records.latency import merge
from tuner.report.sensitivity import Sensitivity, explain
from tuner.statistics.control_level import Speedup
from tuner.statistics.mechanism import Mechanism, compare_mechanisms
from tuner.statistics.pareto import Choice, find_front
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM, Standing, as_controls, follow_incumbent, stand

if TYPE_CHECKING:
    from tuner.space import Space
    from tuner.statistics.confirm import Gain
    from tuner.statistics.noise import Noise
    from tuner.study import Study
    from tuner.study.storage import Storage

P99 = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """What the starts of one configuration gave together."""

    config: Config
    goodput_rps: float
    """Median over its starts."""
    latency_p99_ms: float | None
    latency_corrected: bool
    failures: int
    requests: int
    starts: int
    is_lower_bound: bool = False
    """Whether the load generator was the limit in most of the windows."""
    connect_time: ConnectTime | None = None
    """Of all connections; None where the load generator does not say, or keeps its connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One study as it stands."""

    study: str
    state: str
    """running, stopped or finished."""
    stop_reason: str
    preset: str
    created: str
    version: str
    workload: str
    objective: str
    constraints: tuple[str, ...]
    fingerprint: Fingerprint
    space: "Space"
    starts: tuple[Start, ...]
    noise: "Noise"
    speedups: Mapping[int, Speedup]
    default: Arm
    incumbent: tuple[Config, Speedup] | None
    """Best feasible configuration so far by posterior mean."""
    winner: Arm | None
    """The confirmed configuration; None until the confirmation is complete."""
    gain: "Gain | None"
    changes: Mapping[str, tuple[Scalar, Scalar]]
    """Of the winner, or of the incumbent before: parameter → default and value."""
    sensitivity: tuple[Sensitivity, ...]
    mechanisms: tuple[Mechanism, ...]
    timing: Mapping[str, float]
    latency: LatencyClaim | None = None
    """Response times at a fixed rate; None when they were not measured."""
    cost: str | None = None
    """The metric that is minimized beside goodput."""
    front: tuple[Choice, ...] = ()
    """What nobody beats in both, and the winner; fastest first, numbered from 1. Empty without a cost."""
    climb: tuple[tuple[int, float], ...] = ()
    """Start number and the speedup of the incumbent after it."""
    expected_gain: float | None = None
    """What another configuration promises, as a share; None where no model was asked."""

    def is_winner(self, config: Config) -> bool:
        """Say whether a configuration is the winner."""
        return self.winner is not None and dict(config) == dict(self.winner.config)

    @property
    def shipped(self) -> Mapping[str, tuple[Scalar, Scalar]]:
        """Return what would be written of the winner, or of the incumbent: setting → default and value."""
        config = self.chosen
        return self.space.shipped(config) if config is not None else {}

    @property
    def chosen(self) -> Config | None:
        """Return the winner's configuration, or the incumbent's before there is one."""
        if self.winner is not None:
            return self.winner.config
        return self.incumbent[0] if self.incumbent is not None else None

    @property
    def lacks(self) -> tuple[str, ...]:
        """Return a sentence for everything in which the winner holds less than the default."""
        return self.space.lacks(self.winner.config) if self.winner is not None else ()

    @property
    def is_held_back(self) -> bool:
        """Whether the winner holds less than the default, and nobody has allowed that."""
        return bool(self.lacks) and not self.space.allows_less


def summarize(
    settings: "Study", space: "Space", storage: "Storage", *, running: bool, version: str,
    with_sensitivity: bool = True,
) -> Summary:  # fmt: skip
    """Recompute everything from the storage."""
    starts = storage.starts()
    fingerprint = storage.fingerprint()
    if fingerprint is None:
        msg = f"{settings.name}: this study was never begun. Start it with `tuner run`."
        raise UsageError(msg)
    default = space.default()
    standing = stand(starts, settings.constraints, default)
    gain = read_gain(storage, starts, default, settings.constraints)
    winner_config = storage.recall("confirm")["config"] if gain is not None else None
    finished = storage.recall("finished")
    best = standing.incumbent
    chosen = winner_config or (best.config if best else default)
    confirmed = [start for start in starts if start.role is Role.CONFIRM]
    of_default = [start for start in confirmed if start.arm == DEFAULT_ARM] if gain else [
        start for start in as_controls(starts) if start.role is Role.CONTROL
    ]  # fmt: skip
    of_winner = [start for start in confirmed if start.arm == WINNER_ARM]
    return Summary(
        study=settings.name,
        state="finished" if finished else "running" if running else "stopped",
        stop_reason=finished or "",
        preset=storage.recall("preset", settings.preset),
        created=_date(starts),
        version=version,
        workload=settings.load.describe(),
        objective=str(settings.objective),
        constraints=tuple(str(constraint) for constraint in settings.constraints),
        fingerprint=fingerprint,
        space=space,
        starts=starts,
        noise=standing.noise,
        speedups=standing.speedups,
        default=gather_arm(default, of_default),
        incumbent=None if best is None else (best.config, best.posterior),
        winner=None if winner_config is None else gather_arm(winner_config, of_winner),
        gain=gain,
        changes=space.changes(chosen),
        sensitivity=_sensitivity(settings, space, starts, standing, winner_config)
        if with_sensitivity else (),
        mechanisms=compare_mechanisms(of_default, of_winner) if winner_config else (),
        timing=timing(starts),
        latency=read_latency(storage, starts, default) if gain else None,
        cost=settings.objective.cost,
        front=find_front(starts, standing, default, settings.objective.cost, winner=winner_config)
        if settings.objective.cost else (),
        climb=follow_incumbent(starts, standing),
        expected_gain=left_to_gain(storage.recall(EXPECTED, [])),
    )  # fmt: skip


def gather_arm(config: Config, starts: Sequence[Start]) -> Arm:
    """Put the starts of one configuration together."""
    counted = [start for start in starts if start.counts]
    windows = [window for start in counted for window in start.valid_windows]
    goodputs = sorted(window.goodput_rps for window in windows)
    latencies = [window.latency for window in windows if window.latency is not None]
    p99 = [each.quantiles_ms[P99] for each in latencies if P99 in each.quantiles_ms]
    merged = merge(latencies).quantiles_ms.get(P99) if latencies else None
    failures = sum(window.failures.total for window in windows)
    return Arm(
        config=config,
        goodput_rps=_median(goodputs),
        latency_p99_ms=merged if merged is not None else (_median(sorted(p99)) if p99 else None),
        latency_corrected=any(each.corrected for each in latencies),
        failures=failures,
        requests=failures + sum(window.correct for window in windows),
        starts=len(counted),
        is_lower_bound=is_censored(windows),
        connect_time=_merge_connect_times(windows),
    )


def _merge_connect_times(windows: Sequence[Window]) -> ConnectTime | None:
    """Put the windows together, each mean weighted by the requests of its window."""
    seen = [(window.connect_time, window.correct) for window in windows if window.connect_time is not None]
    if not seen:
        return None
    weights = sum(correct for _, correct in seen)
    return ConnectTime(
        min_ms=min(each.min_ms for each, _ in seen),
        mean_ms=sum(each.mean_ms * correct for each, correct in seen) / weights
        if weights
        else fmean(each.mean_ms for each, _ in seen),
        max_ms=max(each.max_ms for each, _ in seen),
    )


def timing(starts: Sequence[Start]) -> dict[str, float]:
    """Say where the wall time between the first and the last start of each session went, in seconds."""
    sessions: dict[str, list[Start]] = {}
    for start in starts:
        if start.state is not State.RUNNING:
            sessions.setdefault(start.session, []).append(start)
    total_s = sum(
        group[-1].started_s + _cost_s(group[-1]) - group[0].started_s for group in sessions.values()
    )
    done = [start for start in starts if start.counts]
    return {
        "total_s": total_s,
        "load_s": sum(start.timing.load_s for start in starts),
        "deploy_s": sum(start.timing.deploy_s for start in starts),
        "suggest_s": sum(start.timing.suggest_s for start in starts),
        "deploy_median_s": _median(sorted(start.timing.deploy_s for start in done)),
        "suggest_max_s": max((start.timing.suggest_s for start in starts), default=0.0),
        "store_max_s": max((start.timing.store_s for start in starts), default=0.0),
    }


def as_json(summary: Summary) -> dict[str, Any]:
    """Give the contract of `tuner show --json`: keys are added, never renamed."""
    gain = summary.gain
    return {
        "study": summary.study,
        "state": summary.state,
        "stop_reason": summary.stop_reason,
        "fingerprint": {
            "host": summary.fingerprint.host,
            "kernel": summary.fingerprint.kernel,
            "servers": dict(summary.fingerprint.servers),
            "cpu": summary.fingerprint.cpu,
            "cores": summary.fingerprint.cores,
            "memory_mib": summary.fingerprint.memory_mib,
            "generator": summary.fingerprint.generator,
            "co_located": summary.fingerprint.co_located,
            "server_cpus": list(summary.fingerprint.server_cpus),
            "generator_cpus": list(summary.fingerprint.generator_cpus),
        },
        "preset": summary.preset,
        "workload": summary.workload,
        "objective": summary.objective,
        "constraints": list(summary.constraints),
        "default": _arm_json(summary.default),
        "incumbent": None if summary.incumbent is None else {
            "config": dict(summary.incumbent[0]), "speedup": summary.incumbent[1].ratio,
        },
        "winner": None if summary.winner is None else _arm_json(summary.winner) | {
            "changes": {name: list(pair) for name, pair in summary.changes.items()},
            "ships": {name: list(pair) for name, pair in summary.shipped.items()},
            "also": {name: also for name in summary.shipped if (also := summary.space.also(name))},
        },
        "capacity": capacity_json(summary),
        "gain": None if gain is None else gain_json(gain),
        "expected_gain": summary.expected_gain,
        "front": [
            choice_json(summary, number, choice) for number, choice in enumerate(summary.front, 1)
        ],
        "latency": None if summary.latency is None else latency_json(summary.latency),
        "noise": {
            "sigma_window": summary.noise.sigma_window,
            "sigma_start": summary.noise.sigma_start,
            "drift_per_s": summary.noise.drift_per_s,
        },
        "sensitivity": [
            {
                "parameter": each.parameter, "effect": each.effect, "low": each.low, "high": each.high,
                "kept": each.kept, "importance": each.importance, "verdict": each.verdict,
            }
            for each in summary.sensitivity
        ],
        "mechanisms": [each.sentence for each in summary.mechanisms],
        "trials": [_start_json(start, summary.speedups.get(start.number)) for start in summary.starts],
        "timing": dict(summary.timing),
    }  # fmt: skip


def capacity_json(summary: Summary) -> dict[str, Any]:
    """Give what default and winner hold at once: server → figure → number, and what the winner lacks."""
    return {
        "default": summary.space.capacity(summary.default.config),
        "winner": None if summary.winner is None else summary.space.capacity(summary.winner.config),
        "lacks": list(summary.lacks),
        "allowed": summary.space.allows_less,
    }


def gain_json(gain: "Gain") -> dict[str, Any]:
    """Give a gain as `show` and `compare` print it."""
    return {
        "ratio": gain.ratio, "low": gain.low, "high": gain.high, "pairs": gain.pairs,
        "verdict": gain.verdict, "p_sign_flip": gain.p_sign_flip, "hodges_lehmann": gain.hodges_lehmann,
    }  # fmt: skip


def choice_json(summary: Summary, number: int, choice: Choice) -> dict[str, Any]:
    """Give one choice of the front; both ratios are relative to the default."""
    sides = {"goodput": choice.goodput, summary.cost or "cost": choice.cost}
    return {
        "pick": number,
        **{
            f"{name}_ratio": {"ratio": each.ratio, "low": each.interval()[0], "high": each.interval()[1]}
            for name, each in sides.items()
        },
        "starts": choice.starts,
        "is_winner": summary.is_winner(choice.config),
        "changes": {name: list(pair) for name, pair in summary.space.changes(choice.config).items()},
    }


def pick(summary: Summary, number: int) -> Summary:
    """Give the summary with a choice of the front in the winner's place, not confirmed unless it won.

    Raises:
        UsageError: there is no front, or it has no such choice.
    """
    if not summary.front:
        msg = (
            f"--pick: {summary.study} has one objective, so there is nothing to pick from. Leave --pick out, "
            "or write `objective: [maximize goodput_rps, minimize latency_p99_ms]` in a new study."
        )
        raise UsageError(msg)
    if not 1 <= number <= len(summary.front):
        msg = f"--pick: there is no choice {number}. Give 1 to {len(summary.front)}; `tuner show` lists them."
        raise UsageError(msg)
    config = summary.front[number - 1].config
    if summary.is_winner(config):
        return summary
    chosen = [
        start
        for start in summary.starts
        if dict(start.config) == dict(config) and start.role is not Role.LATENCY
    ]
    changes = summary.space.changes(config)
    return replace(
        summary, winner=gather_arm(config, chosen), gain=None, changes=changes,
        sensitivity=tuple(replace(each, kept=each.parameter in changes) for each in summary.sensitivity),
        mechanisms=(), latency=None,
    )  # fmt: skip


def latency_json(claim: LatencyClaim) -> dict[str, Any]:
    """Give the comparison of response times at a fixed rate."""
    sides = {"default": claim.default_p99, "winner": claim.winner_p99}
    return {
        "rate_rps": claim.rate_rps,
        "pairs": claim.pairs,
        "p99_ms": {
            name: None
            if found is None
            else {"value": found.value_ms, "low": found.low_ms, "high": found.high_ms}
            for name, found in sides.items()
        },
        "p99_ratio": {"ratio": claim.ratio.ratio, "low": claim.ratio.low, "high": claim.ratio.high},
    }


def _start_json(start: Start, speedup: Speedup | None) -> dict[str, Any]:
    return {
        "number": start.number,
        "role": start.role.value,
        "state": start.state.value,
        "arm": start.arm,
        "block": start.block,
        "started_s": start.started_s,
        "config": dict(start.config),
        "speedup": None if speedup is None else speedup.ratio,
        "windows": [
            {
                "goodput_rps": window.goodput_rps,
                "failures": window.failures.total,
                "latency_p99_ms": None if window.latency is None else window.latency.quantiles_ms.get(P99),
                "valid": window.is_valid,
                "verdicts": [f"{verdict.gate}: {verdict.reason}" for verdict in window.verdicts],
            }
            for window in start.windows
        ],
        "reason": None if start.failure is None else f"{start.failure.kind}: {start.failure.reason}",
    }


def _arm_json(arm: Arm) -> dict[str, Any]:
    return {
        "config": dict(arm.config), "goodput_rps": arm.goodput_rps, "latency_p99_ms": arm.latency_p99_ms,
        "failures": arm.failures, "requests": arm.requests, "starts": arm.starts,
        "lower_bound": arm.is_lower_bound,
        "connect_ms": None if arm.connect_time is None else {
            "min": arm.connect_time.min_ms, "mean": arm.connect_time.mean_ms, "max": arm.connect_time.max_ms,
        },
    }  # fmt: skip


def _sensitivity(
    settings: "Study", space: "Space", starts: Sequence[Start], standing: Standing, winner: Config | None
) -> tuple[Sensitivity, ...]:
    return explain(space, starts, standing.speedups, winner=winner, seed=settings.seed)


def _cost_s(start: Start) -> float:
    return start.timing.deploy_s + start.timing.load_s


def _date(starts: Sequence[Start]) -> str:
    moment = starts[0].started_s if starts else 0.0
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _median(values: Sequence[float]) -> float:
    if not values:
        return 0.0
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
