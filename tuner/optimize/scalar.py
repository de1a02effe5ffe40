"""Several objectives as one: another mixture of them for each suggestion."""

import numpy as np

from tuner.optimize.gp import Array

AUGMENTED = 0.05
"""Share of the plain sum, so that nothing is given away in one objective for nothing in another."""
CATASTROPHE = 8.0
"""So many times as far below the median as the best is above it. A search that goes well measures half of its
points near the best: with a bound as near as half that distance, what the others had told, such as which
settings cost 20 %, was lost just then (regret on the made surfaces .187, with this alone .158; 10 seeds)."""


def compress(values: Array) -> Array:
    """Pull up what is far below the median, so that one catastrophe does not set the scale.

    The worst nginx setting is 240 times slower than the best; how bad the bad ones are is of no interest.
    """
    best, median = float(np.max(values)), float(np.median(values))
    # Where half of the values are the best one, the mean still tells how far away the others are.
    middle = median if median < best else min(best, float(np.mean(values)))
    return np.maximum(values, middle - CATASTROPHE * (best - middle))


def scalarise(values: Array, variances: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Weigh the worst of the objectives (ParEGO: Knowles 2006, doi 10.1109/TEVC.2005.851274).

    Args:
        values: shape (n, k), more is better.
        variances: shape (n, k), NaN where nobody knows.
        rng: of the weights, uniform over all mixtures.

    Returns:
        One value and its variance for each row, shape (n,) each.
    """
    if values.shape[1] == 1:
        return values[:, 0], variances[:, 0]
    kept = np.column_stack([compress(each) for each in values.T])
    best = kept.max(axis=0)
    # The second is less, unless half of the values are the best one.
    spread = np.maximum(best - np.median(kept, axis=0), np.ptp(kept, axis=0) / (1 + CATASTROPHE))
    spread = np.where(spread > 0, spread, 1.0)
    weights = rng.dirichlet(np.ones(values.shape[1]))
    lost = weights * (best - kept) / spread
    mixed = -(lost.max(axis=1) + AUGMENTED * lost.sum(axis=1))
    shares = np.where(lost == lost.max(axis=1, keepdims=True), 1 + AUGMENTED, AUGMENTED) * weights / spread
    return mixed, np.sum(shares**2 * variances, axis=1)
