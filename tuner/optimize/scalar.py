"""Several objectives as one: another mixture of them for each suggestion."""

import numpy as np

from tuner.optimize.gp import Array

AUGMENTED = 0.05
"""Share of the plain sum, so that nothing is given away in one objective for nothing in another."""


def compress(values: Array) -> Array:
    """Pull up what is far below the middle, so that one catastrophe does not set the scale.

    The worst nginx setting is 240 times slower than the best; how bad the bad ones are is of no interest.
    """
    middle, best = float(np.median(values)), float(np.max(values))
    return np.maximum(values, middle - (best - middle) / 2)


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
    best, spread = kept.max(axis=0), np.maximum(np.ptp(kept, axis=0), 1e-12)
    weights = rng.dirichlet(np.ones(values.shape[1]))
    lost = weights * (best - kept) / spread
    mixed = -(lost.max(axis=1) + AUGMENTED * lost.sum(axis=1))
    shares = np.where(lost == lost.max(axis=1, keepdims=True), 1 + AUGMENTED, AUGMENTED) * weights / spread
    return mixed, np.sum(shares**2 * variances, axis=1)
