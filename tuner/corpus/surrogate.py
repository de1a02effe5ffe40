"""What earlier studies say of configurations of today's space: a Gaussian process of what they tried."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
OTHER_HOST = 0.1
"""Standard deviation by which the gain of a whole configuration differs from host to host, in log points."""


@dataclass(frozen=True, kw_only=True)
class Surrogate:
    """The gains of configurations over the default, as earlier studies know them."""

    space: Space
    encoding: Encoding
    process: GaussianProcess

    @classmethod
    def of(cls, space: Space, seen: Sequence[Observation]) -> "Surrogate":
        """Fit to observations of at least two configurations of a space that has dimensions."""
        encoding, model = fit(space.dimensions, seen)
        return cls(space=space, encoding=encoding, process=model.objective)

    def gains(self, configs: Sequence[Config], over: Config) -> tuple[Array, Array]:
        """Return means and variances of the log gains of configurations over another one; shape (m,) each."""
        points = [self.space.encode(config) for config in (over, *configs)]
        means, covariances = self.process.joint(self.encoding.encode(points))
        variances = covariances[0, 0] + covariances.diagonal()[1:] - 2 * covariances[0, 1:]
        return means[1:] - means[0], np.maximum(variances, 0.0)


def observe_study(study: CorpusStudy, space: Space) -> list[Observation]:
    """Return what a study tried, its default among it, as far as today's space has it."""
    default = fit_into(space, study.defaults)
    seen = {
        tuple(default.items()): Observation(
            point=space.encode(default), log_ratio=0.0, variance=VARIANCE_OF_DEFAULT, constraints={}
        )
    }
    for tried in study.tried:
        config = fit_into(space, {**study.defaults, **tried.changes})
        is_sound = tried.is_feasible and tried.log_gain is not None
        seen.setdefault(
            tuple(config.items()),
            Observation(
                point=space.encode(config),
                log_ratio=tried.log_gain if is_sound else -LOSS,
                variance=tried.deviation**2 if is_sound else VARIANCE_OF_LOSS,
                constraints={},
            ),
        )
    return [*seen.values()]


def count_for(seen: Sequence[Observation], likeness: float) -> list[Observation]:
    """Return what the observations of a study are on a host that is so alike: further apart, less sure."""
    return [replace(each, variance=(each.variance + OTHER_HOST**2) / likeness) for each in seen]
