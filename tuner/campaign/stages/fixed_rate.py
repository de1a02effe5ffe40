"""Response times at a fixed rate: the only ones of which something is claimed.

Under a closed loop a slow answer delays the next request, so response times there are goodput once more
(mean latency = connections / goodput, Little's law), and stalls are sampled too rarely (Schroeder et al.,
"Open Versus Closed", NSDI 2006). So both sides get the same rate, well below what the default can take.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import median

from tuner.campaign.experiment import Experiment
from tuner.campaign.pairs import Pairing, measure_on_hosts, read_pairs
from tuner.plugins import make_rate_generator
from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.records.latency import Quantile, merge, quantile
from tuner.statistics.confirmation.paired_gain import Gain, judge_pairs
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM
from tuner.study.facts import FIXED_RATE, FixedRateComparison
from tuner.study.storage import Storage

RATE_SHARE = 0.7
"""Of the default's goodput: far from the limit where queues explode, busy enough to show a difference."""
P99 = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyClaim:
    """Response times of default and winner at the same rate."""

    rate_rps: float
    pairs: int
    default_p99: Quantile | None
    winner_p99: Quantile | None
    ratio: Gain
    """Winner p99 over default p99, pair by pair: below 1 is better."""


def compare_latency(experiment: Experiment, winner: Config) -> None:
    """Measure default and winner at the same fixed rate, in pairs; nothing when the plan leaves it out."""
    plan, load = experiment.plan, experiment.setup.fixed_rate
    own = experiment.setup.load
    # Which of several loads would it be? At a rate, the confirmation has compared response times.
    if not plan.rate_pairs or own.beside or own.rate_rps is not None:
        return
    if load is None:
        generator = make_rate_generator()
        needed = generator.name if generator else "a load generator that keeps a rate"
        experiment.progress.note(
            f"tuner does not compare response times at a fixed rate: this comparison needs {needed} and "
            "keep-alive"
        )
        return
    planned = experiment.storage.recall(FIXED_RATE)
    if planned is None:
        rate_rps = RATE_SHARE * capacity_rps(experiment.trials)
        planned = FixedRateComparison(config=dict(winner), rate_rps=rate_rps, pairs=plan.rate_pairs)
        experiment.storage.remember(FIXED_RATE, planned)
    own_plan = replace(plan, window_s=plan.rate_window_s, windows=(1, 1))
    own_load = replace(load, rate_rps=planned.rate_rps)
    measure_on_hosts(
        experiment,
        {"": _pairing(planned, experiment.default)},
        lambda opening: experiment.make(opening, plan=own_plan, load=own_load),
        stage="latency",
    )


def capacity_rps(trials: Sequence[Trial]) -> float:
    """Return the default's goodput in the confirmation: what it can do, on the slowest of several hosts."""
    logs: dict[str, list[float]] = {}
    for trial in trials:
        is_measure = trial.role is Role.CONFIRM and trial.arm == DEFAULT_ARM
        if is_measure and trial.log_goodput is not None:
            logs.setdefault(trial.host, []).append(trial.log_goodput)
    return math.exp(min(map(median, logs.values()))) if logs else 0.0


def _pairing(planned: FixedRateComparison, default: Config) -> Pairing:
    return Pairing(
        role=Role.LATENCY,
        sides={DEFAULT_ARM: default, WINNER_ARM: planned.config},
        pairs=planned.pairs,
        rng=Random("latency"),  # noqa: S311 - no secret
    )


def read_latency(storage: Storage, trials: Sequence[Trial], default: Config) -> LatencyClaim | None:
    """Recompute the claim from the stored windows; None before all pairs are there."""
    planned = storage.recall(FIXED_RATE)
    if planned is None:
        return None
    pairing = _pairing(planned, default)
    mine = [trial for trial in trials if trial.role is Role.LATENCY and trial.counts]
    if len(read_pairs(mine, pairing)) < pairing.pairs:
        return None
    logs = []
    for block in pairing.blocks:
        sides = [_p99_ms([s for s in mine if s.block == block and s.arm == arm]) for arm in pairing.sides]
        if sides[0] is None or sides[1] is None:
            return None
        logs.append((math.log(sides[0]), math.log(sides[1])))
    return LatencyClaim(
        rate_rps=planned.rate_rps,
        pairs=len(logs),
        default_p99=_merged_p99([trial for trial in mine if trial.arm == DEFAULT_ARM]),
        winner_p99=_merged_p99([trial for trial in mine if trial.arm == WINNER_ARM]),
        ratio=judge_pairs(logs),
    )


def _p99_ms(trials: Sequence[Trial]) -> float | None:
    found = _merged_p99(trials)
    return None if found is None or found.value_ms <= 0 else found.value_ms


def _merged_p99(trials: Sequence[Trial]) -> Quantile | None:
    """Merge the windows of these trials; None when there are too few requests to know a p99."""
    windows = [window for trial in trials for window in trial.valid_windows]
    latencies = [window.latency for window in windows if window.latency is not None]
    return quantile(merge(latencies), P99) if latencies else None
