"""Runs one trial and keeps what it gave. What goes wrong with a configuration is data, no abort."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tuner.campaign.lost_trials import LOST, STOPPED
from tuner.campaign.prepare import Setup
from tuner.campaign.trial import Executor, InProcessExecutor, TrialOutcome, TrialTask
from tuner.measure.trial import NO_JUDGES, Judges
from tuner.measure.validity import RetryBudget
from tuner.measure.validity.facts import DEFAULTS
from tuner.measure.window import Load
from tuner.optimize.replay import distributions
from tuner.records import Blame, CheckLoad, Failure, State, Timing, Trial, Window
from tuner.study.facts import MOVED_LOAD
from tuner.study.objective import slacks
from tuner.study.presets import Plan
from tuner.study.storage import Opening, Storage


@dataclass(slots=True, kw_only=True)
class TrialRunner:
    """Everything that a trial needs and that stays the same from trial to trial."""

    setup: Setup
    plan: Plan
    storage: Storage
    session: str
    host: str = ""
    """Name of the target among those of the study; empty for one of its own."""
    executor: Executor | None = None
    """Runs the trials; None for this process."""
    retries: RetryBudget = field(default_factory=RetryBudget)
    writes_s: list[float] = field(default_factory=list)
    """What each write of a result took since the last trial was told: windows, and how the trial before
    ended."""

    @property
    def _executor(self) -> Executor:
        return self.executor or InProcessExecutor(setup=self.setup)

    def wait_until_quiet(self, most_s: float) -> bool:
        """Wait until other programs leave the machine alone; return whether they do."""
        return self._executor.wait_until_quiet(most_s)

    def sit_out_noise(self, waits: Callable[[float], None]) -> bool:
        """Tell that it waits for other programs to end, and wait; return whether they have."""
        waits(DEFAULTS.noisy_pause_s)
        return self.wait_until_quiet(DEFAULTS.noisy_pause_s)

    def make(
        self,
        opening: Opening,
        *,
        judges: Judges = NO_JUDGES,
        value: Callable[[Trial], float | None] = lambda _: None,
        suggest_s: float = 0.0,
        plan: Plan | None = None,
        load: Load | None = None,
        baselines: Sequence[Trial] = (),
    ) -> Trial:
        """Make one trial and keep it, whatever becomes of it.

        Args:
            opening: the configuration, and why it is measured.
            judges: what may end it early.
            value: gives the log speedup with which the trial is told to the storage.
            suggest_s: what it took to choose the configuration.
            plan: instead of the campaign's, for a stage with windows of its own.
            load: instead of the study's.
            baselines: trials of the default so far, for constraints that are relative to it.
        """
        task = self._task(opening, judges=judges, plan=plan, load=load)
        return self._make(opening, task, value=value, suggest_s=suggest_s, baselines=baselines)

    def make_under(self, check_loads: Sequence[CheckLoad], opening: Opening, *, window_s: float) -> Trial:
        """Make one trial under check loads instead of the study's, a window of each, and keep it."""
        task = self._task(opening, check_loads=tuple(check_loads), check_s=window_s)
        return self._make(opening, task, value=lambda _: 0.0)

    def _task(
        self,
        opening: Opening,
        *,
        judges: Judges = NO_JUDGES,
        plan: Plan | None = None,
        load: Load | None = None,
        check_loads: tuple[CheckLoad, ...] = (),
        check_s: float = 0.0,
    ) -> TrialTask:
        return TrialTask(
            config=dict(opening.config), load=load or self.setup.load, plan=plan or self.plan, judges=judges,
            check_loads=check_loads, check_s=check_s, moved=self.storage.recall(MOVED_LOAD),
            retries=self.retries,
        )  # fmt: skip

    def _make(
        self,
        opening: Opening,
        task: TrialTask,
        *,
        value: Callable[[Trial], float | None],
        suggest_s: float = 0.0,
        baselines: Sequence[Trial] = (),
    ) -> Trial:
        setup = self.setup
        spaces = distributions(setup.space.dimensions) if opening.point else {}
        trial = self.storage.begin(opening, distributions=spaces, session=self.session, host=self.host)

        def keep(window: Window) -> None:
            nonlocal trial
            with self._write():
                trial = self.storage.keep_window(trial, window)

        try:
            measured = self._executor.measure(task, keep)
        except BaseException as error:
            # Interrupted, or the target itself is in trouble: nothing is learned of the configuration, unless
            # it is lost again.
            kind = STOPPED if isinstance(error, KeyboardInterrupt) else LOST
            trial = replace(trial, state=State.INVALID, failure=Failure(kind=kind, reason="cut off"))
            self.storage.end(trial, log_ratio=None, slacks={})
            raise
        self.retries = measured.retries
        trial = replace(
            _ended(trial, measured),
            timing=Timing(
                suggest_s=suggest_s, deploy_s=measured.deploy_s, load_s=measured.load_s,
                store_s=max(self.writes_s, default=0.0),
            ),
        )  # fmt: skip
        self.writes_s.clear()
        # In the turn in which the next trial begins: who sees that nobody is at a pair takes it over.
        log_ratio = value(trial) if trial.counts else None
        with self._write():
            told = slacks(trial, setup.settings.constraints, baselines)
            self.storage.end(trial, log_ratio=log_ratio, slacks=told)
        return trial

    @contextmanager
    def _write(self) -> Iterator[None]:
        moment = time.monotonic()
        yield
        self.writes_s.append(time.monotonic() - moment)


def _ended(trial: Trial, measured: TrialOutcome) -> Trial:
    """Return a trial as its task has ended it."""
    outcome = measured.outcome
    if outcome is None:
        return replace(trial, state=State.FAILED, failure=measured.failure)
    if not trial.valid_windows:
        failure = Failure(kind=Blame.ENVIRONMENT.value, reason=_spoiled(trial))
        return replace(trial, state=State.INVALID, failure=failure, steady=outcome.steady)
    if outcome.pruned is None:
        return replace(trial, state=State.COMPLETE, steady=outcome.steady)
    failure = Failure(kind="pruned", reason=outcome.pruned)
    return replace(trial, state=State.PRUNED, failure=failure, steady=outcome.steady)


def _spoiled(trial: Trial) -> str:
    """Return what spoiled the windows: of each check, what it found last."""
    reasons = {
        verdict.check: verdict.reason
        for window in trial.windows
        for verdict in window.verdicts
        if verdict.blame is Blame.ENVIRONMENT
    }
    return "every window was spoiled: " + "; ".join(sorted(reasons.values()))


def name_session(host: str = "") -> str:
    """Return a name for the work of this process from now on, which its trials carry; of one host of several.

    Processes on several machines may have the same number.
    """
    return "-".join(filter(None, (str(int(time.time())), str(os.getpid()), host)))
