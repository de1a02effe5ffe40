"""Checks a space when it is loaded, by trying points of it, so that none fails later."""

import math
import random
from collections.abc import Iterator
from itertools import product

from tuner.ports import Scalar
from tuner.space.parameters import CURRENT, Dimension, Parameter, identifier
from tuner.space.problems import problem
from tuner.space.rules import Scope, asked_default, breaks
from tuner.space.sources import Merged
from tuner.space.space import Space
from tuner.space.values import fault_in_range

MOST_COMBINATIONS = 128
"""Up to here every combination of extreme values and choices is tried, beyond it a selection."""
EXTREME_SHARE = 0.5
RANDOM_POINTS = 32
"""Tried beside the extremes, each coordinate anywhere within its dimension."""


def check(space: Space, merged: Merged) -> None:
    """Raise UsageError for a default out of range or against the rules, and for expressions that fail."""
    _check_default(space, merged)
    _check_constraints_at_default(space, merged)
    for point in _trial_points(space):
        space.rules.broken(space.settle_at(point, watched=True), watched=True)


def _check_default(space: Space, merged: Merged) -> None:
    def pick(parameter: Parameter, low: float, high: float, scope: Scope) -> None:
        value = asked_default(parameter, scope)
        held = merged.held.get(parameter.name)
        draft = merged.parameters[parameter.name]
        fault = fault_in_range(parameter, value, low, high)
        if fault is not None and (held or draft.fields["default"] != CURRENT):
            place = held[1] if held else draft.at("default")
            what = "the value" if held else "the default"
            raise problem(place, f"{what} {fault.wrong}", fault.remedy)

    space.rules.settle(pick, watched=True)


def _check_constraints_at_default(space: Space, merged: Merged) -> None:
    """Refuse a space whose default breaks its own rules, unless the host's active values or `set:` do."""
    scope = space.rules.scope(space.default())
    by_host = {
        identifier(draft.name)
        for draft in merged.parameters.values()
        if draft.name in merged.held or draft.fields["default"] == CURRENT
    }
    for constraint in space.constraints:
        sentence = breaks(constraint, scope)
        if sentence and not _closure(space, constraint.rule.names) & by_host:
            raise problem(
                constraint.rule.place,
                f"the default configuration breaks this rule: {sentence}",
                "Correct the rule or the defaults",
            )


def _closure(space: Space, names: frozenset[str]) -> frozenset[str]:
    """Return the names with everything that they depend on."""
    for item in reversed(space.rules.order):
        if item.identifier in names:
            names |= item.depends_on
    return names


def _trial_points(space: Space) -> Iterator[dict[str, Scalar]]:
    """Yield points at the corners of those dimensions that expressions look at."""
    used = {name for item in space.rules.order for name in item.follows}
    used |= {name for constraint in space.constraints for name in constraint.rule.names}
    relevant = {parameter.name for parameter in space.parameters if parameter.identifier in used}
    axes = [
        (dimension, dimension.choices or (dimension.low, dimension.high))
        for dimension in space.dimensions
        if dimension.parameter in relevant
    ]
    if math.prod(len(extremes) for _, extremes in axes) <= MOST_COMBINATIONS:
        names = [dimension.name for dimension, _ in axes]
        for values in product(*(extremes for _, extremes in axes)):
            yield dict(zip(names, values, strict=True))
    else:
        yield {dimension.name: extremes[0] for dimension, extremes in axes}
        yield {dimension.name: extremes[-1] for dimension, extremes in axes}
        yield from ({dimension.name: value} for dimension, extremes in axes for value in extremes)
    chance = random.Random(0)  # noqa: S311 - a fixed selection, not a secret
    for _ in range(RANDOM_POINTS):
        yield {dimension.name: _draw(dimension, extremes, chance) for dimension, extremes in axes}


def _draw(dimension: Dimension, extremes: tuple[Scalar, ...], chance: random.Random) -> Scalar:
    if dimension.kind == "categorical" or chance.random() < EXTREME_SHARE:
        return chance.choice(extremes)
    value = chance.uniform(dimension.low, dimension.high)
    return int(value) if dimension.kind == "int" else value
