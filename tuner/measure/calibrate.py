"""What this host can measure: its noise, the generator's reserves, how many connections it takes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tuner.deploy.deployment import Deployment, Target
from tuner.measure.trial import NO_JUDGES, measure_trial
from tuner.measure.validity import RetryBudget
from tuner.measure.window import Load, run_window, send_beside
from tuner.ports import Config
from tuner.records import GENERATOR_BUSY, Metric, Role, State, Timing, Trial, Window, measured_by
from tuner.statistics.bottleneck import Bottleneck, find_bottleneck
from tuner.statistics.noise import Noise, detectable_gain, estimate_noise, half_width, size_pairs
from tuner.study.presets import Plan

HEADROOM = 0.05
"""Two generators together that get so much more show that one is too small."""
GROWTH = 0.03
"""Goodput that grows less when connections double has stopped growing."""
POOR = 0.10
"""Gains below are common; a host that cannot prove them needs other measures."""
MOST_CONNECTIONS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What the calibration saw."""

    noise: Noise
    trials: int
    pairs: int
    windows: int
    provable_gain: float
    """Smallest gain that the plan's confirmation proves with 80 % probability, as a ratio minus one."""
    half_width: float
    """Half the width of its 95 % interval, the same way."""
    bottleneck: Bottleneck
    """How busy server and generator were, in the trials of the default."""
    generator_cpu: float
    """Share of its CPUs that one generator used."""
    second_generator: float
    """Goodput of two generators over that of one, with as many connections in all."""
    by_connections: Mapping[int, float]
    """Connections → requests per second."""
    plateau: int
    """Connections from which on goodput does not grow."""
    metric: Metric = Metric.GOODPUT
    """What the study compares."""
    rate_rps: float | None = None
    """Requests/s that were due; None where the load is sent as fast as responses come."""

    def lines(self) -> list[str]:
        """Return the result in a few lines, what can be proved first."""
        sigma_w, sigma_b = 100 * self.noise.sigma_window, 100 * self.noise.sigma_trial
        drift = 100 * (self.noise.drift_per_s * 60) ** 0.5
        compared = "" if self.metric is Metric.GOODPUT else f" in {self.metric.value}"
        return [
            (
                f"noise      this host can prove gains of {100 * self.provable_gain:.1f} % or more{compared} "
                f"({self.pairs} pairs of {self.windows} windows, ±{100 * self.half_width:.1f} %)"
                f"{self._advice()}"
            ),
            (
                f"           {sigma_w:.1f} % within a trial, {sigma_b:.1f} % between trials, "
                f"{drift:.1f} % drift in a minute ({self.trials} trials)"
            ),
            *self._tell_load(),
        ]

    def _tell_load(self) -> list[str]:
        """Return what limits the load; at a rate, whether the default takes it."""
        curve = ", ".join(f"{count}: {rate:,.0f}" for count, rate in self.by_connections.items())
        if self.rate_rps is not None:
            return [
                f"generator  {self.bottleneck}",
                f"load       requests/s by connections: {curve}; {self.rate_rps:,.8g} requests/s were due",
            ]
        return [
            (
                f"generator  {self.bottleneck}; two generators reach {self.second_generator:.2f}× the "
                f"goodput of one: {self._headroom()}"
            ),
            f"load       requests/s by connections: {curve}; no growth beyond {self.plateau}",
        ]

    def _advice(self) -> str:
        if self.provable_gain <= POOR:
            return ""
        return "; for smaller ones stop other programs, use --preset standard, or a quieter machine"

    def _headroom(self) -> str:
        if self.second_generator > 1 + HEADROOM:
            return "one generator is too small; give the generator more threads"
        if self.bottleneck.is_generator:
            if self.bottleneck.has_cost:
                return "the generator is the limit, so a run compares requests per CPU second of the server"
            return (
                "the generator is the limit, and the server's CPU time cannot be read; give the generator "
                "more CPUs"
            )
        if self.generator_cpu >= GENERATOR_BUSY:
            return "the generator has no reserve, so results are lower bounds; give the generator more CPUs"
        return "the generator has reserves"

    def _find_metric(self) -> Metric:
        """Return what a run compares: what the load generator cannot limit."""
        is_limited = self.metric is Metric.GOODPUT and self.bottleneck.is_generator
        return Metric.PER_CPU if is_limited else self.metric

    def as_json(self) -> dict[str, Any]:
        """Return the same for scripts."""
        return {
            "sigma_window": self.noise.sigma_window,
            "sigma_trial": self.noise.sigma_trial,
            "drift_per_s": self.noise.drift_per_s,
            "provable_gain": self.provable_gain,
            "pairs": self.pairs,
            "windows": self.windows,
            "generator_cpu": self.generator_cpu,
            "server_cpu": self.bottleneck.server_busy,
            "metric": self._find_metric().value,
            "second_generator": self.second_generator,
            "by_connections": {str(count): rate for count, rate in self.by_connections.items()},
            "plateau": self.plateau,
        }


def calibrate(
    target: Target,
    default: Config,
    load: Load,
    plan: Plan,
    tell: Callable[[int, int], None],
    *,
    metric: Metric = Metric.GOODPUT,
) -> Calibration:
    """Measure the noise and the generator with trials of the default.

    Raises:
        TrialFailed: the default itself cannot be measured.
    """
    full = replace(plan, windows=(3, 3))
    trials = []
    for number in range(plan.calibration_trials):
        tell(number, plan.calibration_trials)
        trials.append(measured_by(_baseline(target, default, load, full, number), metric))
    noise = estimate_noise(trials)
    pairs, windows = size_confirmation(noise, plan, _deploy_s(trials))
    with target.deploy(default) as deployment:
        run_window(deployment, load, 1.0)
        if load.rate_rps is None:
            single, double = _compare_generators(deployment, load)
            by_connections = _find_plateau(deployment, load)
        else:
            single = run_window(deployment, load, 1.0)
            double, by_connections = single.goodput_rps, {load.shape.connections: single.goodput_rps}
    best = max(by_connections.values())
    return Calibration(
        noise=noise,
        bottleneck=find_bottleneck([window for trial in trials for window in trial.valid_windows]),
        trials=len(trials),
        pairs=pairs,
        windows=windows,
        provable_gain=detectable_gain(noise, pairs=pairs, windows=windows),
        half_width=half_width(noise, pairs=pairs, windows=windows),
        generator_cpu=single.generator_cpu,
        second_generator=double / single.goodput_rps if single.goodput_rps else 0.0,
        by_connections=by_connections,
        metric=metric,
        rate_rps=load.rate_rps,
        plateau=next(count for count, rate in by_connections.items() if rate >= best * (1 - GROWTH)),
    )


def size_confirmation(
    noise: Noise, plan: Plan, deploy_s: float, *, seconds: float | None = None
) -> tuple[int, int]:
    """Choose pairs and windows of a confirmation so that its time gives the narrowest interval.

    Without the time for the fewest pairs, these are measured all the same, as shortly as may be.
    """
    available_s = plan.confirm_s if seconds is None else min(plan.confirm_s, seconds)
    if not plan.confirm_s:
        return plan.pairs, plan.windows[1]
    pairs, windows = size_pairs(
        noise, seconds=available_s, trial_cost_s=deploy_s + plan.warmup_s, window_s=plan.window_s
    )
    return (pairs, windows) if pairs >= plan.pairs else (plan.pairs, plan.windows[0])


def _baseline(target: Target, default: Config, load: Load, plan: Plan, number: int) -> Trial:
    windows: list[Window] = []
    began_s = time.time()
    with target.deploy(default) as deployment:
        measure_trial(deployment, load, plan, NO_JUDGES, RetryBudget(), windows.append)
    return Trial(
        number=number, role=Role.BASELINE, config=default, state=State.COMPLETE, started_s=began_s,
        windows=tuple(windows), timing=Timing(deploy_s=deployment.duration_s),
    )  # fmt: skip


def _deploy_s(trials: list[Trial]) -> float:
    return sum(trial.timing.deploy_s for trial in trials) / len(trials)


def _compare_generators(deployment: Deployment, load: Load) -> tuple[Window, float]:
    """Load with one generator, then with two that share the connections; twice, in turn."""
    singles, doubles = [], []
    for _ in range(2):
        singles.append(run_window(deployment, load, 1.0))
        doubles.append(send_beside(deployment, load, 1.0))
    return max(singles, key=lambda window: window.goodput_rps), max(doubles)


def _find_plateau(deployment: Deployment, load: Load) -> dict[int, float]:
    """Double the connections, from a quarter of the study's on, until goodput grows no more."""
    found: dict[int, float] = {}
    connections = max(1, load.shape.connections // 4)
    most = max(load.shape.connections, min(MOST_CONNECTIONS, load.shape.connections * 4))
    while connections <= most:
        found[connections] = run_window(deployment, load, 1.0, connections=connections).goodput_rps
        known = list(found.values())
        if connections > load.shape.connections and known[-1] < known[-2] * (1 + GROWTH):
            break
        connections *= 2
    return found
