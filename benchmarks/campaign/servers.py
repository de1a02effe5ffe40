"""Draws servers whose truth is known: what each setting does, what goes wrong, and what experts say of it."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from benchmarks.campaign.effects import Effect, candidates, draw_effect
from benchmarks.campaign.noise import Noise, draw_noise
from benchmarks.campaign.regions import Failing, Region, draw_disasters, draw_failing
from benchmarks.campaign.spaces import FAMILIES, Family, Setting, settings_of
from tuner.ports import Config, Scalar
from tuner.records import Failure
from tuner.space.parameters import Direction

FEWEST, MOST = 3, 6
"""Settings that act."""
SCALES = (0.05, 0.3)
MOST_GAIN = 1.2
"""Log points. Where more was drawn, all is drawn again: a few servers would make the mean of all."""
CONDITIONAL = 0.3
"""How often a setting that others switch on is drawn, against one that is always there."""
ODDS = (1.0, 9.0)
RIGHT, USELESS = 0.6, 0.9
"""Of ten hints six are right, three are of settings that do nothing, and one leads away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """What an expert says of a setting: a value, or a direction in which to move."""

    name: str
    value: Scalar | None = None
    direction: Direction | None = None
    """Where no value is given."""
    odds: float
    """So many to one that it helps, as the expert says, which says nothing of whether it is true."""
    kind: str
    """right, useless or wrong."""

    @property
    def is_wrong(self) -> bool:
        return self.kind == "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One drawn server."""

    number: int
    family: Family
    effects: tuple[Effect, ...] = ()
    interactions: tuple[tuple[int, int, float], ...] = ()
    """Two effects, and what is added where both settings are moved as far as they go."""
    disasters: tuple[Region, ...] = ()
    failing: Failing = Failing()  # noqa: RUF009 - it is frozen
    noise: Noise
    aging: tuple[Effect, float] | None = None
    """An effect that also makes a new server quicker or slower, by so much."""
    hints: tuple[Hint, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Return what two servers with the same truth and noise share."""
        truth = replace(self, hints=())
        return hashlib.sha256(repr(truth).encode()).hexdigest()[:12]

    def truth(self, config: Config) -> float:
        """Return the steady log goodput of a configuration; the default has 0."""
        moved = [effect.of(config) for effect in self.effects]
        total = sum(effect.size * each for effect, each in zip(self.effects, moved, strict=True))
        total += sum(size * abs(moved[one] * moved[other]) for one, other, size in self.interactions)
        return total - sum(region.amount for region in self.disasters if region.holds(config))

    def fault(self, config: Config) -> Failure | None:
        """Return why a configuration does not start; None where it does."""
        failures = [region.failure for region in self.disasters if region.holds(config)]
        return next((failure for failure in failures if failure is not None), None)

    def age_depth(self, config: Config) -> float:
        """Return the log goodput of a new server above that of an old one."""
        own = self.aging[1] * self.aging[0].of(config) if self.aging else 0.0
        return self.noise.age_depth + own

    def best(self) -> float:
        """Return about the most that there is, with every other setting at its default."""
        config = {effect.setting.name: effect.setting.default for effect in self.effects}
        for _ in range(3):
            for effect in self.effects:
                name = effect.setting.name
                config[name] = max(
                    candidates(effect.setting), key=lambda value: self._score(config, name, value)
                )
        return self.truth(config)

    def _score(self, config: Config, name: str, value: Scalar) -> float:
        tried = {**config, name: value}
        return self.truth(tried) - 10 * (self.fault(tried) is not None)


def draw_server(number: int) -> Server:
    """Draw a server by its number, always the same."""
    drawn = (_draw_server(number, f"effects, {attempt}") for attempt in count())
    return next(server for server in drawn if server.best() <= MOST_GAIN)


def _draw_server(number: int, attempt: str) -> Server:
    family = FAMILIES[number % len(FAMILIES)]
    settings = [each for each in settings_of(family.space) if each.acts_under(family)]
    rng = _random(number, attempt)
    scale = rng.uniform(*SCALES)
    effects = tuple(draw_effect(each, scale, rng) for each in _draw_active(settings, rng))
    return Server(
        number=number,
        family=family,
        effects=effects,
        interactions=_draw_interactions(len(effects), scale, rng),
        disasters=draw_disasters(settings, _random(number, "disasters")),
        failing=draw_failing(settings, _random(number, "failures")),
        noise=draw_noise(_random(number, "noise")),
        aging=(rng.choice(effects), rng.gauss(0.0, 0.03)) if rng.random() < 0.3 else None,
        hints=_draw_hints(effects, settings, _random(number, "hints")),
    )


def draw_idle_server(number: int) -> Server:
    """Draw a server whose settings do nothing at all, with the noise of the one of that number."""
    family = FAMILIES[number % len(FAMILIES)]
    return Server(number=number, family=family, noise=draw_noise(_random(number, "noise")))


def _random(number: int, part: str) -> Random:
    return Random(f"server {number}: {part}")  # noqa: S311 - no secret


def _draw_active(settings: Sequence[Setting], rng: Random) -> list[Setting]:
    """Draw the settings that act, those that others switch on less often."""
    wanted, active = rng.randint(FEWEST, MOST), list[Setting]()
    while len(active) < wanted:
        drawn = rng.choice(settings)
        if drawn not in active and (not drawn.is_conditional or rng.random() < CONDITIONAL):
            active.append(drawn)
    return active


def _draw_interactions(effects: int, scale: float, rng: Random) -> tuple[tuple[int, int, float], ...]:
    pairs = [(one, other) for one in range(effects) for other in range(one)]
    chosen = rng.sample(pairs, rng.randint(2, 3))
    return tuple((one, other, rng.gauss(0.0, scale / 2)) for one, other in chosen)


# What experts say


def _draw_hints(effects: Sequence[Effect], settings: Sequence[Setting], rng: Random) -> tuple[Hint, ...]:
    """Draw about as many hints as there are settings worth moving; each setting has one at most."""
    good = [effect for effect in effects if not effect.harmful]
    idle = [each for each in settings if all(each != effect.setting for effect in effects)]
    rng.shuffle(good)
    rng.shuffle(idle)
    hints = []
    for _ in range(max(2, len(good))):
        kind = rng.random()
        if kind < RIGHT and good:
            hints.append(_draw_right(good.pop(), rng))
        elif kind < USELESS or not good:
            hints.append(_draw_useless(idle.pop(), rng))
        else:
            hints.append(_draw_wrong(good.pop(), rng))
    return tuple(hints)


def _draw_right(effect: Effect, rng: Random) -> Hint:
    """Point at what is best; where the answer is monotone or a threshold, only to its side."""
    odds, worth = _draw_odds(rng), effect.worth
    best = max(worth, key=lambda value: worth[value])
    if _has_direction(effect.setting) and effect.curve is not None and effect.curve.form != "peaked":
        return Hint(
            name=effect.setting.name, direction=_towards(effect.setting, best), odds=odds, kind="right"
        )
    return Hint(name=effect.setting.name, value=best, odds=odds, kind="right")


def _draw_wrong(effect: Effect, rng: Random) -> Hint:
    """Point away: to the other side, or to the worst value other than the default."""
    right, name, worth = _draw_right(effect, rng), effect.setting.name, effect.worth
    if right.direction:
        other: Direction = "down" if right.direction == "up" else "up"
        return Hint(name=name, direction=other, odds=right.odds, kind="wrong")
    others = [value for value in worth if value != effect.setting.default]
    return Hint(name=name, value=min(others, key=lambda value: worth[value]), odds=right.odds, kind="wrong")


def _draw_useless(setting: Setting, rng: Random) -> Hint:
    """Say something of a setting that does nothing."""
    odds = _draw_odds(rng)
    if _has_direction(setting) and rng.random() < 0.5:
        return Hint(name=setting.name, direction=rng.choice(["up", "down"]), odds=odds, kind="useless")
    others = [value for value in candidates(setting) if value != setting.default]
    return Hint(name=setting.name, value=rng.choice(others), odds=odds, kind="useless")


def _draw_odds(rng: Random) -> float:
    """Draw how sure an expert is: from one to one to nine to one, on a logarithmic scale."""
    low, high = ODDS
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _has_direction(setting: Setting) -> bool:
    """Return whether there is more and less: its default is a number."""
    return not setting.choices and setting.default not in setting.special


def _towards(setting: Setting, value: Scalar) -> Direction:
    return "up" if float(value) > float(setting.default) else "down"
