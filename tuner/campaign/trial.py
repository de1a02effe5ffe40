"""One trial as a task: a configuration, freshly started and measured, in this process or in another one."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from tuner.campaign.prepare import Setup
from tuner.deploy.deployment import Deployment
from tuner.errors import TrialFailed
from tuner.measure.check_loads import measure_check_loads
from tuner.measure.quiet import wait_until_quiet
from tuner.measure.trial import NO_JUDGES, Judges, Outcome, measure_trial
from tuner.measure.validity import RetryBudget
from tuner.measure.window import Load
from tuner.ports import Config
from tuner.records import CheckLoad, Failure, Window
from tuner.study.facts import MovedLoad
from tuner.study.presets import Plan

Keep = Callable[[Window], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialTask:
    """Everything that a target has to know of one trial."""

    config: Config
    load: Load
    """As the controller sees it; a worker knows its own processes on the target."""
    plan: Plan
    judges: Judges = NO_JUDGES
    """May end the trial early."""
    check_loads: tuple[CheckLoad, ...] = ()
    """Check loads that it is measured under, instead of its own; a window of each."""
    check_s: float = 0.0
    """Length of those windows."""
    moved: MovedLoad | None = None
    """Where the load generator runs, when that was changed since the study began."""
    retries: RetryBudget = field(default_factory=RetryBudget)
    """Of windows that the environment spoils."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """What a trial gave."""

    outcome: Outcome | None
    """None when the configuration failed."""
    failure: Failure | None
    """Why it failed."""
    deploy_s: float
    load_s: float
    retries: RetryBudget


class Executor(Protocol):
    """Runs trials on one target; whoever calls it waits meanwhile."""

    def measure(self, task: TrialTask, keep: Keep) -> TrialOutcome:
        """Run a trial and hand over its finished windows.

        Raises TargetError when the target is in trouble, whatever the configuration.
        """

    def wait_until_quiet(self, most_s: float) -> bool:
        """Wait until other programs leave the target alone; return whether they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessExecutor:
    """Runs trials from this process, on a target that it holds."""

    setup: Setup

    def measure(self, task: TrialTask, keep: Keep) -> TrialOutcome:
        """Run a trial; each window is handed over as soon as it is finished."""
        deploying = time.monotonic()
        deploy_s = load_s = 0.0
        outcome = failure = None
        try:
            with self.setup.target.deploy(task.config) as deployment:
                loading = time.monotonic()
                deploy_s = loading - deploying
                try:
                    outcome = _load(task, deployment, keep)
                finally:
                    load_s = time.monotonic() - loading
        except TrialFailed as failed:
            failure = Failure(kind=failed.kind, reason=str(failed))
        return TrialOutcome(
            outcome=None if failure else outcome, failure=failure, deploy_s=deploy_s, load_s=load_s,
            retries=task.retries,
        )  # fmt: skip

    def wait_until_quiet(self, most_s: float) -> bool:
        """Wait until other programs leave the target alone; return whether they do."""
        return wait_until_quiet(self.setup.host, self.setup.load, most_s=most_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerExecutor:
    """Runs trials that another process has planned, on a target that this process holds."""

    setup: Setup

    def measure(self, task: TrialTask, keep: Keep) -> TrialOutcome:
        """Run a trial, with the processes that this process has on the target."""
        setup = self.setup if task.moved is None else self.setup.move(task.moved)

        def localize(load: Load) -> Load:
            return replace(
                load, interrupt_threads=setup.load.interrupt_threads, tuner_pid=setup.load.tuner_pid,
                beside=tuple(map(localize, load.beside)),
            )  # fmt: skip

        return InProcessExecutor(setup=setup).measure(replace(task, load=localize(task.load)), keep)

    def wait_until_quiet(self, most_s: float) -> bool:
        """Wait until other programs leave the target alone; return whether they do."""
        return InProcessExecutor(setup=self.setup).wait_until_quiet(most_s)


def _load(task: TrialTask, deployment: Deployment, keep: Keep) -> Outcome:
    if task.check_loads:
        # What such a load spoils says nothing of how noisy the host is.
        return measure_check_loads(deployment, task.load, task.check_loads, task.check_s, RetryBudget(), keep)
    return measure_trial(deployment, task.load, task.plan, task.judges, task.retries, keep)
