"""What an earlier study says of configurations of today's space: a Gaussian process of what it tried."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuner.corpus.corpus_study import CorpusStudy
from tuner.optimize.encoding import Encoding
from tuner.optimize.gp import GaussianProcess
from tuner.optimize.model import fit
from tuner.optimize.optimizer import Observation
from tuner.ports import Config
from tuner.space import Space
from tuner.space.fitting import fit_into

Array = NDArray[np.float64]

LOSS = math.log(2)
"""What a configuration lost that did not work, or broke a constraint: it counts as half of the goodput."""
VARIANCE_OF_LOSS = 0.1
VARIANCE_OF_DEFAULT = 1e-4


@dataclass(frozen=True, kw_only=True)
class Surrogate:
    """The gains of configurations over the default, as one earlier study knows them."""

    space: Space
    encoding: Encoding
    process: GaussianProcess

    @classmethod
    def of(cls, study: CorpusStudy, space: Space) -> "Surrogate | None":
        """Fit to what a study tried, as far as today's space has it; None where that is nothing."""
        seen = {}
        for tried in study.tried:
            config = fit_into(space, {**study.defaults, **tried.changes})
            is_sound = tried.is_feasible and tried.log_gain is not None
            seen[tuple(config.items())] = Observation(
                point=space.encode(config),
                log_ratio=tried.log_gain if is_sound else -LOSS,
                variance=tried.deviation**2 if is_sound else VARIANCE_OF_LOSS,
                constraints={},
            )
        default = fit_into(space, study.defaults)
        seen[tuple(default.items())] = Observation(
            point=space.encode(default), log_ratio=0.0, variance=VARIANCE_OF_DEFAULT, constraints={}
        )
        if len(seen) == 1 or not space.dimensions:
            return None
        encoding, model = fit(space.dimensions, [*seen.values()])
        return cls(space=space, encoding=encoding, process=model.objective)

    def gains(self, configs: Sequence[Config]) -> tuple[Array, Array]:
        """Return means and variances of the log gains over today's default; shape (m,) each."""
        points = [self.space.encode(config) for config in (self.space.default(), *configs)]
        means, covariances = self.process.joint(self.encoding.encode(points))
        contrast = np.hstack([-np.ones((len(configs), 1)), np.eye(len(configs))])
        variances = np.einsum("ij,jk,ik->i", contrast, covariances, contrast)
        return contrast @ means, np.maximum(variances, 0.0)
