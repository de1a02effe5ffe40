"""Hints for a new host from a corpus: for each parameter the value that alike studies let expect most of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tuner.corpus.corpus_study import CorpusStudy, Surroundings
from tuner.corpus.likeness import LEAST_LIKENESS, likeness
from tuner.corpus.pooling import Pooled, pool
from tuner.corpus.surrogate import Surrogate
from tuner.ports import Config, Scalar
from tuner.space import Hint, Space
from tuner.space.fitting import fit_into
from tuner.space.parameters import MOST_ODDS

LEAST_CHANCE = 0.75
"""Probability that it helps on the new host, below which nobody is told of it: odds of three to one."""
LEAST_GAIN = 0.01
"""Log points, of the mean: what ships has to bring about as much."""
MOST_VALUES = 12
"""Of each parameter that are looked at."""
HELPS = 0.005
"""Log points from which on a change is worth anything to anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """A study of a corpus that is of use on a new host."""

    study: CorpusStudy
    likeness: float
    surrogate: Surrogate


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A hint, and what it rests on."""

    parameter: str
    value: Scalar
    chance: float
    """Probability that it helps on the new host."""
    gain: Pooled
    known: tuple[Alike, ...]
    """The studies that changed this parameter, most alike first."""

    @property
    def odds(self) -> int:
        """Return so many to one that it helps."""
        return int(np.clip(round(self.chance / max(1 - self.chance, 1e-9)), 1, MOST_ODDS))

    def as_hint(self, source: str) -> Hint:
        """Return it as a space has it."""
        return Hint(odds=self.odds, value=self.value, source=source)


def find_alike(corpus: Sequence[CorpusStudy], here: Surroundings, metric: str, space: Space) -> list[Alike]:
    """Return the studies of a corpus that say something of a new host, most alike first."""
    found = [(likeness(study.surroundings, here), study) for study in corpus if study.metric == metric]
    found = [(near, study) for near, study in found if near >= LEAST_LIKENESS]
    found.sort(key=lambda each: (-each[0], each[1].id))
    return [
        Alike(study=study, likeness=near, surrogate=surrogate)
        for near, study in found
        if (surrogate := Surrogate.of(study, space)) is not None
    ]


def propose(alike: Sequence[Alike], space: Space) -> list[Proposal]:
    """Return what studies let expect on a host, most gain first; one value for a parameter at the most."""
    searched = dict.fromkeys(dimension.parameter for dimension in space.dimensions)
    found = [each for name in searched if (each := _propose_value(alike, space, name)) is not None]
    return sorted(found, key=lambda each: -each.gain.mean)


def _propose_value(alike: Sequence[Alike], space: Space, name: str) -> Proposal | None:
    known = [each for each in alike if any(name in tried.changes for tried in each.study.tried)]
    configs = _vary(space, name, _values(known, name))
    if not known or not configs:
        return None
    gains = [each.surrogate.gains([*configs.values()]) for each in known]
    means, variances = (np.stack(each) for each in zip(*gains, strict=True))
    weights = np.array([each.likeness for each in known])
    pooled = [pool(means[:, at], variances[:, at], weights) for at in range(len(configs))]
    best = max(range(len(configs)), key=lambda at: pooled[at].mean - pooled[at].error)
    chance = pooled[best].chance_above(HELPS)
    if chance < LEAST_CHANCE or pooled[best].mean < LEAST_GAIN:
        return None
    return Proposal(
        parameter=name, value=[*configs][best], chance=chance, gain=pooled[best], known=tuple(known)
    )


def _values(known: Sequence[Alike], name: str) -> list[Scalar]:
    """Return values that were tried, of many numbers some that are spread evenly over them."""
    tried = {each.changes[name] for one in known for each in one.study.tried if name in each.changes}
    texts = sorted((each for each in tried if isinstance(each, str | bool)), key=str)
    numbers = sorted(each for each in tried if not isinstance(each, str | bool))
    if len(numbers) > MOST_VALUES:
        numbers = [numbers[round(at)] for at in np.linspace(0, len(numbers) - 1, MOST_VALUES)]
    return [*texts, *numbers]


def _vary(space: Space, name: str, values: Sequence[Scalar]) -> dict[Scalar, Config]:
    """Return value → the default with it, for those that fit today's space."""
    default = space.default()
    configs = {value: fit_into(space, {name: value}) for value in values}
    return {
        config[name]: config
        for config in configs.values()
        if name in config and config[name] != default.get(name) and not space.violations(config)
    }


def with_proposals(space: Space, proposals: Sequence[Proposal], source: str) -> Space:
    """Return a space with these hints in place of its own of the same parameters."""
    told = {each.parameter: each.as_hint(source) for each in proposals}
    parameters = tuple(replace(each, hint=told.get(each.name, each.hint)) for each in space.parameters)
    free = space.unguarded
    return replace(space, parameters=parameters, unguarded=free and with_proposals(free, proposals, source))
