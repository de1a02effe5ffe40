"""Checks a space when it is loaded, by trying points of it, so that none fails later."""

import random
from collections.abc import Iterator, Mapping
from itertools import product

from tuner.ports import Scalar
from tuner.space.dimensions import value_at
from tuner.space.parameters import CURRENT, Dimension, Parameter, identifier
from tuner.space.problems import problem
from tuner.space.rules import Scope, asked_default, breaks, default_value
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
        _settle_watched(space, point)


def _check_default(space: Space, merged: Merged) -> None:
    def pick(parameter: Parameter, low: float, high: float, scope: Scope) -> Scalar:
        value = asked_default(parameter, scope)
        held = merged.held.get(parameter.name)
        draft = merged.parameters[parameter.name]
        fault = fault_in_range(parameter, value, low, high)
        if fault is not None and (held or draft.fields["default"] != CURRENT):
            place = held[1] if held else draft.at("default")
            what = "the value" if held else "the default"
            raise problem(place, f"{what} {fault.wrong}", fault.remedy)
        return default_value(parameter, low, high, scope)

    space.rules.settle(pick, watched=True)


def _check_constraints_at_default(space: Space, merged: Merged) -> None:
    """Refuse a space whose default breaks its own rules, unless the host's values in force or `set:` do."""
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
                f"the default configuration breaks it: {sentence}",
                "Correct the rule or the defaults",
            )


def _closure(space: Space, names: frozenset[str]) -> frozenset[str]:
    needs = {item.identifier: item.depends_on for item in space.rules.order}
    found = set(names)
    waiting = list(names)
    while waiting:
        for name in needs.get(waiting.pop(), frozenset()) - found:
            found.add(name)
            waiting.append(name)
    return frozenset(found)


def _settle_watched(space: Space, point: Mapping[str, Scalar]) -> None:
    dimensions = {dimension.name: dimension for dimension in space.dimensions}

    def pick(parameter: Parameter, low: float, high: float, scope: Scope) -> Scalar:
        value = None if parameter.pinned else value_at(parameter, dimensions, point, low, high)
        return default_value(parameter, low, high, scope) if value is None else value

    config = space.rules.settle(pick, watched=True)
    space.rules.broken(config, watched=True)


def _trial_points(space: Space) -> Iterator[dict[str, Scalar]]:
    """Yield points at the corners of those dimensions that expressions look at."""
    used = {name for item in space.rules.order for name in item.depends_on}
    used |= {name for constraint in space.constraints for name in constraint.rule.names}
    relevant = {parameter.name for parameter in space.parameters if parameter.identifier in used}
    axes = [
        (dimension, _extremes(dimension)) for dimension in space.dimensions if dimension.parameter in relevant
    ]
    combinations = 1
    for _, extremes in axes:
        combinations = min(combinations * len(extremes), MOST_COMBINATIONS + 1)
    if combinations <= MOST_COMBINATIONS:
        names = [dimension.name for dimension, _ in axes]
        for values in product(*(extremes for _, extremes in axes)):
            yield dict(zip(names, values, strict=True))
    else:
        yield {dimension.name: extremes[0] for dimension, extremes in axes}
        yield {dimension.name: extremes[-1] for dimension, extremes in axes}
        for dimension, extremes in axes:
            for value in extremes:
                yield {dimension.name: value}
    chance = random.Random(0)  # noqa: S311 - a fixed selection, not a secret
    for _ in range(RANDOM_POINTS):
        yield {dimension.name: _draw(dimension, extremes, chance) for dimension, extremes in axes}


def _draw(dimension: Dimension, extremes: tuple[Scalar, ...], chance: random.Random) -> Scalar:
    if dimension.kind == "categorical" or chance.random() < EXTREME_SHARE:
        return chance.choice(extremes)
    value = chance.uniform(dimension.low, dimension.high)
    return int(value) if dimension.kind == "int" else value


def _extremes(dimension: Dimension) -> tuple[Scalar, ...]:
    if dimension.kind == "categorical":
        return dimension.choices
    return (dimension.low, dimension.high)
