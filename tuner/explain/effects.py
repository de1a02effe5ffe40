"""The effect of each setting of a configuration, and what pairs of them give beyond that."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from tuner.explain.beliefs import TOLD, Anchor, Array, Beliefs, agree, read_effect
from tuner.explain.coalitions import Coalition, weigh_coalitions
from tuner.explain.explanation import Effect, Finding, Interaction, Setting
from tuner.explain.findings import DOUBT, NEGLIGIBLE, find, is_beyond
from tuner.explain.variation import is_allowed, is_same, keep_settings
from tuner.ports import Config, Scalar
from tuner.records import Trial
from tuner.space import Space
from tuner.statistics.confirmation.paired_gain import Gain
from tuner.statistics.mechanism import Mechanism, attribute_mechanisms
from tuner.statistics.posterior import mix_gains

LEAST_APART = 3
"""Trials with some of the settings and not all of them, below which nothing is said of any of them: what was
always tried together cannot be told apart, whatever a model believes beforehand."""
LEAST_INTERACTION = 0.01
"""Log points below which two settings are not worth naming together."""
MOST_MECHANISMS = 3


def estimate_effects(
    beliefs: Beliefs, trials: Sequence[Trial], config: Config, confirmed: Gain | None = None
) -> tuple[Effect, tuple[Setting, ...], tuple[Interaction, ...]]:
    """Return the gain of a configuration, its settings by effect, and the interactions that can be told.

    Args:
        beliefs: of the study.
        trials: all of the study.
        config: whose changes are weighed.
        confirmed: what its pairs gave, to which the effects then add up; None before the confirmation.
    """
    parts = _Parts(beliefs.space, config)
    names = parts.names
    coalitions, shares = weigh_coalitions(names, parts.is_allowed)
    pairs = [pair for pair in combinations(names, 2) if parts.can_be_told(pair)]
    asked = _Contrasts(coalitions, parts.every)
    effects = [asked.weighted(dict(zip(coalitions, row, strict=True))) for row in shares]
    reverted = [
        asked.signed(plus=[parts.every], minus=[left]) if parts.is_allowed(left) else effects[row]
        for row, left in enumerate(parts.every - {name} for name in names)
    ]
    together = [asked.signed(*parts.corners(pair)) for pair in pairs]
    gain = asked.signed(plus=[parts.every], minus=[frozenset()])
    draws = beliefs.draw(
        [parts.config(part) for part in asked.parts], asked.matrix([gain, *effects, *reverted, *together])
    )
    anchor = (
        Anchor.estimated(mix_gains(beliefs.posteriors, config))
        if confirmed is None
        else Anchor.confirmed(confirmed)
    )
    if names:
        draws = agree(draws, anchor, seed=beliefs.seed)
    of_effect, of_reverted, of_pairs = np.split(draws[:, 1:], [len(names), 2 * len(names)], axis=1)
    is_told = _count_apart(beliefs.space, trials, config) >= LEAST_APART
    settings = [
        _describe_setting(beliefs, name, of_effect[:, row], of_reverted[:, row], config, is_told=is_told)
        for row, name in enumerate(names)
    ]
    return (
        anchor.effect,
        tuple(sorted(settings, key=lambda setting: -setting.effect.ratio)),
        _describe_interactions(pairs, of_pairs) if is_told else (),
    )


def _count_apart(space: Space, trials: Sequence[Trial], config: Config) -> int:
    """Count the trials with some of a configuration's changes and not all; of a single one, those with it."""
    changes, default = space.chosen(config), space.default()
    told = [trial.config for trial in trials if trial.counts and trial.role in TOLD]
    counts = [sum(_has(each, name, value, default) for name, value in changes.items()) for each in told]
    return sum(1 <= count < max(len(changes), 2) for count in counts)


class _Parts:
    """A configuration with some of its settings alone."""

    def __init__(self, space: Space, config: Config) -> None:
        self._space = space
        self._changes = space.chosen(config)
        self._known: dict[Coalition, Config] = {}
        self.names = sorted(self._changes)
        self.every = frozenset(self.names)

    def config(self, part: Coalition) -> Config:
        if part not in self._known:
            self._known[part] = keep_settings(self._space, self._changes, part)
        return self._known[part]

    def is_allowed(self, part: Coalition) -> bool:
        return is_allowed(self._space, self.config(part))

    def corners(self, pair: tuple[str, str]) -> tuple[list[Coalition], list[Coalition]]:
        """Return what their interaction adds, and what it takes away."""
        one, other = pair
        return [self.every, self.every - {one, other}], [self.every - {one}, self.every - {other}]

    def can_be_told(self, pair: tuple[str, str]) -> bool:
        """Return whether a pair, and each of it alone, can be reverted."""
        return all(self.is_allowed(part) for side in self.corners(pair) for part in side)


Signs = dict[Coalition, float]


class _Contrasts:
    """Contrasts between parts of a configuration: rows of a matrix over all parts that any of them asks."""

    def __init__(self, coalitions: Sequence[Coalition], every: Coalition) -> None:
        self.parts = [*dict.fromkeys([*coalitions, every])]

    def weighted(self, signs: Signs) -> Signs:
        self.parts += [part for part in signs if part not in self.parts]
        return signs

    def signed(self, plus: Sequence[Coalition], minus: Sequence[Coalition]) -> Signs:
        return self.weighted(dict.fromkeys(plus, 1.0) | dict.fromkeys(minus, -1.0))

    def matrix(self, rows: Sequence[Signs]) -> Array:
        """Return shape (rows, parts)."""
        return np.array([[signs.get(part, 0.0) for part in self.parts] for signs in rows])


def _describe_setting(
    beliefs: Beliefs, name: str, effect: Array, reverted: Array, config: Config, *, is_told: bool
) -> Setting:
    finding, bound, _ = find(reverted[:, None])
    if is_beyond(np.column_stack([effect, reverted]), questions=2).any():
        finding, bound = Finding.HELPS, None
    elif finding is Finding.HELPS:
        finding = Finding.UNKNOWN
    if not is_told:
        finding, bound = Finding.UNKNOWN, None
    if name in beliefs.space.inert_but_tuned:
        finding, bound = Finding.CANNOT_ACT, None
    return Setting(
        parameter=name,
        default=beliefs.space.changes(config)[name][0],
        value=config[name],
        effect=read_effect(effect),
        if_reverted=read_effect(reverted),
        chance=float((effect > NEGLIGIBLE).mean()),
        finding=finding,
        bound=bound,
    )


def _describe_interactions(pairs: Sequence[tuple[str, str]], draws: Array) -> tuple[Interaction, ...]:
    found = []
    for pair, drawn in zip(pairs, draws.T, strict=True):
        is_sure = max((drawn > 0).mean(), (drawn < 0).mean()) >= 1 - DOUBT / len(pairs)
        if is_sure and abs(drawn.mean()) >= LEAST_INTERACTION:
            found.append(Interaction(parameters=pair, effect=read_effect(drawn)))
    return tuple(sorted(found, key=lambda each: -abs(each.effect.log)))


def add_mechanisms(
    settings: Sequence[Setting], trials: Sequence[Trial], default: Config
) -> tuple[Setting, ...]:
    """Return the settings with the counters that moved with each, by all trials under the study load."""
    counted = [trial for trial in trials if trial.counts and trial.role.is_under_study_load]
    has_setting = {
        each.parameter: [_has(trial.config, each.parameter, each.value, default) for trial in counted]
        for each in settings
    }
    moved: Mapping[str, tuple[Mechanism, ...]] = (
        attribute_mechanisms(counted, has_setting) if settings else {}
    )
    return tuple(replace(each, mechanisms=moved[each.parameter][:MOST_MECHANISMS]) for each in settings)


def _has(config: Config, name: str, wanted: Scalar, default: Config) -> bool:
    """Return whether a configuration has a change: its choice, or a number that is nearer to its."""
    value = config.get(name, default.get(name))
    numbers = (value, wanted, default.get(name))
    if any(isinstance(each, bool | str) or each is None for each in numbers):
        return is_same(value, wanted)
    at, end, begin = (float(each) for each in numbers)  # type: ignore[arg-type]
    return abs(at - end) < abs(at - begin)
