"""Starting points: the default with some settings changed.

A point drawn uniformly changes everything at once, and with twenty settings one of them is nearly always a
bad one. Most of a tuned configuration's gain comes from a few changes (Fawcett & Hoos 2016,
doi 10.1007/s10732-014-9275-9: over 95 % from one to four parameters), so points near the default are
better than uniform ones before anything is known.
"""

import math
from collections.abc import Sequence
from random import Random

from tuner.optimize.optimizer import Point
from tuner.ports import Scalar
from tuner.space import Dimension

MOST_DRAWS = 100
"""A switch is drawn as it was every other time; after so many draws nothing can be changed at all."""


def draw_sparse(
    dimensions: Sequence[Dimension], default: Point, *, rng: Random, share: float = 0.4
) -> dict[str, Scalar]:
    """Change each parameter of the default with probability `share`, at least one of them."""
    parameters = sorted({dimension.parameter for dimension in dimensions})
    point = {dimension.name: default[dimension.name] for dimension in dimensions}
    unchanged = dict(point)
    for _ in range(MOST_DRAWS):
        changed = {name for name in parameters if rng.random() < share} or {rng.choice(parameters)}
        point |= {each.name: draw(each, rng) for each in dimensions if each.parameter in changed}
        if point != unchanged:
            break
    return point


def draw(dimension: Dimension, rng: Random) -> Scalar:
    """Draw one value uniformly (log-uniformly where the dimension is logarithmic)."""
    if dimension.kind == "categorical":
        return rng.choice(dimension.choices)
    low, high = dimension.low, dimension.high
    value = rng.uniform(math.log(low), math.log(high)) if dimension.log else rng.uniform(low, high)
    value = math.exp(value) if dimension.log else value
    if dimension.step:
        value = low + round((value - low) / dimension.step) * dimension.step
    value = min(max(value, low), high)
    return round(value) if dimension.kind == "int" else value
