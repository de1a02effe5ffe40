"""What may be said of an effect that is only known as draws: helps, harms, none to speak of, unknown."""

import math

import numpy as np

from tuner.explain.beliefs import Array
from tuner.explain.explanation import Finding

NEGLIGIBLE = math.log(1.005)
"""Log points below which an effect is worth nothing to anybody."""
SURE = 0.975
"""Probability with which something helps, or harms, before it is said."""
BOUND_SURE = 0.95
"""Probability with which an effect lies within the bound that is given for it."""
MOST_BOUND = 0.05
"""A wider bound is no answer to whether a setting does anything."""


def find(draws: Array) -> tuple[Finding, float | None, int | None]:
    """Return what is known of a setting, its bound where it has no effect, and the value that shows it.

    Args:
        draws: shape (draws, values), effects of its values over the one it has, in log points. That a value
            helps is told by the surest of them, that none has an effect by the largest effect of each draw.
    """
    if not draws.shape[1]:
        return Finding.UNKNOWN, None, None
    means = draws.mean(axis=0)
    for finding, sign in ((Finding.HELPS, 1), (Finding.HARMFUL, -1)):
        is_sure = (sign * draws > NEGLIGIBLE).mean(axis=0) >= SURE
        if is_sure.any():
            return finding, None, int(np.where(is_sure, sign * means, -np.inf).argmax())
    bound = math.expm1(float(np.quantile(np.abs(draws).max(axis=1), BOUND_SURE)))
    if bound <= MOST_BOUND:
        return Finding.NO_EFFECT, bound, None
    return Finding.UNKNOWN, None, None
