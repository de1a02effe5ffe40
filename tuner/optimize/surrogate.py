"""What the optimizer's model thinks of points that nobody has measured."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from optuna.study import StudyDirection

from tuner.optimize.encoding import Encoding
from tuner.optimize.history import gather
from tuner.optimize.model import Model
from tuner.optimize.optimizer import Observation, Point
from tuner.optimize.replay import shared, tell
from tuner.space import Dimension


def predict(
    dimensions: Sequence[Dimension], observations: Sequence[Observation], points: Sequence[Point]
) -> NDArray[np.float64]:
    """Give the posterior mean of the log speedup at points; shape (m,).

    Args:
        dimensions: of the space.
        observations: of every start so far; at least one has a speedup.
        points: values by dimension name.
    """
    space = {name: each for name, each in shared(dimensions).items() if not each.single()}
    trials = [
        tell(replace(seen, cost=None), space, None if seen.log_ratio is None else [seen.log_ratio])
        for seen in observations
    ]
    history = gather(trials, [StudyDirection.MAXIMIZE])
    encoding = Encoding(space)
    model = Model.of(history, encoding, history.values[:, 0], history.variances[:, 0], seed=0)
    means, _ = model.objective.predict(encoding.encode(points))
    return means
