"""A study while it is measured: its starts, what they say, the time that is left, and one start more."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from statistics import median

from tuner.campaign.prepare import Setup
from tuner.campaign.progress import Progress
from tuner.campaign.start_runner import Starter
from tuner.errors import TargetError
from tuner.measure.gates import HEALTHY, ControlFacts
from tuner.measure.gates.retries import LEAVE
from tuner.measure.start import NO_JUDGES, Judges
from tuner.measure.window import Load
from tuner.optimize.optimizer import Optimizer
from tuner.ports import Clock
from tuner.records import Metric, Role, Start, State, blended, measured_by
from tuner.records.blend import Blend
from tuner.statistics.control_level import Speedup
from tuner.statistics.noise import detectable_gain
from tuner.statistics.power import plan_pairs
from tuner.statistics.ranking import DEFAULT_ARM, Ranking, as_controls, rank
from tuner.statistics.steady import declines
from tuner.study.facts import BLEND, CONFIRMATION, METRIC, MOVED_LOAD, OTHER_LOADS, MovedLoad
from tuner.study.objective import Constraint
from tuner.study.presets import Plan
from tuner.study.storage import Opening, Storage

LEAST_PAUSE_S = 30.0
"""Waiting so long for a noisy host to calm down pays, however little time is left."""
WRAP_UP_S = 10.0
"""Kept back for the report and the exports."""


class Experiment:
    """What all stages of a campaign share."""

    def __init__(
        self,
        setup: Setup,
        plan: Plan,
        storage: Storage,
        optimizer: Optimizer,
        progress: Progress,
        *,
        session: str,
        clock: Clock = time,
    ) -> None:
        """Take up the study where its storage left it."""
        moved = storage.recall(MOVED_LOAD)
        setup = setup if moved is None else setup.move(moved)
        self.clock = clock
        self.setup = setup
        self.plan = plan
        self.storage = storage
        self.optimizer = optimizer
        self.progress = progress
        self.starter = Starter(setup=setup, plan=plan, storage=storage, session=session)
        self.default = setup.space.default()
        self.starts = _settle_interrupted(storage, plan, setup.settings.constraints)
        self._shown_incumbent = ""
        self._ranked: tuple[list[Start], Ranking] | None = None
        self._deadline_s = clock.monotonic() + plan.minutes * 60 - sum(cost_s(start) for start in self.starts)

    def maximize(self, metric: Metric) -> None:
        """Compare by another metric from now on, what was measured so far included."""
        self.storage.remember(METRIC, metric)
        self.starts[:] = [measured_by(start, metric) for start in self.starts]
        self._ranked = None

    def compare_loads(self, blend: Blend) -> None:
        """Compare by several loads from now on, what was measured so far included."""
        self.storage.remember(BLEND, blend)
        self.starts[:] = [blended(start, blend) for start in self.starts]
        self._ranked = None

    def move_load(self, moved: MovedLoad) -> None:
        """Go on with the load generator in another place; what was measured so far was another load."""
        self.storage.remember(MOVED_LOAD, moved)
        self.setup = self.setup.move(moved)
        self.starter = replace(self.starter, setup=self.setup)
        self.starts.clear()
        self._ranked = None

    # One start more

    def make(
        self,
        opening: Opening,
        *,
        judges: Judges = NO_JUDGES,
        suggest_s: float = 0.0,
        plan: Plan | None = None,
        load: Load | None = None,
    ) -> Start:
        """Make one start, keep it and report it."""
        changed = len(self.setup.space.changes(opening.config))
        label = opening.arm or f"{changed} setting{'' if changed == 1 else 's'} changed"
        self.progress.start_begins(opening.role, label)
        self.progress.time_left(self.time_left_s())
        constraints = self.setup.settings.constraints
        judges = replace(
            _as_compared(judges, self.storage),
            spread=self.ranking().noise.sigma_window,
            control=self._control_facts(opening),
            # Where what bears the load is sought, the default need not.
            bears_silence=opening.arm == DEFAULT_ARM and any(each.is_sought for each in constraints),
        )
        start = self.starter.make(
            opening, judges=judges, value=self._log_ratio, suggest_s=suggest_s, plan=plan, load=load,
            controls=self.controls(),
        )  # fmt: skip
        self.starts.append(start)
        self._report(start)
        self._wait_out_noise()
        return start

    def _control_facts(self, opening: Opening) -> ControlFacts:
        """Return what the default showed last; its own starts are not excused by that."""
        if opening.arm == DEFAULT_ARM:
            return HEALTHY
        faults = [
            window.counters.get("server_faults_major", 0.0) / window.duration_s
            for control in self.controls()
            for window in control.valid_windows
        ]
        last = [start for start in as_controls(self.starts) if start.role is Role.CONTROL][-1:]
        return ControlFacts(
            is_healthy=all(start.state is not State.FAILED for start in last),
            major_faults_per_s=median(faults) if faults else 0.0,
        )

    def _log_ratio(self, start: Start) -> float | None:
        """Return the log speedup of a start as it is known when the start ends."""
        posterior = self.ranking().posterior
        if start.log_value is None or posterior is None:
            return 0.0 if start.role is Role.CONTROL else None
        return posterior.speedups([start])[0].log_ratio

    def _report(self, start: Start) -> None:
        ranking = self.ranking()
        self.progress.start_ends(start, ranking.speedups.get(start.number))
        if declines(start.valid_windows, spread=ranking.noise.sigma_window):
            self.progress.note(f"goodput fell all through start {start.number}")
        best = ranking.incumbent
        if best is not None and best.key != self._shown_incumbent:
            self._shown_incumbent = best.key
            self.progress.incumbent(self.setup.space.changes(best.config), best.posterior)

    def _wait_out_noise(self) -> None:
        """Wait until the host spoils no more windows. Raises TargetError when that takes too long."""
        plan, retries = self.plan, self.starter.retries
        provable = detectable_gain(self.ranking().noise, pairs=plan.pairs, windows=plan.windows[1])
        left_s = max(LEAST_PAUSE_S, self.time_left_s())
        noisy = retries.complain(provable_gain=provable, pause_s=left_s)
        if noisy is None:
            return
        if noisy.pause_s is None:
            raise TargetError(f"{noisy.found} {noisy.advice}")
        self.progress.note(f"{noisy.found} {noisy.advice}")
        moment = self.clock.monotonic()
        is_quiet = self.starter.wait_until_quiet(noisy.pause_s)
        retries.rested(self.clock.monotonic() - moment)
        if not is_quiet:
            raise TargetError(f"{noisy.found} It did not pass within {noisy.pause_s:.0f} s. {LEAVE}")

    # What is known

    def ranking(self) -> Ranking:
        """Return what all starts so far say; computed once for each start, since many ask."""
        if self._ranked is None or self._ranked[0] != self.starts:
            self._ranked = (
                [*self.starts],
                rank(self.setup.space, self.starts, self.setup.settings.constraints),
            )
        return self._ranked[1]

    def controls(self) -> list[Start]:
        """Return the starts of the default that are measurements."""
        return [start for start in as_controls(self.starts) if start.role is Role.CONTROL and start.counts]

    def random(self, purpose: str) -> Random:
        """Return a random source that is the same in every session of the study."""
        return Random(f"{self.setup.settings.seed}/{purpose}")  # noqa: S311 - no secret

    # Time

    def time_left_s(self) -> float:
        return max(0.0, self._deadline_s - self.clock.monotonic())

    def mean_cost_s(self) -> float:
        """Return the mean seconds of a start."""
        costs = [cost_s(start) for start in self.starts if start.counts and start.role.is_under_study_load]
        return sum(costs) / len(costs) if costs else 5.0

    def mean_deploy_s(self) -> float:
        """Return the mean seconds until a server was ready."""
        costs = [
            start.timing.deploy_s for start in self.starts if start.counts and start.role.is_under_study_load
        ]
        return sum(costs) / len(costs) if costs else 1.0

    def window_s(self) -> float:
        """Return the length of a window: the plan's for each load, or as seen where requests are counted."""
        load = self.setup.load
        lasted = [window.duration_s for each in self.controls() for window in each.valid_windows]
        is_counted = any(each.requests_total is not None for each in (load, *load.beside))
        return median(lasted) if is_counted and lasted else self.plan.window_s * (1 + len(load.beside))

    def warmup_s(self) -> float:
        """Return the least length of a warm-up: the plan's for each load."""
        return self.plan.warmup_s * (1 + len(self.setup.load.beside))

    def spent_s(self, role: Role) -> float:
        """Return the seconds that starts in a role have taken."""
        return sum(cost_s(start) for start in self.starts if start.role is role)

    def has_time_for(self, starts: int) -> bool:
        """Return whether so many starts leave the time that confirmation and fixed rate need."""
        return self.time_left_s() - starts * self.mean_cost_s() >= self._final_s()

    def has_time_to_search(self) -> bool:
        """Return whether another start of the search leaves the time that the later stages need."""
        later_s = self.plan.race_s + self.plan.simplify_s + self._final_s()
        return self.time_left_s() - later_s > self.mean_cost_s()

    def plan_confirmation(self, gain: Speedup | None) -> tuple[int, int]:
        """Return pairs and windows per start that are likely to prove a gain in the time there is.

        Without a gain to prove so far, those that fill the time.
        """
        plan = self.plan
        if not plan.confirm_s:
            return plan.pairs, plan.windows[1]
        return plan_pairs(
            gain or Speedup(log_ratio=0.0, variance=0.0),
            self.ranking().noise,
            least=plan.pairs,
            seconds=min(plan.confirm_s, max(0.0, self.time_left_s() - WRAP_UP_S)),
            start_cost_s=self.mean_deploy_s() + self.warmup_s(),
            window_s=self.window_s(),
        )

    def _final_s(self) -> float:
        """Return the seconds that other loads, confirmation, fixed rate and exports need, as things stand."""
        plan, best = self.plan, self.ranking().incumbent
        pairs, windows = self.plan_confirmation(None if best is None else best.posterior)
        each_s = self.mean_cost_s()
        if plan.confirm_s:
            confirm_s = 2 * pairs * (self.mean_deploy_s() + self.warmup_s() + windows * self.window_s())
        else:
            confirm_s = 2 * plan.extend_to * each_s
        rate_s = 2 * plan.rate_pairs * (each_s + plan.rate_window_s)
        return plan.other_loads_s + confirm_s + rate_s + WRAP_UP_S


def _as_compared(judges: Judges, storage: Storage) -> Judges:
    """Let judges see windows as the study compares them."""
    compared = partial(replace, metric=storage.metric, blend=storage.blend)
    return replace(
        judges,
        gate_zero=lambda window: judges.gate_zero(compared(window)),
        prune=lambda windows: judges.prune([compared(window) for window in windows]),
    )


def cost_s(start: Start) -> float:
    """Return the seconds that a start took."""
    return start.timing.suggest_s + start.timing.deploy_s + start.timing.load_s


def _settle_interrupted(storage: Storage, plan: Plan, constraints: Sequence[Constraint]) -> list[Start]:
    """Return all starts; those that were cut off count when all their windows are there."""
    confirmation = storage.recall(CONFIRMATION)
    starts = storage.starts()
    controls = [start for start in starts if start.arm == DEFAULT_ARM and start.counts]
    situations = [len(each.situations) for each in storage.recall(OTHER_LOADS) or ()]
    windows_of = {
        Role.CONFIRM: confirmation.windows if confirmation else 1,
        Role.LATENCY: 1,
        Role.OTHER_LOADS: max(situations, default=1),
    }
    return [
        storage.settle(
            start,
            least_windows=windows_of.get(start.role, plan.windows[1]),
            constraints=constraints,
            controls=controls,
        )
        if start.state is State.RUNNING
        else start
        for start in starts
    ]
