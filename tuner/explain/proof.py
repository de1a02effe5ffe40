"""What it would take to prove a gain that is not proven."""

import math

import numpy as np

from tuner.explain.explanation import Effect, Proof
from tuner.explain.findings import NEGLIGIBLE
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.confirmation.paired_gain import MOST_PAIRS
from tuner.statistics.confirmation.power import assurance
from tuner.statistics.noise import Noise, pair_sd

POWER = 0.9
"""Probability with which so many pairs prove a gain of the size that is expected."""
LEAST_PAIRS = 3


def plan_proof(expected: Effect, noise: Noise, *, windows: int, pair_s: float) -> Proof:
    """Return how many fresh pairs would prove a gain, were it what all trials let expect.

    Args:
        expected: the gain.
        noise: of the host.
        windows: of a trial of the pairs.
        pair_s: seconds that a pair takes; 0 when that is not known.
    """
    pairs = None
    if expected.log > NEGLIGIBLE:
        pairs = _find_pairs(Speedup(log_ratio=expected.log, variance=0.0), noise, windows)
    return Proof(
        pairs=pairs,
        seconds=pairs * pair_s if pairs is not None and pair_s else None,
        noise=math.expm1(pair_sd(noise, windows)),
        expected=expected,
    )


def _find_pairs(gain: Speedup, noise: Noise, windows: int) -> int | None:
    """Return the fewest pairs with enough power, by halving: more pairs never have less."""
    counts = np.arange(LEAST_PAIRS, MOST_PAIRS + 1)
    first, last = 0, len(counts)
    while first < last:
        middle = (first + last) // 2
        if assurance(gain, noise, pairs=int(counts[middle]), windows=windows) >= POWER:
            last = middle
        else:
            first = middle + 1
    return int(counts[first]) if first < len(counts) else None
