"""A history as trials of an Optuna study, for samplers to learn from."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from tuner.optimize.history import VARIANCE
from tuner.optimize.optimizer import Observation
from tuner.space import Dimension

REFUSED = 7919
"""Added to a seed after a suggestion that could not be used: a prime, so that seeds do not meet."""


class _Shared:
    """Makes an object its own copy: Optuna copies trials and their distributions at every turn."""

    def __deepcopy__(self, _memo: object) -> Self:
        return self


class SharedFloat(_Shared, FloatDistribution):
    """A float distribution that nobody changes."""


class SharedInt(_Shared, IntDistribution):
    """An int distribution that nobody changes."""


class SharedChoice(_Shared, CategoricalDistribution):
    """A categorical distribution that nobody changes."""


def distributions(dimensions: Sequence[Dimension]) -> dict[str, BaseDistribution]:
    """Translate dimensions into Optuna's distributions."""
    kinds = CategoricalDistribution, IntDistribution, FloatDistribution
    return {each.name: _translate(each, *kinds) for each in dimensions}


def shared(dimensions: Sequence[Dimension]) -> dict[str, BaseDistribution]:
    """Translate dimensions into distributions that cost nothing to copy; no storage knows them."""
    return {each.name: _translate(each, SharedChoice, SharedInt, SharedFloat) for each in dimensions}


def _translate(
    dimension: Dimension,
    choice: type[CategoricalDistribution],
    whole: type[IntDistribution],
    real: type[FloatDistribution],
) -> BaseDistribution:
    if dimension.kind == "categorical":
        return choice(dimension.choices)
    if dimension.kind == "int":
        step = int(dimension.step or 1)
        return whole(int(dimension.low), int(dimension.high), log=dimension.log, step=step)
    return real(dimension.low, dimension.high, log=dimension.log)


class _Told(_Shared, FrozenTrial):
    """A trial that nobody changes any more."""


def tell(
    seen: Observation,
    space: Mapping[str, BaseDistribution],
    values: Sequence[float] | None,
    **attributes: object,
) -> FrozenTrial:
    """Return an observation as a finished trial; one without values has failed.

    Args:
        seen: what was observed.
        space: distributions by dimension name.
        values: one for each objective; they may stand for a measurement that is missing.
        **attributes: system attributes that a sampler wrote.
    """
    now = datetime.now(tz=UTC)
    variances = [seen.variance, *([] if seen.cost is None else [seen.cost[1]])]
    trial = _Told(
        number=0, trial_id=0, state=TrialState.FAIL if values is None else TrialState.COMPLETE, value=None,
        values=values, datetime_start=now, datetime_complete=now, params=dict(seen.point),
        distributions=dict(space), user_attrs={VARIANCE: variances}, system_attrs=attributes,
        intermediate_values={},
    )  # fmt: skip
    if values is not None:
        for name, slack in seen.constraints.items():
            trial.set_constraint(name, slack)
    return trial


def tell_pending(seen: Observation, space: Mapping[str, BaseDistribution]) -> FrozenTrial:
    """Return an observation that another worker is at as a running trial."""
    return _Told(
        number=0, trial_id=0, state=TrialState.RUNNING, value=None, datetime_start=datetime.now(tz=UTC),
        datetime_complete=None, params=dict(seen.point), distributions=dict(space), user_attrs={},
        system_attrs={}, intermediate_values={},
    )  # fmt: skip


@dataclass(slots=True, kw_only=True)
class ReplayedStudy:
    """As much of a study as our own sampler asks for: Optuna's looks at every trial that is added."""

    directions: Sequence[StudyDirection]
    _trials: list[FrozenTrial] = field(default_factory=list)

    def add(self, trial: FrozenTrial) -> None:
        """Add a trial, and number it."""
        trial.number = len(self._trials)
        self._trials.append(trial)

    def ask(self) -> FrozenTrial:
        """Begin the trial whose parameters are to be suggested."""
        asked = create_trial(state=TrialState.RUNNING)
        self.add(asked)
        return asked

    def get_trials(
        self,
        deepcopy: bool = False,  # noqa: ARG002, FBT001, FBT002 - Optuna's interface
        states: Container[TrialState] | None = None,  # noqa: ARG002 - there are no others
    ) -> list[FrozenTrial]:
        """Return all trials."""
        return self._trials


def directions(observations: Sequence[Observation]) -> list[StudyDirection]:
    """Return what is optimized: the speedup, and the cost where any observation has one."""
    has_cost = any(seen.cost is not None for seen in observations)
    return [StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE][: 1 + has_cost]


def values_of(seen: Observation, objectives: int) -> list[float] | None:
    """Return the value of each objective; None where any is missing."""
    if seen.log_ratio is None:
        return None
    if objectives == 1:
        return [seen.log_ratio]
    return None if seen.cost is None else [seen.log_ratio, seen.cost[0]]


def worst_for_missing(observations: Sequence[Observation]) -> list[list[float]]:
    """Return every observation its values, for samplers that learn nothing from a trial without."""
    objectives = len(directions(observations))
    values = [values_of(seen, objectives) for seen in observations]
    known = [each for each in values if each is not None]
    worst = [
        (min if number == 0 else max)((each[number] for each in known), default=0.0)
        for number in range(objectives)
    ]
    return [worst if each is None else each for each in values]


def seed_of(seed: int, observations: Sequence[Observation], refused: int) -> int:
    """Return another seed for every suggestion of a study."""
    return (seed * 1_000_003 + len(observations) + refused * REFUSED) % 2**32
