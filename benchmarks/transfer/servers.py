"""Servers that are alike: the effects of one drawn server, of other sizes, some gone and some new."""

import math
from dataclasses import replace
from random import Random

from benchmarks.campaign.effects import Effect, draw_effect
from benchmarks.campaign.noise import draw_noise
from benchmarks.campaign.regions import draw_disasters, draw_failing
from benchmarks.campaign.servers import Server
from benchmarks.campaign.spaces import settings_of

SPREAD = 0.35
"""SD of the logarithm of how much larger or smaller an effect is on another host."""
SHIFT = 0.1
"""SD of where in its range a threshold or a peak lies, as a share of its distance from the default."""
GONE, STRANGE, SAME_DISASTERS = 0.15, 0.5, 0.5
"""How often an effect is missing, one of another setting comes with it, disasters are those of the target."""
FIRST_NUMBER = 100_000
"""Beyond every drawn server's number."""


def draw_alike(target: Server, number: int) -> Server:
    """Draw one of the servers that are alike to another, by its number, always the same."""
    rng = Random(f"server {target.number}: alike {number}")  # noqa: S311 - no secret
    settings = [each for each in settings_of(target.family.space) if each.acts_under(target.family)]
    effects = tuple(_vary(effect, rng) for effect in target.effects)
    idle = [each for each in settings if all(each != effect.setting for effect in effects)]
    if rng.random() < STRANGE:
        sizes = [effect.size for effect in target.effects]
        effects += (draw_effect(rng.choice(idle), sum(sizes) / len(sizes), rng),)
    is_same = rng.random() < SAME_DISASTERS
    return replace(
        target,
        number=FIRST_NUMBER + 1000 * target.number + number,
        effects=effects,
        interactions=tuple(
            (one, other, size * math.exp(rng.gauss(0.0, SPREAD))) for one, other, size in target.interactions
        ),
        disasters=target.disasters if is_same else draw_disasters(settings, rng),
        failing=draw_failing(settings, rng),
        noise=draw_noise(rng),
        aging=None,
    )


def _vary(effect: Effect, rng: Random) -> Effect:
    """Draw what a setting of one server does on another."""
    curve, scale, share = effect.curve, math.exp(rng.gauss(0.0, SPREAD)), rng.gauss(1.0, SHIFT)
    size = 0.0 if rng.random() < GONE else effect.size * scale
    if curve is not None and curve.form != "monotone":
        at = min(max(0.5 + share * (curve.at - 0.5), 0.02), 0.98)
        curve = replace(curve, at=at)
    return replace(effect, size=size, curve=curve)
