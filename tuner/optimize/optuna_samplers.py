"""Optuna's samplers, our own among them, behind the optimizer interface."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random

import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from tuner.errors import UsageError
from tuner.optimize.concordance import weigh
from tuner.optimize.optimizer import Earlier, Observation, Optimizer, Point, Suggestion
from tuner.optimize.replay import (
    REFUSED,
    ReplayedStudy,
    SharedFloat,
    directions,
    seed_of,
    shared,
    tell,
    tell_pending,
    values_of,
    worst_for_missing,
)
from tuner.optimize.sparse import believe, draw_sparse, follow_hints, follow_told
from tuner.ports import Scalar
from tuner.space import Dimension

Space = dict[str, BaseDistribution]

PRICE = 0.01
"""Log points that each changed coordinate has to bring: one more line to read and to maintain."""
SPARSE_TRIALS = 6
"""Observations before the model is asked. Beside a default that is known, four are no better: regret after
10/20/30/40 trials on recorded surfaces (16 seeds) .20/.16/.13/.12 with either."""
LEAST_WEIGHT = 0.1
"""Of an earlier study whose best configuration is tried."""
STARTUP_TRIALS = 10
"""Observations before the estimator is believed (Optuna's own default, `n_startup_trials`)."""


class NoisyGp:
    """Sparse random points at first, then noisy expected improvement under a Gaussian process."""

    def __init__(self, default: Point, earlier: Sequence[Earlier] = ()) -> None:
        """Take the point around which the first ones are drawn, and earlier studies."""
        # Its parts of SciPy take 50 MiB, which other optimizers do without.
        from tuner.optimize.sampler import KeptModel, NoisyGPSampler

        self._make = partial(NoisyGPSampler, startup_trials=0, repeats=False, reference=default, price=PRICE)
        self._kept = KeptModel()
        self._told: list[tuple[Observation, FrozenTrial]] = []
        """What was told last, in order: what is the same again stays the same trial and keeps its model."""
        self._space: tuple[Sequence[Dimension], Space] = (), {}
        self._default = default
        self._earlier = earlier

    def suggest(
        self,
        dimensions: Sequence[Dimension],
        observations: Sequence[Observation],
        *,
        seed: int,
        refused: int = 0,
    ) -> Suggestion:
        """Return a point within the dimensions; the same arguments give the same point."""
        dimensions, hinted = _follow_untried(dimensions, self._default, observations, seed)
        if refused < len(hinted):
            return Suggestion(point=hinted[refused])
        refused -= len(hinted)
        measured = sum(seen.log_ratio is not None and not seen.is_pending for seen in observations)
        if measured < SPARSE_TRIALS:
            rng = Random(seed_of(seed, observations, refused))  # noqa: S311 - no secret
            return Suggestion(point=draw_sparse(dimensions, self._default, rng=rng))
        free = self._find_space(dimensions)
        hints = {each.name: each.hint for each in dimensions if each.hint is not None}
        warm = _recall_good(self._earlier, observations, seed)
        sampler = self._make(seed=seed + refused * REFUSED, hints=hints, warm=warm)
        wanted = directions(observations)
        study, told = ReplayedStudy(directions=wanted), self._told
        self._told = []
        for seen in observations:
            values = values_of(seen, len(wanted))
            if seen.is_pending:
                study.add(tell_pending(seen, free))
            # Told without all of its values, a trial that was measured would count as a failed one.
            elif values is not None or seen.log_ratio is None:
                known, trial = next(iter(told[len(self._told) :]), (None, None))
                if trial is None or known != seen:
                    trial = tell(seen, free, values)
                self._told.append((seen, trial))
                study.add(trial)
        proposal = sampler.propose(study, study.ask(), free, self._kept)
        return Suggestion(point={**self._default, **proposal.params}, expected_gain=proposal.improvement)

    def _find_space(self, dimensions: Sequence[Dimension]) -> Space:
        """Return the distributions of what can be chosen; the same ones for the same dimensions."""
        if self._space[0] is not dimensions:
            space = {name: each for name, each in shared(dimensions).items() if not each.single()}
            self._space, self._told = (dimensions, space), []
        return self._space[1]


def _recall_good(earlier: Sequence[Earlier], observations: Sequence[Observation], seed: int) -> list[Point]:
    """Return what was good in earlier studies: of each the larger a share, the more the study counts."""
    return [
        point
        for each in earlier
        for point in each.good[: round(weigh(each, observations, seed=seed) * len(each.good))]
    ]


def _follow_untried(
    dimensions: Sequence[Dimension], default: Point, observations: Sequence[Observation], seed: int
) -> tuple[Sequence[Dimension], list[dict[str, Scalar]]]:
    """Return the dimensions with the hints that are believed, and the points that follow them untried.

    Of one seed these are always the same. What a study file tells is tried by itself first.
    """
    rng = Random(f"{seed}/hints")  # noqa: S311 - no secret
    tried = [dict(seen.point) for seen in observations]
    told = follow_told(dimensions, default)
    believed = believe(dimensions, default, observations)
    follow = [point for point in follow_hints(believed, default, rng=rng) if point != told]
    points = follow if told is None else [told, *follow]
    return believed, [point for point in points if point not in tried]


class Tpe:
    """Sparse random points at first, then a multivariate TPE under constraints."""

    def __init__(self, default: Point) -> None:
        """Remember the point around which the first ones are drawn."""
        self._default = default

    def suggest(
        self,
        dimensions: Sequence[Dimension],
        observations: Sequence[Observation],
        *,
        seed: int,
        refused: int = 0,
    ) -> Suggestion:
        """Return a point within the dimensions; the same arguments give the same point."""
        dimensions, hinted = _follow_untried(dimensions, self._default, observations, seed)
        if refused < len(hinted):
            return Suggestion(point=hinted[refused])
        drawn = seed_of(seed, observations, refused - len(hinted))
        if len(observations) < STARTUP_TRIALS:
            rng = Random(drawn)  # noqa: S311 - no secret
            return Suggestion(point=draw_sparse(dimensions, self._default, rng=rng))
        own = shared(dimensions)
        space = {name: _as_range(each) for name, each in own.items()}
        sampler = optuna.samplers.TPESampler(
            multivariate=True, constant_liar=False, n_startup_trials=0, seed=drawn
        )
        study = _replay(observations, space, sampler)
        number = study.ask().number
        point: Point = sampler.sample_relative(
            study,
            study.get_trials(deepcopy=False)[number],
            {name: each for name, each in space.items() if not each.single()},
        )
        return Suggestion(
            point={
                name: _snap(point[name], own[name]) if name in point else self._default[name]
                for name in space
            }
        )


def _as_range(distribution: BaseDistribution) -> BaseDistribution:
    """Return the distribution that TPE is told. Whole numbers are told as the range that rounds to them.

    Optuna weighs them by the mass of their cells, one scalar at a time: for 39 dimensions and 60 observations
    25 ms instead of 13, beside a load up to 51.
    """
    if isinstance(distribution, IntDistribution) and not distribution.single():
        half = distribution.step / 2
        return SharedFloat(distribution.low - half, distribution.high + half, log=distribution.log)
    return distribution


def _replay(observations: Sequence[Observation], space: Space, sampler: BaseSampler) -> optuna.Study:
    """Return a study in memory that knows the whole history, with the speedups as they are known now."""
    study = optuna.create_study(directions=directions(observations), sampler=sampler)
    for seen, values in zip(observations, worst_for_missing(observations), strict=True):
        study.add_trial(tell(seen, space, values))
    return study


def _snap(value: Scalar, distribution: BaseDistribution) -> Scalar:
    """Round a number to the nearest one of an int distribution."""
    if not isinstance(distribution, IntDistribution) or not isinstance(value, float):
        return value
    step = distribution.step
    rounded = distribution.low + round((value - distribution.low) / step) * step
    return min(max(rounded, distribution.low), distribution.high)


class Foreign:
    """Tells a sampler the whole history and asks it once.

    A trial without a measurement is told as the worst value so far, with the constraint that it broke:
    Optuna's samplers learn nothing from a failed trial.
    """

    def __init__(self, name: str, make: Callable[[int], BaseSampler]) -> None:
        """Take how a sampler is made from a seed, and make one. Raises UsageError when it cannot be made."""
        self._name = name
        self._make = make
        with _foreign_errors(name, "made the sampler without arguments"):
            make(0)

    def suggest(
        self,
        dimensions: Sequence[Dimension],
        observations: Sequence[Observation],
        *,
        seed: int,
        refused: int = 0,
    ) -> Suggestion:
        """Return a point within the dimensions; the same arguments give the same point."""
        with _foreign_errors(self._name, "asked the sampler for a configuration"):
            return Suggestion(point=self._ask(shared(dimensions), observations, seed, refused))

    def _ask(self, space: Space, observations: Sequence[Observation], seed: int, refused: int) -> Point:
        sampler = self._make(seed_of(seed, observations, refused))
        return _replay(observations, space, sampler).ask(space).params


@contextmanager
def _foreign_errors(name: str, what: str) -> Iterator[None]:
    """Raise UsageError with a remedy for whatever a foreign sampler raises."""
    try:
        yield
    except Exception as error:
        raise UsageError(
            f"optimizer: {name!r} failed when tuner {what}: {type(error).__name__}: {error}. Use another "
            "optimizer."
        ) from error


class AskedAgain(Foreign):
    """Asks a sampler for every point of the history again before it is asked for the next.

    For samplers that follow what they suggested themselves: the place in a sequence, marks on their trials.
    What one suggestion takes grows with the history: after 60 trials 60 times as long as a sampler needs.
    """

    def _ask(self, space: Space, observations: Sequence[Observation], seed: int, refused: int) -> Point:
        study = optuna.create_study(directions=directions(observations), sampler=self._make(seed % 2**32))
        for seen, values in zip(observations, worst_for_missing(observations), strict=True):
            asked = study.ask(space)
            marks = study.get_trials(deepcopy=False)[asked.number].system_attrs
            study.tell(asked, state=TrialState.FAIL)
            study.add_trial(tell(seen, space, values, **marks))
        for _ in range(refused):
            study.tell(study.ask(space), state=TrialState.FAIL)
        return study.ask(space).params


class TriesFirst:
    """Suggests the best of earlier studies before it asks another optimizer."""

    def __init__(self, optimizer: Optimizer, earlier: Sequence[Earlier]) -> None:
        """Remember the earlier studies, in their order."""
        self._optimizer = optimizer
        self._earlier = earlier

    def suggest(
        self,
        dimensions: Sequence[Dimension],
        observations: Sequence[Observation],
        *,
        seed: int,
        refused: int = 0,
    ) -> Suggestion:
        """Return the best of the first study that still counts and was not tried, or a suggestion."""
        tried = [dict(seen.point) for seen in observations]
        untried = [each for each in self._earlier if dict(each.good[0]) not in tried]
        left = [each.good[0] for each in untried if weigh(each, observations, seed=seed) >= LEAST_WEIGHT]
        if refused < len(left):
            return Suggestion(point=left[refused])
        return self._optimizer.suggest(dimensions, observations, seed=seed, refused=refused - len(left))
