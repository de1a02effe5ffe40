"""Parts of a drawn server's space in which something goes wrong: slow, failing, or with errors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.campaign.effects import position
from benchmarks.campaign.spaces import Setting
from tuner.ports import Config, Scalar
from tuner.records import Failure

DISASTERS = 0.03
"""Of random configurations."""
LONG = 8
"""A range of fewer numbers has no small part."""
WITHOUT_FAILURES, WHERE_SOME_FAIL = 0.70, 0.85
"""Of 100 servers 70 never fail a request, 15 do with some settings, and of 15 the default itself does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Some values of one setting, never its default."""

    setting: Setting
    low: float = 0.0
    high: float = 1.0
    choice: Scalar = ""

    def holds(self, config: Config) -> bool:
        value = config.get(self.setting.name, self.setting.default)
        if value == self.setting.default:
            return False
        if self.setting.choices:
            return value == self.choice
        where = position(self.setting, value)
        return where is not None and self.low <= where <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Configurations of which every side holds, and what they do there."""

    sides: tuple[Side, ...]
    amount: float = 0.0
    """Log goodput that is lost, or what becomes of the rate of failures."""
    failure: Failure | None = None
    """Why no trial succeeds."""

    def holds(self, config: Config) -> bool:
        return all(side.holds(config) for side in self.sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """Failed requests per request: a base, what multiplies it and what is added to it."""

    base: float = 0.0
    factors: tuple[Region, ...] = ()
    """Their amounts are logarithms."""
    additions: tuple[Region, ...] = ()

    def rate(self, config: Config) -> float:
        factor = sum(region.amount for region in self.factors if region.holds(config))
        added = sum(region.amount for region in self.additions if region.holds(config))
        return self.base * math.exp(factor) + added


def draw_side(setting: Setting, share: float, rng: Random, *, at_an_end: bool = False) -> Side:
    """Draw a part of a setting's values: so much of a range, or a choice."""
    if setting.choices:
        choices = [choice for choice in setting.choices if choice != setting.default]
        return Side(setting=setting, choice=rng.choice(choices))
    start = position(setting, setting.default)
    begin = 0.5 if start is None else start
    top = rng.random() < 1 - begin
    if at_an_end:
        low = 1 - share if top else 0.0
        return Side(setting=setting, low=low, high=low + share)
    # Beside the default, on the side with more room as a rule.
    room = 1 - begin if top else begin
    gap = rng.uniform(0.1, max(0.1, 1 - share / max(room, share))) * room
    low = begin + gap if top else max(0.0, begin - gap - share)
    return Side(setting=setting, low=low, high=low + share)


def draw_disasters(settings: Sequence[Setting], rng: Random) -> tuple[Region, ...]:
    """Draw which of the configurations go badly wrong: an end of one setting, or two combinations."""
    numbers = [each for each in settings if each.high - each.low >= LONG]
    if rng.random() < 0.5:
        sides: list[tuple[Side, ...]] = [(draw_side(rng.choice(numbers), DISASTERS, rng, at_an_end=True),)]
    else:
        share = math.sqrt(DISASTERS / 2)
        drawn = [rng.sample(numbers, 2) for _ in range(2)]
        sides = [(draw_side(one, share, rng), draw_side(other, share, rng)) for one, other in drawn]
    return tuple(_draw_disaster(each, rng) for each in sides)


def _draw_disaster(sides: tuple[Side, ...], rng: Random) -> Region:
    failures = (
        None,
        None,
        Failure(kind="rejected", reason="the server refused the value"),
        Failure(kind="not ready", reason="no answer in 5 s"),
    )
    return Region(sides=sides, amount=rng.uniform(0.5, 1.5), failure=rng.choice(failures))


def draw_failing(settings: Sequence[Setting], rng: Random) -> Failing:
    """Draw how many requests fail, and with which settings."""
    kind = rng.random()
    if kind < WITHOUT_FAILURES:
        return Failing()
    if kind < WHERE_SOME_FAIL:
        rates = [math.exp(rng.uniform(math.log(2e-4), math.log(3e-2))) for _ in range(rng.randint(1, 2))]
        return Failing(additions=tuple(_draw_region(settings, rate, rng) for rate in rates))
    shifts = [rng.uniform(-3.0, 1.5) for _ in range(rng.randint(2, 3))]
    return Failing(
        base=rng.uniform(0.001, 0.004), factors=tuple(_draw_region(settings, shift, rng) for shift in shifts)
    )


def _draw_region(settings: Sequence[Setting], amount: float, rng: Random) -> Region:
    return Region(sides=(draw_side(rng.choice(settings), rng.uniform(0.2, 0.5), rng),), amount=amount)
