"""A whole campaign on a simulated host, decided by tuner's own rules, and what peers do instead."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.simulated_host import SimulatedHost, confirm_pairs
from tuner.records import Role, Trial, Window
from tuner.space import Space, SpaceFacts, load_space
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.confirmation.paired_gain import Gain, judge_pairs, needs_extension, pair_order
from tuner.statistics.noise import baseline_interval
from tuner.statistics.pruning import should_prune
from tuner.statistics.ranking import Ranking, rank
from tuner.study.presets import PRESETS

DEFAULT = "default"
PLAN = PRESETS["standard"]
REPEAT_EVERY = 5
ARMS = 4
"""Configurations in the race at the most."""
LEAST_WORTH = 0.0001
"""Log points below which the race is decided."""
NEGLIGIBLE = 0.005
"""The same in the search, where another configuration may bring more."""


def space_of(names: Sequence[str]) -> Space:
    """Make a space of one choice: configurations of which no two are more alike than any others."""
    name = {
        "kind": "categorical", "choices": [DEFAULT, *names], "default": DEFAULT, "why": "Which.",
        "source": "made",
    }  # fmt: skip
    source = {"space": "made", "server": "nginx", "parameters": {"name": name}}
    return load_space([source], facts=SpaceFacts(names={}), base=Path("/"))


@dataclass(slots=True, kw_only=True)
class Campaign:
    """Search over configurations whose true log speedups are known to the host alone."""

    host: SimulatedHost
    effects: dict[str, float]
    rng: Random
    windows: int = PLAN.windows[1]
    """Windows of a trial at the most."""
    first_look: int = PLAN.windows[0]
    """Windows of a trial before it may be pruned."""
    space: Space = field(init=False)
    _ranked: tuple[int, Ranking] | None = None

    def __post_init__(self) -> None:
        self.space = space_of(list(self.effects))

    def calibrate(self) -> None:
        """Measure the default until the noise is known."""
        for _ in range(PLAN.calibration_trials):
            self.host.measure(0.0, windows=self.windows, role=Role.BASELINE)

    def ranking(self) -> Ranking:
        """Give what all trials so far say."""
        count = len(self.host.trials)
        if self._ranked is None or self._ranked[0] != count:
            self._ranked = (count, rank(self.space, self.host.trials, ()))
        return self._ranked[1]

    def baseline_if_due(self) -> None:
        """Measure the default again after as many trials as the drift allows."""
        slot_s = self.host.cost_s + self.windows * self.host.window_s
        since = 0
        for trial in reversed(self.host.trials):
            if trial.role is Role.BASELINE:
                break
            since += 1
        if since >= baseline_interval(self.ranking().noise, slot_s, self.windows):
            self.host.measure(0.0, windows=self.windows, role=Role.BASELINE)

    def incumbent(self) -> tuple[str, Speedup] | None:
        """Give the best so far by posterior mean."""
        best = self.ranking().incumbent
        return None if best is None else (str(best.config["name"]), best.posterior)

    def try_one(self, name: str, rival: tuple[str, Speedup] | None = None) -> Trial:
        """Measure one trial of a configuration, ended early when it is clearly worse than the incumbent.

        The incumbent is the one given, or else the best so far.
        """
        best = rival or self.incumbent()
        ranking = self.ranking()
        if ranking.posterior is None:
            raise RuntimeError("the calibration comes first")
        level, variance = ranking.posterior.level(self.host.clock_s)

        def prune(windows: Sequence[Window]) -> bool:
            return (
                len(windows) >= self.first_look
                and should_prune(
                    windows,
                    level=level,
                    level_variance=variance,
                    incumbent=None if best is None or best[0] == name else best[1],
                    noise=ranking.noise,
                    max_windows=self.windows,
                ).prune
            )

        return self.host.measure(self.effects[name], windows=self.windows, name=name, prune=prune)

    def search(self, names: Sequence[str]) -> None:
        """Try each configuration once, and after every five one of the best few once more."""
        for count, name in enumerate(names, 1):
            self.baseline_if_due()
            self.try_one(name)
            again = self.most_telling(NEGLIGIBLE) if count % REPEAT_EVERY == 0 else None
            if again is not None:
                self.baseline_if_due()
                self.try_one(again)
        self.host.measure(0.0, windows=self.windows, role=Role.BASELINE)

    def most_telling(self, least: float) -> str | None:
        """Give the one of the best few of which another trial tells most; None below so many log points."""
        ranking = self.ranking()
        configs = [entry.config for entry in ranking.entries[:ARMS]]
        if ranking.posterior is None or not configs:
            return None
        worth = ranking.posterior.worth_of_a_trial(configs, at_s=self.host.clock_s, windows=self.windows)
        best = int(worth.argmax())
        return str(configs[best]["name"]) if worth[best] >= least else None

    def race(self) -> str:
        """Measure the best few again where that tells most; give the one that leads."""
        ends_s = self.host.clock_s + PLAN.race_s
        while self.host.clock_s < ends_s and (name := self.most_telling(LEAST_WORTH)) is not None:
            self.host.measure(self.effects[name], windows=self.windows, role=Role.RACE, name=name)
        best = self.incumbent()
        if best is None:
            raise RuntimeError("the search comes first")
        return best[0]

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
    default = host.measure(0.0, windows=windows, role=Role.BASELINE)
    seen = {}
    for name, effect in effects.items():
        trial = host.measure(effect, windows=windows, name=name)
        seen[name] = math.log(sum(w.correct for w in trial.windows) / sum(w.correct for w in default.windows))
    best = max(seen, key=lambda name: seen[name])
    return Outcome(
        regret=100 * (max(effects.values()) - effects[best]),
        overstated=100 * (seen[best] - effects[best]),
        load_s=host.load_s,
    )
