"""How the log goodput of a drawn server answers to single settings."""

import math
from dataclasses import dataclass
from random import Random

from benchmarks.campaign.spaces import Setting
from tuner.ports import Config, Scalar

HARMFUL = 0.2
"""Share of the settings that act of which every move costs."""
STEEPNESS = (1.0, 3.0)
"""Recorded random configurations lose more than they gain: half of Apache's are 0.3 below the default, a
quarter 1.6, and one in ten is 0.2 above it."""
LEAST_ROOM = 0.25
"""Of the range; in a direction that has less nothing is found."""
GRID = 33
"""Values of a range that are looked at to find its best."""


def position(setting: Setting, value: Scalar) -> float | None:
    """Return where in its range a number is, 0 to 1; None for a value apart from it and for a choice."""
    if setting.choices or isinstance(value, str) or value in setting.special or setting.low >= setting.high:
        return None
    low, high, at = setting.low, setting.high, min(max(float(value), setting.low), setting.high)
    if setting.log:
        low, high, at = math.log(low), math.log(high), math.log(at)
    return (at - low) / (high - low)


def value_at(setting: Setting, where: float) -> Scalar:
    """Return the number at a place of the range, 0 to 1."""
    if setting.log:
        value = math.exp(math.log(setting.low) + where * math.log(setting.high / setting.low))
    else:
        value = setting.low + where * (setting.high - setting.low)
    return round(value) if setting.whole else value


def candidates(setting: Setting) -> list[Scalar]:
    """Return every value there is, of a long range a grid and the default."""
    if setting.choices:
        return list(setting.choices)
    numbers = [value_at(setting, step / (GRID - 1)) for step in range(GRID)]
    return [*dict.fromkeys([setting.default, *setting.special, *numbers])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The form of an answer over the range of a number."""

    form: str
    """monotone, threshold or peaked."""
    up: bool
    """On which side of the default the best is."""
    at: float
    """Of a threshold or a peak."""
    width: float

    def __call__(self, where: float) -> float:
        if self.form == "monotone":
            return where if self.up else 1 - where
        if self.form == "threshold":
            return float(where >= self.at if self.up else where <= self.at)
        return math.exp(-0.5 * ((where - self.at) / self.width) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one setting does: `size` times how far it is moved towards its best value."""

    setting: Setting
    size: float
    """Log goodput between the default and the best value, or the worst of a harmful one."""
    harmful: bool
    levels: tuple[float, ...]
    """Of each choice, or of each value apart from the range, in their order."""
    curve: Curve | None
    steepness: float
    """How much more than `size` a number loses on the wrong side of the default, at the most."""
    floor: float
    """Where the default is apart from the range: what any number is worth, as a share of the best one."""

    @property
    def worth(self) -> dict[Scalar, float]:
        """Return value → log goodput gained by it alone, over all values of note."""
        return {value: self.size * self.moved(value) for value in candidates(self.setting)}

    def moved(self, value: Scalar) -> float:
        """Return how far a value is from the default: 1 at the best, −1 at the worst of a harmful one."""
        raw = self._raw(value)
        return -max(0.0, raw) if self.harmful else raw

    def _raw(self, value: Scalar) -> float:
        setting = self.setting
        if value == setting.default:
            return 0.0
        apart = setting.choices or setting.special
        if value in apart:
            return self.levels[apart.index(value)]
        where = position(setting, value)
        if self.curve is None or where is None:
            return 1.0
        start = position(setting, setting.default)
        if start is None:
            return self.floor + (1 - self.floor) * self.curve(where)
        best = max(self.curve(step / (GRID - 1)) for step in range(GRID))
        raw = (self.curve(where) - self.curve(start)) / (best - self.curve(start))
        return raw if raw > 0 else max(-1.0, raw) * self.steepness

    def of(self, config: Config) -> float:
        """Return how far a configuration moves it; 0 where it does not exist."""
        return self.moved(config[self.setting.name]) if self.setting.name in config else 0.0


def draw_effect(setting: Setting, scale: float, rng: Random) -> Effect:
    """Draw what a setting does: half-normal in size, of a form that its values allow."""
    return Effect(
        setting=setting,
        size=abs(rng.gauss(0.0, scale)),
        harmful=rng.random() < HARMFUL,
        levels=_draw_levels(setting, rng),
        curve=None if setting.choices or setting.low >= setting.high else _draw_curve(setting, rng),
        steepness=rng.uniform(*STEEPNESS),
        floor=rng.random(),
    )


def _draw_levels(setting: Setting, rng: Random) -> tuple[float, ...]:
    """Draw a level of each choice, the best being 1; of values apart from a range something below."""
    if not setting.choices:
        return tuple(rng.uniform(-0.5, 0.8) for _ in setting.special)
    best = rng.choice([choice for choice in setting.choices if choice != setting.default])
    return tuple(1.0 if choice == best else rng.uniform(-1.0, 0.7) for choice in setting.choices)


def _draw_curve(setting: Setting, rng: Random) -> Curve:
    start = position(setting, setting.default)
    begin = rng.choice([0.0, 1.0]) if start is None else start
    up = rng.random() < 0.5
    if (1 - begin if up else begin) < LEAST_ROOM:
        up = not up
    room = 1 - begin if up else begin
    form = rng.choice(["monotone", "threshold", "peaked"])
    if setting.whole and setting.high - setting.low < 3:
        form = "monotone"
    share = rng.uniform(0.15, 0.7) if form == "threshold" else rng.uniform(0.35, 0.9)
    distance = share * room
    return Curve(
        form=form, up=up, at=begin + distance if up else begin - distance,
        width=distance * rng.uniform(0.35, 0.7),
    )  # fmt: skip
