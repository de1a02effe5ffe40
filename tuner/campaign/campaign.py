"""The campaign: calibrate → search → race → simplify → confirm.

Every stage asks the storage what is there already and does only what is missing, so that an interrupted
study goes on with the same command.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from statistics import median

from tuner.campaign.finals import CONFIRMED, confirm, race, simplify
from tuner.campaign.fixed_rate import measure_latency
from tuner.campaign.prepare import Rig
from tuner.campaign.progress import Progress
from tuner.campaign.search import EXPECTED, is_exhausted, left_to_gain, promising_entry, suggest
from tuner.campaign.start_runner import Starter
from tuner.errors import TargetError, UsageError
from tuner.measure.gates import HEALTHY, ControlFacts
from tuner.measure.gates.retries import LEAVE
from tuner.measure.start import NO_JUDGES, Judges
from tuner.measure.window import Load
from tuner.optimize.optimizer import Optimizer
from tuner.ports import Clock, Config
from tuner.records import Gate, Role, Start, State, Window
from tuner.statistics.control_level import ControlLevel
from tuner.statistics.jumps import requeue
from tuner.statistics.noise import control_interval, detectable_gain
from tuner.statistics.pruning import gate_zero, should_prune
from tuner.statistics.ranking import DEFAULT_ARM, Standing, as_controls, config_key, stand
from tuner.statistics.steady import declines
from tuner.study.objective import Constraint, unmeasured
from tuner.study.presets import Plan
from tuner.study.storage import Opening, Storage

MAX_FAILED_CONTROLS = 3
LEAST_PAUSE_S = 30.0
"""For so long it is worth waiting for a noisy host to calm down, however little time is left."""


class Campaign:
    """One study from its first control start to its verdict."""

    def __init__(
        self,
        rig: Rig,
        plan: Plan,
        storage: Storage,
        optimizer: Optimizer,
        progress: Progress,
        *,
        session: str,
        clock: Clock = time,
    ) -> None:
        """Take up the study where its storage left it."""
        self.clock = clock
        self.rig = rig
        self.plan = plan
        self.storage = storage
        self.optimizer = optimizer
        self.progress = progress
        self.starter = Starter(rig=rig, plan=plan, storage=storage, session=session)
        self.default = rig.space.default()
        self._expected: list[float | None] = storage.recall(EXPECTED, [])
        self._told = ""
        self.starts = list(settle_interrupted(storage, plan, rig.settings.constraints))
        self._stood: tuple[list[Start], Standing] | None = None
        self.deadline = clock.monotonic() + plan.minutes * 60 - sum(cost_s(start) for start in self.starts)

    def run(self) -> str:
        """Run what is missing of the study; returns why it stopped."""
        self.calibrate()
        self.search()
        finalist = race(self)
        if finalist is None:
            return "nothing beat the default in the search"
        winner = simplify(self, finalist)
        verdict = confirm(self, winner)
        if verdict == CONFIRMED:
            measure_latency(self, winner)
        return verdict

    # Stages

    def calibrate(self) -> None:
        """Measure the default until its noise is known."""
        wanted = self.plan.calibration_starts
        while (done := len(self.controls())) < wanted:
            self.progress.stage("calibrate", done, wanted)
            self.make_control()

    def search(self) -> None:
        """Try configurations, with a control start every few, until the budget is spent."""
        if self.storage.recall("race") or self.storage.recall("searched"):
            return
        waiting = self._made_at_a_jump()
        while self._may_search():
            self.progress.stage("search", self._searched(), self.plan.trials)
            if waiting:
                self._try(Role.REPEAT, waiting.pop(0), suggest_s=0.0)
                # A control right after each, to see which of them makes the machine change.
                waiting = self.make_control() or waiting
            elif self._control_is_due():
                waiting = self.make_control()
            else:
                self._try_next()
        if not self._last_is_control():
            self.make_control()
        self.storage.remember("searched", value=True)
        left = left_to_gain(self._expected)
        if left is not None:
            self.progress.note(f"another configuration is expected to gain {left:.1%} more")

    # One start

    def make_control(self) -> list[Config]:
        """Measure the default; a control far off is measured again at once.

        Returns the configurations that have to be measured again because the machine has changed since.
        """
        control = self.make(Opening(role=Role.CONTROL, config=self.default, arm=DEFAULT_ARM))
        if not control.counts:
            return self._control_failed(control)
        self._refuse_unmeasured(control)
        standing = self.standing()
        earlier = [each for each in self.controls() if each.number != control.number]
        if len(earlier) < 2:  # noqa: PLR2004 - nothing to be far from
            return []
        if not ControlLevel.fit(earlier, standing.noise).alarm(control):
            return []
        self.progress.note("the control is far from where it was; measuring it again")
        self.make(Opening(role=Role.CONTROL, config=self.default, arm=DEFAULT_ARM))
        again = self._made_at_a_jump()
        if again:
            self.progress.note(f"the machine has changed; {len(again)} starts are measured again")
        return again

    def _refuse_unmeasured(self, control: Start) -> None:
        """A bound that nobody can check would count as kept."""
        settings = self.rig.settings
        unknown = unmeasured(control, settings.constraints, settings.objective)
        if unknown:
            msg = (
                f"{settings.path}: {' and '.join(unknown)} cannot be told: the load generator reports no "
                "response times, or the server's CPU time cannot be read. Leave it out, or take a generator "
                "that reports them (wrk)."
            )
            raise UsageError(msg)

    def _made_at_a_jump(self) -> list[Config]:
        """Give the configurations of which nobody knows on which side of a change they were measured."""
        numbers = requeue(as_controls(self.starts), self.standing().noise)
        return [start.config for start in self.starts if start.number in numbers]

    def _control_failed(self, control: Start) -> list[Config]:
        """The default itself fails: tolerate it once or twice, then the target is at fault."""
        failed = [start for start in self.starts if start.role is Role.CONTROL][-MAX_FAILED_CONTROLS:]
        if len(failed) == MAX_FAILED_CONTROLS and all(_failed(start) for start in failed):
            reason = control.failure.reason if control.failure else "unknown"
            msg = f"target: the default configuration failed {MAX_FAILED_CONTROLS} times in a row. {reason}"
            raise TargetError(msg)
        return []

    def make(
        self,
        opening: Opening,
        *,
        judges: Judges = NO_JUDGES,
        suggest_s: float = 0.0,
        plan: Plan | None = None,
        load: Load | None = None,
    ) -> Start:
        """Make one start, keep it and tell whoever watches."""
        changed = len(self.rig.space.changes(opening.config))
        label = opening.arm or f"{changed} setting{'' if changed == 1 else 's'} changed"
        self.progress.start_begins(opening.role, label)
        self.progress.time_left(self.time_left_s())
        start = self.starter.make(
            opening,
            judges=replace(
                judges, spread=self.standing().noise.sigma_window, control=self._control_facts(opening)
            ),
            value=self._value,
            suggest_s=suggest_s,
            plan=plan,
            load=load,
        )
        self.starts.append(start)
        self._tell(start)
        self._bear_noise()
        return start

    def _tell(self, start: Start) -> None:
        standing = self.standing()
        self.progress.start_ends(start, standing.speedups.get(start.number))
        if declines(start.valid_windows, spread=standing.noise.sigma_window):
            self.progress.note(f"goodput fell all through start {start.number}")
        best = standing.incumbent
        if best is not None and best.key != self._told:
            self._told = best.key
            self.progress.incumbent(self.rig.space.changes(best.config), best.posterior)

    def _bear_noise(self) -> None:
        """Wait until the host spoils no more windows, or give up. Raises TargetError."""
        noise = self.standing().noise
        provable = detectable_gain(noise, pairs=self.plan.pairs, windows=self.plan.windows[1])
        left_s = max(LEAST_PAUSE_S, self.time_left_s())
        noisy = self.starter.retries.complain(provable_gain=provable, pause_s=left_s)
        if noisy is None:
            return
        message = f"{noisy.found} {noisy.advice}"
        if noisy.pause_s is None:
            raise TargetError(message)
        self.progress.note(message)
        moment = self.clock.monotonic()
        is_quiet = self.starter.wait_until_quiet(noisy.pause_s)
        self.starter.retries.rested(self.clock.monotonic() - moment)
        if not is_quiet:
            msg = f"{noisy.found} It did not pass within {noisy.pause_s:.0f} s. {LEAVE}"
            raise TargetError(msg)

    def _try_next(self) -> None:
        """Measure a new configuration, or once more the one that may be the best."""
        standing = self.standing()
        again = promising_entry(self, standing)
        if again is not None:
            self._try(Role.REPEAT, again.config, suggest_s=0.0)
            return
        moment = self.clock.monotonic()
        proposal = suggest(self, standing)
        self._expected.append(proposal.expected_gain)
        self.storage.remember(EXPECTED, self._expected)
        self._try(Role.SEARCH, proposal.config, suggest_s=self.clock.monotonic() - moment)

    def _try(self, role: Role, config: Config, *, suggest_s: float) -> None:
        self.make(
            Opening(role=role, config=config, point=self.rig.space.encode(config)),
            judges=self._judges(config),
            suggest_s=suggest_s,
        )

    def _judges(self, config: Config) -> Judges:
        standing = self.standing()
        level, variance = ControlLevel.fit(self.controls(), standing.noise).at(self.clock.time())
        best = standing.incumbent
        rival = None if best is None or best.key == config_key(config) else best.posterior

        def prune(windows: Sequence[Window]) -> str | None:
            verdict = should_prune(
                windows, level=level, level_variance=variance, incumbent=rival,
                noise=standing.noise, max_windows=self.plan.windows[1],
            )  # fmt: skip
            return f"clearly worse than the best so far (z = {verdict.z:.1f})" if verdict.prune else None

        return Judges(gate_zero=lambda window: gate_zero(window, math.exp(level)), prune=prune)

    def _control_facts(self, opening: Opening) -> ControlFacts:
        """Say what the default showed last; what it does itself is not excused by that."""
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

    def _value(self, start: Start) -> float | None:
        controls = self.controls()
        if start.log_goodput is None or not controls:
            return 0.0 if start.role is Role.CONTROL else None
        level, _ = ControlLevel.fit(controls, self.standing().noise).at(start.started_s)
        return start.log_goodput - level

    # What is known

    def standing(self) -> Standing:
        """Recompute how things stand from all starts; many ask between two of them."""
        if self._stood is None or self._stood[0] != self.starts:
            found = stand(self.starts, self.rig.settings.constraints, self.default)
            self._stood = [*self.starts], found
        return self._stood[1]

    def controls(self) -> list[Start]:
        """Give the default's starts that are measurements."""
        return [start for start in as_controls(self.starts) if start.role is Role.CONTROL and start.counts]

    def random(self, purpose: str) -> Random:
        """Give a random source that is the same in every session of the study."""
        return Random(f"{self.rig.settings.seed}/{purpose}")  # noqa: S311 - no secret

    def mean_cost_s(self) -> float:
        """Seconds that a start has taken on average."""
        costs = [cost_s(start) for start in self.starts if start.counts]
        return sum(costs) / len(costs) if costs else 5.0

    def mean_deploy_s(self) -> float:
        """Seconds that it has taken on average until a server was ready."""
        costs = [start.timing.deploy_s for start in self.starts if start.counts]
        return sum(costs) / len(costs) if costs else 1.0

    def time_left_s(self) -> float:
        return max(0.0, self.deadline - self.clock.monotonic())

    def finals_cost_s(self) -> float:
        """Seconds that the stages after the search will take."""
        plan = self.plan
        race = (plan.race_arms + 1) * plan.race_blocks
        simplify = 2 * plan.simplify_steps * plan.simplify_pairs
        return (race + simplify) * self.mean_cost_s() + self.proof_cost_s()

    def proof_cost_s(self) -> float:
        """Seconds that the confirmation and the response times at a fixed rate will take."""
        plan = self.plan
        confirm_s = plan.confirm_s or 2 * plan.extend_to * self.mean_cost_s()
        return confirm_s + 2 * plan.rate_pairs * (self.mean_cost_s() + plan.rate_window_s)

    def has_time_for(self, starts: int) -> bool:
        """Whether so many starts leave the time that the proof needs."""
        return self.time_left_s() - starts * self.mean_cost_s() >= self.proof_cost_s()

    def _searched(self) -> int:
        return sum(
            start.role in {Role.SEARCH, Role.REPEAT} and start.state is not State.INVALID
            for start in self.starts
        )

    def _may_search(self) -> bool:
        if not self._searched():
            return True  # however little time there is: without any the study would answer nothing
        if is_exhausted(self._expected):
            return False
        left = self.time_left_s() - self.finals_cost_s()
        return self._searched() < self.plan.trials and left > self.mean_cost_s()

    def _control_is_due(self) -> bool:
        interval = control_interval(self.standing().noise, self.mean_cost_s(), self.plan.windows[1])
        since = 0
        for start in reversed(self.starts):
            if start.role is Role.CONTROL:
                break
            since += start.state is not State.INVALID
        return since >= interval

    def _last_is_control(self) -> bool:
        return bool(self.starts) and self.starts[-1].role is Role.CONTROL


def _failed(control: Start) -> bool:
    """Tell whether a start of the default failed, or its generator in every window: no noise of the host."""
    return control.state is State.FAILED or (
        control.state is State.INVALID
        and bool(control.windows)
        and all(
            any(verdict.gate == Gate.GENERATOR for verdict in window.verdicts) for window in control.windows
        )
    )


def cost_s(start: Start) -> float:
    """Seconds that one start took."""
    return start.timing.suggest_s + start.timing.deploy_s + start.timing.load_s


def settle_interrupted(storage: Storage, plan: Plan, constraints: Sequence[Constraint]) -> tuple[Start, ...]:
    """Give every start, those that were cut off with what their finished windows say."""
    confirmation = storage.recall("confirm") or {}
    windows_of = {Role.CONFIRM: confirmation.get("windows", 1), Role.LATENCY: 1}
    return tuple(
        storage.settle(
            start, least_windows=windows_of.get(start.role, plan.windows[1]), constraints=constraints
        )
        if start.state is State.RUNNING
        else start
        for start in storage.starts()
    )
