"""What may be said of an effect that is only known as draws: helps, harms, none to speak of, unknown."""

import math

import numpy as np
from numpy.typing import NDArray

from tuner.explain.beliefs import Array
from tuner.explain.explanation import Finding

NEGLIGIBLE = math.log(1.005)
"""Log points below which an effect is worth nothing to anybody."""
DOUBT = 0.025
"""Probability that something does not help, or harm, with which that is said all the same. Whoever asks
several questions and tells the surest answer is fooled as many times as often, so it is shared out over them
(Bonferroni)."""
BOUND_SURE = 0.95
"""Probability with which an effect lies within the bound that is given for it."""
MOST_BOUND = 0.05
"""A wider bound is no answer to whether a setting does anything."""


def is_beyond(draws: Array, questions: int) -> NDArray[np.bool_]:
    """Return of which effects, the columns of draws, it is sure enough that they are worth something."""
    return np.asarray((draws > NEGLIGIBLE).mean(axis=0) >= 1 - DOUBT / questions)


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
        is_sure = is_beyond(sign * draws, draws.shape[1])
        if is_sure.any():
            return finding, None, int(np.where(is_sure, sign * means, -np.inf).argmax())
    bound = math.expm1(float(np.quantile(np.abs(draws).max(axis=1), BOUND_SURE)))
    if bound <= MOST_BOUND:
        return Finding.NO_EFFECT, bound, None
    return Finding.UNKNOWN, None, None
