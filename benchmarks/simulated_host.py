"""A host that only exists as numbers: it answers with goodput as noisy as asked for, and knows the truth."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from tuner.ports import Failures
from tuner.records import Role, State, Trial, Window

BASE_RPS = 20_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKind:
    """How a host is noisy; standard deviations are those of log goodput."""

    name: str
    sigma_window: float
    sigma_trial: float
    drift_per_minute: float = 0.0
    """SD that the level's random walk gains in a minute."""
    burst_share: float = 0.0
    """Share of windows that interference slows down by `burst_depth`."""
    burst_depth: float = 0.0
    slow_depth: float = 0.0
    """Share of goodput that is lost in a slow phase."""
    slow_s: float = 7.0
    """Mean length of slow phases, which come as on a host whose neighbours work now and then."""
    fast_s: float = 14.0


@dataclass(slots=True, kw_only=True)
class SimulatedHost:
    """One host of a kind. Time passes only as it is used."""

    kind: HostKind
    rng: Random
    cost_s: float = 8.0
    """Seconds of deploying and warming up, before the windows of each trial."""
    window_s: float = 5.0
    clock_s: float = 1_000_000.0
    level: float = 0.0
    trials: list[Trial] = field(default_factory=list)
    _slow: bool = False
    _phase_ends_s: float = 0.0

    def measure(
        self,
        effect: float,
        *,
        windows: int,
        role: Role = Role.SEARCH,
        name: str = "default",
        block: int | None = None,
        prune: Callable[[Sequence[Window]], bool] = lambda _: False,
    ) -> Trial:
        """Make one trial of a configuration whose log speedup is truly `effect`, and keep it."""
        began_s = self.clock_s
        self._pass(self.cost_s)
        own = effect + self.rng.gauss(0.0, self.kind.sigma_trial)
        seen: list[Window] = []
        while len(seen) < windows and not prune(seen):
            seen.append(self._window(own))
        trial = Trial(
            number=len(self.trials),
            role=role,
            config={"name": name},
            state=State.COMPLETE if len(seen) == windows else State.PRUNED,
            started_s=began_s,
            windows=tuple(seen),
            arm=name,
            block=block,
        )
        self.trials.append(trial)
        return trial

    @property
    def load_s(self) -> float:
        """Seconds under load so far, warm-ups included, for as much as a trial costs."""
        return sum(self.cost_s + len(trial.windows) * self.window_s for trial in self.trials)

    def _window(self, own: float) -> Window:
        began_s = self.clock_s
        slow_share = self._pass(self.window_s)
        log = self.level + own + self.rng.gauss(0.0, self.kind.sigma_window)
        if self.rng.random() < self.kind.burst_share:
            log -= self.kind.burst_depth
        rate = BASE_RPS * math.exp(log) * (1 - self.kind.slow_depth * slow_share)
        return Window(
            started_s=began_s,
            duration_s=self.window_s,
            correct=round(rate * self.window_s),
            failures=Failures(),
        )

    def _pass(self, seconds: float) -> float:
        """Let time go by; returns the share of it that was slow."""
        self.level += self.rng.gauss(0.0, self.kind.drift_per_minute * math.sqrt(seconds / 60))
        end_s, slow_s = self.clock_s + seconds, 0.0
        if not self.kind.slow_depth:
            self.clock_s = end_s
            return 0.0
        while self.clock_s < end_s:
            if self._phase_ends_s <= self.clock_s:
                self._slow = not self._slow
                mean_s = self.kind.slow_s if self._slow else self.kind.fast_s
                self._phase_ends_s = self.clock_s + self.rng.expovariate(1 / mean_s)
            until_s = min(end_s, self._phase_ends_s)
            slow_s += (until_s - self.clock_s) * self._slow
            self.clock_s = until_s
        return slow_s / seconds


def confirm_pairs(
    host: SimulatedHost, effect: float, order: Sequence[tuple[str, ...]], *, windows: int
) -> list[tuple[float, float]]:
    """Measure fresh pairs in the order given; returns log goodput of default and winner."""
    pairs = []
    for block, sides in enumerate(order):
        logs = {}
        for side in sides:
            trial = host.measure(
                effect if side == "winner" else 0.0,
                windows=windows,
                role=Role.CONFIRM,
                name=side,
                block=block,
            )
            logs[side] = trial.log_goodput or 0.0
        pairs.append((logs["default"], logs["winner"]))
    return pairs
