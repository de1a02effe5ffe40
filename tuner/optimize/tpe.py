"""Optuna's tree-structured Parzen estimator behind the optimizer interface."""

from collections.abc import Mapping, Sequence
from random import Random

import optuna
from optuna.distributions import BaseDistribution, IntDistribution

from tuner.optimize.optimizer import Observation, Point, Suggestion
from tuner.optimize.replay import SharedFloat, directions, seed_of, shared, snap, tell, worst_for_missing
from tuner.optimize.sparse import draw_sparse
from tuner.space import Dimension

STARTUP_TRIALS = 10
"""Observations before the estimator is believed (Optuna's own default, `n_startup_trials`)."""


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
        drawn = seed_of(seed, observations, refused)
        if len(observations) < STARTUP_TRIALS:
            rng = Random(drawn)  # noqa: S311 - no secret
            return Suggestion(point=draw_sparse(dimensions, self._default, rng=rng))
        own = shared(dimensions)
        space = {name: _as_range(each) for name, each in own.items()}
        study = _replay(observations, space, drawn)
        number = study.ask().number
        point: Point = study.sampler.sample_relative(
            study,
            study.get_trials(deepcopy=False)[number],
            {name: each for name, each in space.items() if not each.single()},
        )
        return Suggestion(
            point={
                name: snap(point[name], own[name]) if name in point else self._default[name] for name in space
            }
        )


def _as_range(distribution: BaseDistribution) -> BaseDistribution:
    """Give the distribution that TPE is told. Whole numbers are told as the range that rounds to them.

    Optuna weighs them by the mass of their cells, one scalar at a time: for 39 dimensions and 60 observations
    25 ms instead of 13, beside a load up to 51.
    """
    if isinstance(distribution, IntDistribution) and not distribution.single():
        half = distribution.step / 2
        return SharedFloat(distribution.low - half, distribution.high + half, log=distribution.log)
    return distribution


def _replay(
    observations: Sequence[Observation], space: Mapping[str, BaseDistribution], seed: int
) -> optuna.Study:
    """Tell the whole history to a study in memory, with the speedups as they are known now."""
    sampler = optuna.samplers.TPESampler(
        multivariate=True, constant_liar=False, n_startup_trials=0, seed=seed
    )
    study = optuna.create_study(directions=directions(observations), sampler=sampler)
    for seen, values in zip(observations, worst_for_missing(observations), strict=True):
        study.add_trial(tell(seen, space, values))
    return study
