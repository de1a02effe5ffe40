"""One trial under load: warm-up, windows, an early end for what is clearly worse."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Protocol

from tuner.deploy.deployment import Deployment
from tuner.errors import LoadFailed, Stalled
from tuner.measure.rounds import run_round
from tuner.measure.validity import HEALTHY, BaselineFacts, RetryBudget
from tuner.measure.window import Load, run_counted_window, run_window
from tuner.records import Blame, Check, Window
from tuner.statistics.steady import is_steady
from tuner.study.presets import Plan

SLICES_TO_JUDGE = 6
"""`is_steady` compares the last three slices of the warm-up with the three before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """What may end a trial early; each answers with the reason, or None to go on."""

    judge_warm_up: Callable[[Window], str | None]
    """Asked about the end of the warm-up: hopeless at once?"""
    prune: Callable[[Sequence[Window]], str | None]
    """Asked after each window from the first at which pruning is allowed."""
    spread: float = 0.0
    """Standard deviation of the logarithm of one window, as known so far: what steadiness is held against."""
    baseline: BaselineFacts = HEALTHY
    """What the default showed, for the validity checks."""
    allow_no_response: bool = False
    """Whether a window in which nothing is served is a measurement, and not the end of the trial."""


NO_JUDGES = Judges(judge_warm_up=lambda _: None, prune=lambda _: None)


class Measure(Protocol):
    """Loads a deployed server for so many seconds."""

    def __call__(self, duration_s: float, *, problems_before: int = 0) -> Window: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the windows of a trial went."""

    steady: bool
    pruned: str | None
    """Why it was ended early; None when it had all its windows."""


def measure_trial(
    deployment: Deployment,
    load: Load,
    plan: Plan,
    judges: Judges,
    retries: RetryBudget,
    keep: Callable[[Window], None],
) -> Outcome:
    """Load one deployed server; every window is handed to `keep` as soon as it is over.

    A window that the environment spoiled is kept, too, and measured again within the budget of retries.

    Raises:
        Stalled: no correct response came during the warm-up or a whole window.
        Crashed: the server ended by itself.
        LoadFailed: the load generator failed again and again.
    """
    retries.begin_trial()
    # Windows have turns of their own: all trials have them in the same order, however long they warmed up.
    measure = partial(_round, run_window, deployment, load, count(), judges)
    measure_counted = partial(_round, run_counted_window, deployment, load, count(), judges)
    slices, steady = warm_up(measure, plan, spread=judges.spread)
    # What spoiled the warm-up is not held against the configuration.
    reason = judges.judge_warm_up(slices[-1]) if slices[-1].is_valid else None
    if reason is not None:
        keep(slices[-1])
        return Outcome(steady=steady, pruned=reason)
    first_look, most = plan.windows
    valid: list[Window] = []
    while len(valid) < most:
        window = _window_with_retries(
            measure_counted, plan.window_s, retries, keep, allow_no_response=judges.allow_no_response
        )
        if not window.is_valid:
            break
        valid.append(window)
        if first_look <= len(valid) < most:
            reason = judges.prune(valid)
            if reason is not None:
                return Outcome(steady=steady, pruned=reason)
    return Outcome(steady=steady, pruned=None)


def _window_with_retries(
    measure: Measure,
    duration_s: float,
    retries: RetryBudget,
    keep: Callable[[Window], None],
    *,
    allow_no_response: bool,
) -> Window:
    """Run one window, again while the environment spoils it; the last try is given back.

    Where silence is borne, a generator that hangs before a server that takes nobody is silence, too.
    """
    retries.begin_window()
    problems = 0
    while True:
        window = measure(duration_s, problems_before=problems)
        keep(window)
        problems = problems + 1 if _generator_failed(window) else 0
        if not retries.allows_another(window.verdicts, at_s=time.monotonic()):
            break
    for verdict in window.verdicts:
        if (
            verdict.check == Check.GENERATOR
            and verdict.blame is Blame.CONFIGURATION
            and not allow_no_response
        ):
            raise LoadFailed(verdict.reason)
    return window


def _generator_failed(window: Window) -> bool:
    return any(verdict.check == Check.GENERATOR for verdict in window.verdicts)


def _was_replaced(window: Window) -> bool:
    """Return whether another page came in the middle of a window, which will be measured again."""
    return any(
        verdict.check is Check.BODY and verdict.blame is Blame.ENVIRONMENT for verdict in window.verdicts
    )


def warm_up(measure: Measure, plan: Plan, *, spread: float) -> tuple[list[Window], bool]:
    """Send load that is not counted, in slices, until goodput stands still or time is up.

    Where the plan allows for growth, also until the server makes no more processes: php-fpm makes its pool
    larger once a second, and what is measured before says nothing of a larger pool.

    Returns the slices and whether it stands still; a plan whose warm-up is too short to judge says yes.
    """
    slices, steady = _until_steady(measure, plan, spread=spread)
    while steady and plan.growth_s and _makes_processes(slices[-1]):
        if len(slices) * plan.slice_s >= plan.growth_s:
            return slices, False
        slices.append(measure(plan.slice_s))
    return slices, steady


def _makes_processes(window: Window) -> bool:
    """Return whether the server had more processes when a window ended than when it began."""
    counted = window.counters
    return counted.get("server_processes", 0.0) > counted.get("server_processes_before", math.inf)


def _until_steady(measure: Measure, plan: Plan, *, spread: float) -> tuple[list[Window], bool]:
    slices: list[Window] = []
    can_judge = plan.warmup_max_s >= SLICES_TO_JUDGE * plan.slice_s
    least = max(plan.warmup_s, SLICES_TO_JUDGE * plan.slice_s) if can_judge else plan.warmup_s
    while True:
        slices.append(measure(plan.slice_s))
        if len(slices) * plan.slice_s < least:
            continue
        if not can_judge or is_steady([each.goodput_rps for each in slices], spread=spread):
            return slices, True
        if len(slices) * plan.slice_s >= plan.warmup_max_s:
            return slices, False


def _round(
    run: Callable[..., Window],
    deployment: Deployment,
    load: Load,
    turns: Iterator[int],
    judges: Judges,
    duration_s: float,
    *,
    problems_before: int = 0,
) -> Window:
    """Run one window, of each of several loads."""
    run = partial(_window, run, duration_s=duration_s, problems_before=problems_before, judges=judges)
    return run_round(run, deployment, load, next(turns))


def _window(
    run: Callable[..., Window],
    deployment: Deployment,
    load: Load,
    *,
    duration_s: float,
    judges: Judges,
    problems_before: int,
) -> Window:
    """Run one window; a server from which nothing comes is not slow, it is broken."""
    window = run(deployment, load, duration_s, problems_before=problems_before, baseline=judges.baseline)
    deployment.check_alive()
    if window.correct == 0 and not (
        judges.allow_no_response or _generator_failed(window) or _was_replaced(window)
    ):
        said = "; ".join(verdict.reason for verdict in window.verdicts) or "the server answered no request."
        of_load = f" {load.name}" if load.name else ""
        raise Stalled(f"no correct response in {window.duration_s:.1f} s of load{of_load}: {said}")
    return window
