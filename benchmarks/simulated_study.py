"""A whole campaign on a simulated host, decided by tuner's own rules, and what peers do instead."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from benchmarks.simulated_host import SimulatedHost, confirm_pairs
from tuner.records import Role, Start, Window
from tuner.statistics.control_level import ControlLevel, Speedup, combine, speedups
from tuner.statistics.elimination import race_order, survivors
from tuner.statistics.noise import Noise, control_interval, estimate_noise
from tuner.statistics.paired_gain import Gain, judge_pairs, needs_extension, pair_order
from tuner.statistics.promotion import promising, shrunk, top
from tuner.statistics.pruning import should_prune
from tuner.study.presets import PRESETS

DEFAULT = "default"
PLAN = PRESETS["standard"]
PROMOTE_EVERY = 5


@dataclass(slots=True, kw_only=True)
class Campaign:
    """Search over configurations whose true log speedups are known to the host alone."""

    host: SimulatedHost
    effects: dict[str, float]
    rng: Random
    windows: int = PLAN.windows[1]
    """Windows of a start at the most."""
    first_look: int = PLAN.windows[0]
    """Windows of a start before it may be pruned."""
    noise: Noise = Noise.PRIOR
    found: dict[str, Speedup] = field(default_factory=dict)
    """Combined speedup of each configuration."""

    def calibrate(self) -> None:
        """Measure the default until the noise is known."""
        for _ in range(PLAN.calibration_starts):
            self.host.start(0.0, windows=self.windows, role=Role.CONTROL)
        self.learn()

    def learn(self) -> None:
        """Recompute noise and speedups from all starts."""
        self.noise = estimate_noise(self.host.starts)
        by_start = speedups(self.host.starts, self.noise)
        groups: dict[str, list[Speedup]] = {}
        for start in self.host.starts:
            if start.role is not Role.CONTROL and start.number in by_start:
                groups.setdefault(start.arm, []).append(by_start[start.number])
        self.found = {name: combine(group, self.noise) for name, group in groups.items()}

    def control_if_due(self) -> None:
        """Measure the default again after as many starts as the drift allows."""
        slot_s = self.host.cost_s + self.windows * self.host.window_s
        since = 0
        for start in reversed(self.host.starts):
            if start.role is Role.CONTROL:
                break
            since += 1
        if since >= control_interval(self.noise, slot_s, self.windows):
            self.host.start(0.0, windows=self.windows, role=Role.CONTROL)
            self.learn()

    def incumbent(self) -> tuple[str, Speedup] | None:
        """Give the best so far by posterior mean."""
        posterior = shrunk(self.found)
        best = top(self.found, 1)
        return (best[0], posterior[best[0]]) if best else None

    def try_one(self, name: str) -> Start:
        """Measure one start of a configuration, ended early when it is clearly worse than the incumbent."""
        best = self.incumbent()
        rival = None if best is None or best[0] == name else best[1]
        controls = [start for start in self.host.starts if start.role is Role.CONTROL]
        level, variance = ControlLevel.fit(controls, self.noise).at(self.host.clock_s)

        def prune(windows: Sequence[Window]) -> bool:
            return (
                len(windows) >= self.first_look
                and should_prune(
                    windows,
                    level=level,
                    level_variance=variance,
                    incumbent=rival,
                    noise=self.noise,
                    max_windows=self.windows,
                ).prune
            )

        return self.host.start(self.effects[name], windows=self.windows, name=name, prune=prune)

    def search(self, names: Sequence[str]) -> None:
        """Try each configuration once, and after every five the one that may be best once more."""
        for count, name in enumerate(names, 1):
            self.control_if_due()
            self.try_one(name)
            if count % PROMOTE_EVERY == 0:
                self.learn()
                starts_of = {
                    each: sum(start.arm == each for start in self.host.starts) for each in self.found
                }
                again = promising(self.found, starts_of, seed=self.rng.getrandbits(32))
                if again is not None:
                    self.control_if_due()
                    self.try_one(again)
        self.host.start(0.0, windows=self.windows, role=Role.CONTROL)
        self.learn()

    def race(self) -> str:
        """Race the best few and the default in blocks; give the one that leads."""
        arms = (DEFAULT, *top(self.found, PLAN.race_arms))
        alive: tuple[str, ...] = arms
        blocks: list[dict[str, float]] = []
        for block, order in enumerate(race_order(arms, PLAN.race_blocks, self.rng)):
            logs = {}
            for name in order:
                if name in alive:
                    # The default's starts in a race are control starts as good as any.
                    role = Role.CONTROL if name == DEFAULT else Role.RACE
                    start = self.host.start(
                        self.effects.get(name, 0.0), windows=self.windows, role=role, name=name, block=block
                    )
                    logs[name] = start.log_goodput or 0.0
            blocks.append(logs)
            alive = survivors(blocks, default=DEFAULT, first_test=PLAN.race_first_test)
        self.learn()
        posterior = shrunk(self.found)
        return max((name for name in alive if name != DEFAULT), key=lambda name: posterior[name].log_ratio)

    def confirm(self, winner: str) -> Gain:
        """Measure fresh pairs, and as many again when they do not decide."""
        effect = self.effects[winner]
        pairs = confirm_pairs(self.host, effect, pair_order(PLAN.pairs, self.rng), windows=self.windows)
        gain = judge_pairs(pairs, looks=2)
        if needs_extension(gain):
            pairs += confirm_pairs(self.host, effect, pair_order(PLAN.pairs, self.rng), windows=self.windows)
            gain = judge_pairs(pairs, looks=2)
        return gain


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a way of tuning chose and said, in points of log goodput times 100."""

    regret: float
    """True speedup of the best configuration less that of the chosen one."""
    overstated: float
    """Reported gain less the chosen one's true gain."""
    load_s: float


def draw_effects(rng: Random) -> dict[str, float]:
    """Draw the true log speedups of 60 configurations: a third anywhere, the rest near the optimum."""
    effects = [rng.gauss(-0.10, 0.10) for _ in range(20)] + [rng.gauss(0.08, 0.03) for _ in range(40)]
    rng.shuffle(effects)
    return {f"#{number}": effect for number, effect in enumerate(effects)}


def tune(host: SimulatedHost, effects: dict[str, float]) -> Outcome:
    """Run the whole campaign: calibrate, search, race, confirm."""
    campaign = Campaign(host=host, effects=effects, rng=host.rng)
    campaign.calibrate()
    campaign.search(list(effects))
    winner = campaign.race()
    gain = campaign.confirm(winner)
    return Outcome(
        regret=100 * (max(effects.values()) - effects[winner]),
        overstated=100 * (math.log(gain.ratio) - effects[winner]),
        load_s=host.load_s,
    )


def take_best_observed(host: SimulatedHost, effects: dict[str, float], *, load_s: float) -> Outcome:
    """Do what peers do: measure the default and each configuration once, and report the best number.

    The same load-seconds go into longer runs (rounded up, in their favour).
    """
    windows = math.ceil((load_s / (len(effects) + 1) - host.cost_s) / host.window_s)
    default = host.start(0.0, windows=windows, role=Role.CONTROL)
    seen = {}
    for name, effect in effects.items():
        start = host.start(effect, windows=windows, name=name)
        seen[name] = math.log(sum(w.correct for w in start.windows) / sum(w.correct for w in default.windows))
    best = max(seen, key=lambda name: seen[name])
    return Outcome(
        regret=100 * (max(effects.values()) - effects[best]),
        overstated=100 * (seen[best] - effects[best]),
        load_s=host.load_s,
    )
