"""Makes one start: deploy, measure, keep. What goes wrong with a configuration is data, not an abort."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tuner.campaign.lost_starts import LOST, STOPPED
from tuner.campaign.prepare import Setup
from tuner.deploy.deployment import Deployment
from tuner.errors import TrialFailed
from tuner.measure.gates import RetryBudget
from tuner.measure.gates.thresholds import DEFAULTS
from tuner.measure.quiet import wait_until_quiet
from tuner.measure.situations import measure_situations
from tuner.measure.start import NO_JUDGES, Judges, Outcome, measure_start
from tuner.measure.window import Load
from tuner.optimize.replay import distributions
from tuner.records import Blame, Failure, Situation, Start, State, Timing, Window
from tuner.study.databases.database import StorageLost
from tuner.study.objective import slacks
from tuner.study.presets import Plan
from tuner.study.storage import Opening, Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """Everything that a start needs and that stays the same from start to start."""

    setup: Setup
    plan: Plan
    storage: Storage
    session: str
    retries: RetryBudget = field(default_factory=RetryBudget)
    writes_s: list[float] = field(default_factory=list)
    """What each write of a result took since the last start was told: windows, and how the start before
    ended."""

    def wait_until_quiet(self, most_s: float) -> bool:
        """Wait until other programs leave the machine alone; return whether they do."""
        return wait_until_quiet(self.setup.host, self.setup.load, most_s=most_s)

    def sit_out_noise(self, note: Callable[[str], None]) -> bool:
        """Say that the host is too noisy, and wait for other programs to end; return whether they have."""
        note(f"host: too noisy; waiting up to {DEFAULTS.noisy_pause_s:.0f} s for that to pass")
        return self.wait_until_quiet(DEFAULTS.noisy_pause_s)

    def make(
        self,
        opening: Opening,
        *,
        judges: Judges = NO_JUDGES,
        value: Callable[[Start], float | None] = lambda _: None,
        suggest_s: float = 0.0,
        plan: Plan | None = None,
        load: Load | None = None,
        controls: Sequence[Start] = (),
    ) -> Start:
        """Make one start and keep it, whatever becomes of it.

        Args:
            opening: the configuration, and why it is measured.
            judges: what may end it early.
            value: gives the log speedup with which the start is told to the storage.
            suggest_s: what it took to choose the configuration.
            plan: instead of the campaign's, for a stage with windows of its own.
            load: instead of the study's.
            controls: starts of the default so far, for constraints that are relative to it.
        """
        load, plan = load or self.setup.load, plan or self.plan

        def measure(deployment: Deployment, keep: Callable[[Window], None]) -> Outcome:
            return measure_start(deployment, load, plan, judges, self.retries, keep)

        return self._make(opening, measure, value=value, suggest_s=suggest_s, controls=controls)

    def make_in(self, situations: Sequence[Situation], opening: Opening, *, window_s: float) -> Start:
        """Make one start that meets other loads than the study's, a window of each, and keep it.

        What such a load spoils says nothing of how noisy the host is.
        """

        def measure(deployment: Deployment, keep: Callable[[Window], None]) -> Outcome:
            return measure_situations(deployment, self.setup.load, situations, window_s, RetryBudget(), keep)

        return self._make(opening, measure, value=lambda _: 0.0)

    def _make(
        self,
        opening: Opening,
        measure: Callable[[Deployment, Callable[[Window], None]], Outcome],
        *,
        value: Callable[[Start], float | None] = lambda _: None,
        suggest_s: float = 0.0,
        controls: Sequence[Start] = (),
    ) -> Start:
        setup = self.setup
        spaces = distributions(setup.space.dimensions) if opening.point else {}
        start = self.storage.begin(opening, distributions=spaces, session=self.session)

        def keep(window: Window) -> None:
            nonlocal start
            with self._write():
                start = self.storage.keep_window(start, window)

        deploy_s = load_s = 0.0
        try:
            with self.storage.elsewhere(start):
                deploying = time.monotonic()
                with setup.target.deploy(opening.config) as deployment:
                    deploy_s = time.monotonic() - deploying
                    loading = time.monotonic()
                    try:
                        outcome = measure(deployment, keep)
                    finally:
                        load_s = time.monotonic() - loading
            state = State.COMPLETE if outcome.pruned is None else State.PRUNED
            failure = None if outcome.pruned is None else Failure(kind="pruned", reason=outcome.pruned)
            start = replace(start, state=state, failure=failure, steady=outcome.steady)
            if not start.valid_windows:
                start = replace(
                    start, state=State.INVALID,
                    failure=Failure(kind=Blame.ENVIRONMENT.value, reason=_spoiled(start)),
                )  # fmt: skip
        except TrialFailed as failed:
            start = replace(start, state=State.FAILED, failure=Failure(kind=failed.kind, reason=str(failed)))
        except BaseException as error:
            # Interrupted, or the target itself is in trouble: nothing is learned of the configuration, unless
            # it is lost again.
            kind = STOPPED if isinstance(error, KeyboardInterrupt | StorageLost) else LOST
            start = replace(start, state=State.INVALID, failure=Failure(kind=kind, reason="cut off"))
            self.storage.end(start, log_ratio=None, slacks={})
            raise
        start = replace(
            start,
            timing=Timing(
                suggest_s=suggest_s, deploy_s=deploy_s, load_s=load_s, store_s=max(self.writes_s, default=0.0)
            ),
        )
        self.writes_s.clear()
        # In the turn in which the next start begins: who sees that nobody is at a pair takes it over.
        log_ratio = value(start) if start.counts else None
        with self._write():
            told = slacks(start, setup.settings.constraints, controls)
            self.storage.end(start, log_ratio=log_ratio, slacks=told)
        return start

    @contextmanager
    def _write(self) -> Iterator[None]:
        moment = time.monotonic()
        yield
        self.writes_s.append(time.monotonic() - moment)


def _spoiled(start: Start) -> str:
    """Return what spoiled the windows: of each gate, what it found last."""
    reasons = {
        verdict.gate: verdict.reason
        for window in start.windows
        for verdict in window.verdicts
        if verdict.blame is Blame.ENVIRONMENT
    }
    return "every window was spoiled: " + "; ".join(sorted(reasons.values()))


def name_session(host: str = "") -> str:
    """Return a name for the work of this process from now on, which its starts carry; of one host of several.

    Processes on several machines may have the same number.
    """
    return "-".join(filter(None, (str(int(time.time())), str(os.getpid()), host)))
