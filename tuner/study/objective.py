"""What is maximized, and the bounds on other metrics, with Optuna's sign: slack ≤ 0 is feasible."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from statistics import fmean

from tuner.errors import UsageError
from tuner.records import Metric, State, Trial, name_loads, under_load
from tuner.records.latency import merge
from tuner.space.values import format_number

GOODPUT = "maximize goodput_rps"
COSTS = ("latency_p50_ms", "latency_p99_ms", "cpu_us_per_request", "memory_mib")
"""Metrics that may be minimized beside it."""
AT_RATE = {f"minimize {metric}": metric for metric in (Metric.LATENCY_P99, Metric.CPU, Metric.MEMORY)}
"""Objectives of a study whose load has a rate, at which all that keep up have the same goodput."""
SERVER_CPU = "server_cpu_s"
"""Counter of a window: CPU seconds of the server."""
STARTED = "started"
"""Constraint of every study: the trial must give a measurement."""
FAILURE_RATE = "failure_rate"
RELATIVE = "default"
"""Stands for a number in a bound: what the default has under the same load."""
UNLIKE_DEFAULT = "unlike default"
"""Behind a bound that the default itself is known to break."""
RATE_TOLERANCE = 0.25
RATE_FLOOR = 0.001
"""A failure rate is no worse than the default's up to a quarter above it, because counts that differ by less
take hours to tell apart, and up to one request in 1,000 in any case."""
TOLERANCE = 0.05
"""The same for every other metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """An upper bound on one metric of a configuration."""

    metric: str
    limit: float | None
    """None: what the default has."""
    default_may_fail: bool = False
    """Whether the default need not keep it: what is looked for is a configuration that does."""

    def __str__(self) -> str:
        bound = f"{self.metric} <= {RELATIVE if self.limit is None else format_number(self.limit)}"
        return f"{bound} {UNLIKE_DEFAULT}" if self.default_may_fail else bound

    @property
    def tolerance(self) -> tuple[float, float]:
        """Return the factor that makes a bound of what the default has, and the least that bound is."""
        return (1 + RATE_TOLERANCE, RATE_FLOOR) if self.metric == FAILURE_RATE else (1 + TOLERANCE, 0.0)

    def slack(self, trial: Trial, baselines: Sequence[Trial]) -> float:
        """Return how far the trial is above the bound, on a log scale; ≤ 0 is feasible.

        Args:
            trial: one that gave a measurement.
            baselines: trials of the default; without any, a bound by what it has is kept.
        """
        value, limit = METRICS[self.metric](trial), self._limit(baselines)
        if value is None or value <= 0 or limit is None:
            return -1.0
        return math.log10(value) - math.log10(limit) if limit > 0 else 1.0

    def _limit(self, baselines: Sequence[Trial]) -> float | None:
        if self.limit is not None:
            return self.limit
        values = [METRICS[self.metric](trial) for trial in baselines if trial.counts]
        known = [value for value in values if value is not None]
        factor, least = self.tolerance
        return max(factor * fmean(known), least) if known else None


def failure_rate(trial: Trial) -> float:
    """Failed requests per request, over the windows of the trial that the environment did not spoil."""
    failed = sum(window.failures.total for window in trial.valid_windows)
    asked = failed + sum(window.correct for window in trial.valid_windows)
    return failed / asked if asked else 1.0


def latency(quantile: float) -> Callable[[Trial], float | None]:
    """Return a metric: a latency quantile over the windows of a trial, in milliseconds."""

    def metric(trial: Trial) -> float | None:
        seen = [window.latency for window in trial.valid_windows if window.latency is not None]
        if not seen:
            return None
        return merge(seen).quantiles_ms.get(quantile) or max(
            each.quantiles_ms.get(quantile, 0.0) for each in seen
        )

    return metric


def cpu_per_request(trial: Trial) -> float | None:
    """CPU time of the server, its kernel work included, per correct response, in microseconds."""
    valid = [window for window in trial.valid_windows if SERVER_CPU in window.counters]
    correct = sum(window.correct for window in valid)
    return 1e6 * sum(window.counters[SERVER_CPU] for window in valid) / correct if correct else None


def memory(trial: Trial) -> float | None:
    """Memory of the server's processes in MiB: the most that a window of the trial ended with."""
    known = [window.memory_mib for window in trial.valid_windows if window.memory_mib is not None]
    return max(known, default=None)


METRICS: Mapping[str, Callable[[Trial], float | None]] = {
    "failure_rate": failure_rate,
    "cpu_us_per_request": cpu_per_request,
    "memory_mib": memory,
    "latency_p50_ms": latency(0.5),
    "latency_p99_ms": latency(0.99),
}

UNITS: Mapping[str, Mapping[str, float]] = {
    "failure_rate": {"%": 1e-2},
    "cpu_us_per_request": {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6},
    "memory_mib": {"MiB": 1.0, "GiB": 1024.0, "KiB": 1 / 1024},
    "latency_p50_ms": {"ms": 1.0, "us": 1e-3, "µs": 1e-3, "s": 1e3},
    "latency_p99_ms": {"ms": 1.0, "us": 1e-3, "µs": 1e-3, "s": 1e3},
}
"""Metric → units that its bound may have → how many of the metric's own each is."""

_FORM = re.compile(
    r"\s*(?P<metric>\w+)\s*(?P<sign><=|<|>=|>|==|=)\s*(?P<limit>[-+.\deE]+|default)\s*"
    r"(?P<unit>%|(?!unlike\b)[A-Za-zµ]+)?(?P<sought>\s*\bunlike\s+default)?\s*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Goodput is maximized, alone or against a cost; at a fixed rate, another metric is minimized."""

    metric: Metric = Metric.GOODPUT
    """Compared between configurations; other than goodput at a fixed rate only."""
    cost: str | None = None
    """A metric."""

    def __str__(self) -> str:
        if self.metric is not Metric.GOODPUT:
            return f"minimize {self.metric}"
        return GOODPUT if self.cost is None else f"{GOODPUT}, minimize {self.cost}"


def parse_objective(texts: Sequence[str], where: str) -> Objective:
    """Read one objective, or goodput and a cost. Raises UsageError."""
    if len(texts) == 1 and (metric := AT_RATE.get(" ".join(texts[0].split()))):
        return Objective(metric=metric)
    known = {f"minimize {metric}": metric for metric in COSTS}
    given = [" ".join(text.split()) for text in texts]
    for text in given:
        if text != GOODPUT and text not in known:
            near = get_close_matches(text, (GOODPUT, *known), 1, 0)
            raise UsageError(
                f"{where}: no objective has the name {text!r}. Did you mean {near[0]!r}? Write {GOODPUT}, or "
                f"with one cost: [{GOODPUT}, {near[0] if near[0] in known else next(iter(known))}]."
            )
    rest = [text for text in given if text != GOODPUT]
    if given.count(GOODPUT) != 1 or len(rest) > 1:
        raise UsageError(
            f"{where}: {', '.join(given) or 'nothing'} cannot be the objective. Write {GOODPUT}, alone or "
            f"with one of: {', '.join(known)}."
        )
    return Objective(cost=known[rest[0]] if rest else None)


def parse_constraint(text: str, where: str) -> Constraint:
    """Read a bound: `failure_rate <= 0.1 %`, `latency_p99_ms <= 20ms`, `… <= default`. Raises UsageError.

    Behind a number, `unlike default` says that the default breaks it, and that what keeps it is looked for.
    """
    form = _FORM.fullmatch(text)
    if form is None or form["sign"] != "<=":
        raise UsageError(
            f"{where}: {text!r} is not a constraint. Write METRIC <= NUMBER, such as failure_rate <= 0.001, "
            f"or METRIC <= {RELATIVE} for no worse than the baseline."
        )
    metric = form["metric"]
    if metric not in METRICS:
        near = get_close_matches(metric, METRICS, 1, 0)
        known = ", ".join(METRICS)
        raise UsageError(
            f"{where}: no metric has the name {metric!r}. Did you mean {near[0]}? Known metrics: {known}."
        )
    default_may_fail = form["sought"] is not None
    if form["limit"] == RELATIVE and form["unit"] is None:
        if default_may_fail:
            raise UsageError(
                f"{where}: {text!r} contradicts itself. Give a number as the limit, "
                f"as in failure_rate <= 0.001 {UNLIKE_DEFAULT}."
            )
        return Constraint(metric=metric, limit=None)
    limit = _read_limit(metric, form["limit"], form["unit"], where)
    return Constraint(metric=metric, limit=limit, default_may_fail=default_may_fail)


def _read_limit(metric: str, number: str, unit: str | None, where: str) -> float:
    """Return a bound in its metric's own unit. Raises UsageError."""
    units = UNITS[metric]
    if unit is not None and unit not in units:
        raise UsageError(
            f"{where}: {unit!r} is no unit of {metric}. Write {', '.join(units)} or nothing after the number."
        )
    try:
        limit = float(f"{float(number) * (1.0 if unit is None else units[unit]):.12g}")
    except ValueError:
        raise UsageError(f"{where}: {number!r} is not a number. Write METRIC <= NUMBER.") from None
    shown = format_number(limit)
    if not math.isfinite(limit) or limit < 0:
        raise UsageError(f"{where}: the limit of {metric} is {shown}. Give a number of at least 0.")
    if metric == FAILURE_RATE and limit > 1:
        raise UsageError(
            f"{where}: {shown} is no limit for {metric}, a share of all requests. Give at most 1, "
            "or a percentage: 0.1%."
        )
    return limit


def slacks(trial: Trial, constraints: Sequence[Constraint], baselines: Sequence[Trial]) -> dict[str, float]:
    """Return every constraint's slack; a trial that failed breaks only the one that it must start.

    Args:
        trial: one that has ended.
        constraints: of the study.
        baselines: trials of the default so far, for bounds by what it has.
    """
    if trial.state is State.FAILED or not trial.windows:
        return {STARTED: 1.0} | {str(constraint): 0.0 for constraint in constraints}
    return {STARTED: -1.0} | {
        str(constraint): _greatest_slack(constraint, trial, baselines) for constraint in constraints
    }


def _greatest_slack(constraint: Constraint, trial: Trial, baselines: Sequence[Trial]) -> float:
    """Return how far a trial is above a bound, under that of several loads under which it is furthest."""
    names = name_loads([trial])
    if not names:
        return constraint.slack(trial, baselines)
    return max(
        constraint.slack(under_load(trial, name), [under_load(each, name) for each in baselines])
        for name in names
    )


def unmeasured(trial: Trial, constraints: Sequence[Constraint], objective: Objective) -> tuple[str, ...]:
    """Return the bounds and the cost on what nobody reports."""
    wanted = {f"constraint {each}": each.metric for each in constraints}
    if objective.metric is not Metric.GOODPUT:
        wanted[f"objective {objective}"] = objective.metric.value
    if objective.cost is not None:
        wanted[f"objective minimize {objective.cost}"] = objective.cost
    return tuple(name for name, metric in wanted.items() if METRICS[metric](trial) is None)
