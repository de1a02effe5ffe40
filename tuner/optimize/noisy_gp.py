"""NoisyGPSampler behind the optimizer interface."""

from collections.abc import Sequence
from random import Random

import optuna

from tuner.optimize.optimizer import Observation, Point, Suggestion
from tuner.optimize.replay import REFUSED, directions, seed_of, shared, tell, values_of
from tuner.optimize.sampler import NoisyGPSampler
from tuner.optimize.sparse import draw_sparse
from tuner.space import Dimension

SPARSE_TRIALS = 6
"""Observations before the model is asked. Beside a default that is known, four are no better: regret after
10/20/30/40 starts on recorded surfaces (16 seeds) .20/.16/.13/.12 with either."""


class NoisyGp:
    """Sparse random points at first, then noisy expected improvement under a Gaussian process."""

    def __init__(self, default: Point, warm: Sequence[Point] = ()) -> None:
        """Make an optimizer.

        Args:
            default: the point around which the first ones are drawn.
            warm: points that were good in earlier studies.
        """
        self._default = default
        self._warm = warm

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
        if sum(seen.log_ratio is not None for seen in observations) < SPARSE_TRIALS:
            rng = Random(drawn)  # noqa: S311 - no secret
            return Suggestion(point=draw_sparse(dimensions, self._default, rng=rng))
        space = shared(dimensions)
        free = {name: each for name, each in space.items() if not each.single()}
        sampler = NoisyGPSampler(
            seed=seed + refused * REFUSED, startup_trials=0, warm=self._warm, repeats=False
        )
        wanted = directions(observations)
        study = optuna.create_study(directions=wanted, sampler=sampler)
        for seen in observations:
            values = values_of(seen, len(wanted))
            # Told without all of its values, a start that was measured would count as a failed one.
            if values is not None or seen.log_ratio is None:
                study.add_trial(tell(seen, free, values))
        number = study.ask().number
        proposal = sampler.propose(study, study.get_trials(deepcopy=False)[number], free)
        return Suggestion(point={**self._default, **proposal.params}, expected_gain=proposal.improvement)
