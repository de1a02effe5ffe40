"""Hints for a new host from a corpus: for each parameter the value that alike studies let expect most of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.corpus.corpus_study import CorpusStudy, Surroundings
from tuner.corpus.likeness import LEAST_LIKENESS, likeness
from tuner.corpus.pooling import Pooled, pool
from tuner.corpus.surrogate import Surrogate, count_for, observe_study
from tuner.optimize.optimizer import Observation
from tuner.ports import Config, Scalar
from tuner.space import Space
from tuner.space.fitting import fit_into

LEAST_CHANCE = 2 / 3
"""Probability that it helps on the new host, below which nobody is told of it: odds of two to one."""
LEAST_GAIN = 0.01
"""Log points, of the mean: what ships has to bring about as much."""
MOST_ALIKE = 50
"""Studies of a corpus that are asked, the most alike ones; more take seconds and change little."""
MOST_ODDS = 3
"""Of what is proposed. The first points follow every hint, whatever its odds, and find what a corpus is right
about; higher odds only held the search where a wrong corpus had led it (benchmarks/transfer.md)."""
MOST_HINTS = 8
MOST_OBSERVATIONS = 2000
"""Of all studies together; a model of more takes minutes, and strangers wrote them."""
MOST_VALUES = 12
"""Of each parameter that are looked at."""
HELPS = 0.005
"""Log points from which on a change is worth anything to anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """A study of a corpus that is of use on a new host."""

    study: CorpusStudy
    likeness: float
    seen: tuple[Observation, ...]
    """What it tried, in today's space."""

    def tells_of(self, name: str) -> bool:
        """Return whether it changed a parameter."""
        return any(name in tried.changes for tried in self.study.tried)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One parameter of a configuration at another value."""

    parameter: str
    value: Scalar
    config: Config
    """With it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HintProposal:
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


def find_alike(corpus: Sequence[CorpusStudy], here: Surroundings, metric: str, space: Space) -> list[Alike]:
    """Return the studies of a corpus that say something of a new host, most alike first."""
    distinct = {study.id: study for study in corpus if study.metric == metric}.values()
    found = [(likeness(study.surroundings, here), study) for study in distinct]
    found = [(near, study) for near, study in found if near >= LEAST_LIKENESS]
    found.sort(key=lambda each: (-each[0], each[1].id))
    del found[MOST_ALIKE:]
    most = MOST_OBSERVATIONS // max(1, len(found))
    observed = [(near, study, _keep_surest(observe_study(study, space), most)) for near, study in found]
    return [
        Alike(study=study, likeness=near, seen=seen)
        for near, study, seen in observed
        if len(seen) > 1 and space.dimensions
    ]


def _keep_surest(seen: Sequence[Observation], most: int) -> tuple[Observation, ...]:
    """Return the surest observations of a study, the default's among them, in their order."""
    surest = sorted(range(len(seen)), key=lambda at: seen[at].variance)[:most]
    return tuple(seen[at] for at in sorted(surest))


def propose(alike: Sequence[Alike], space: Space) -> list[HintProposal]:
    """Return what studies let expect on a host, the surest first; each on top of those before it.

    Which changes are best is asked of all studies as one, change after change: each study has tried few
    values, and together they show the curves and what goes well with what. How sure each change is, is asked
    of every study by itself: of many values one looks best by luck alone, and they may disagree.
    """
    if not alike:
        return []
    together = Surrogate.of(space, [seen for each in alike for seen in count_for(each.seen, each.likeness)])
    alone = {each.study.id: Surrogate.of(space, each.seen) for each in alike}
    names = [*dict.fromkeys(dimension.parameter for dimension in space.dimensions)]
    values = {name: _values([each for each in alike if each.tells_of(name)], name) for name in names}
    found: list[HintProposal] = []
    config: Config = space.default()
    while len(found) < MOST_HINTS:
        options = [each for name in names for each in _vary(space, config, name, values[name])]
        change = _choose(together, config, options)
        if change is None:
            break
        names.remove(change.parameter)
        known = tuple(each for each in alike if each.tells_of(change.parameter))
        gain = _ask_each(known, alone, change.config, over=config)
        proposal = HintProposal(
            parameter=change.parameter, value=change.value, chance=gain.chance_above(HELPS), gain=gain,
            known=known,
        )  # fmt: skip
        if proposal.chance >= LEAST_CHANCE:
            found.append(proposal)
            config = change.config
    return found


def _choose(together: Surrogate, config: Config, options: Sequence[Change]) -> Change | None:
    """Return the change of a configuration that is most surely worth something; None where none is.

    The parameter is the one with the best value for sure; of its values the one that promises most, as many
    others were tried less often.
    """
    if not options:
        return None
    means, variances = together.gains([each.config for each in options], config)
    cautious = np.where(means >= LEAST_GAIN, means - np.sqrt(variances), -np.inf)
    first = int(np.argmax(cautious))
    if means[first] < LEAST_GAIN:
        return None
    alike = [at for at, each in enumerate(options) if each.parameter == options[first].parameter]
    return options[max(alike, key=lambda at: means[at])]


def _ask_each(
    known: Sequence[Alike], alone: Mapping[str, Surrogate], config: Config, *, over: Config
) -> Pooled:
    """Return what a configuration gains over another one by each study, pooled."""
    gains = [alone[each.study.id].gains([config], over) for each in known]
    return pool(
        np.array([mean[0] for mean, _ in gains]),
        np.array([variance[0] for _, variance in gains]),
        np.array([each.likeness for each in known]),
    )


def _values(known: Sequence[Alike], name: str) -> list[Scalar]:
    """Return values that were tried, of many numbers some that are spread evenly over them."""
    tried = {each.changes[name] for one in known for each in one.study.tried if name in each.changes}
    texts = sorted((each for each in tried if isinstance(each, str | bool)), key=str)
    numbers = sorted(each for each in tried if not isinstance(each, str | bool))
    if len(numbers) > MOST_VALUES:
        numbers = [numbers[round(at)] for at in np.linspace(0, len(numbers) - 1, MOST_VALUES)]
    return [*texts, *numbers]


def _vary(space: Space, config: Config, name: str, values: Sequence[Scalar]) -> list[Change]:
    """Return the changes of one parameter of a configuration that fit the rest of it."""
    changes = space.chosen(config)
    varied = (fit_into(space, {**changes, name: value}) for value in values)
    fitting = {each[name]: each for each in varied if name in each}
    return [
        Change(parameter=name, value=value, config=each)
        for value, each in fitting.items()
        if value != config.get(name) and not space.violations(each)
    ]
