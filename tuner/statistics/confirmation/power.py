"""How many pairs it takes to prove a gain that is only estimated so far.

Symbols: δ log gain, normal with mean `log_ratio` and variance `variance`; n pairs; σ_d `pair_sd` of the log
ratio of one pair. The interval ends above 1 where t > t_crit; t is noncentral with δ · √n / σ_d.
"""

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import nctdtr

from tuner.statistics.baseline_level import Speedup
from tuner.statistics.noise import CONFIDENCE, MAX_PAIRS, MAX_WINDOWS, Noise, half_width, pair_sd, t_quantile

ASSURANCE = 0.95
"""Probability with which the interval of a planned confirmation is to end above no gain."""
NARROW_SHARE = 1 / 3
"""Half of its width, in log points, as a share of the gain at the most."""
LEAST_WINDOWS = 2
"""Of a trial: with one nobody sees whether a gain changes with the age of the server."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
"""Gauss-Hermite quadrature over a standard normal number."""


def assurance(gain: Speedup, noise: Noise, *, pairs: int, windows: int) -> float:
    """Return the probability that the lower end of the pairs' 95 % interval comes to lie above 1.

    The power of the t test (noncentral t), averaged over what the gain may be: "assurance" (O'Hagan, Stevens
    & Campbell, Pharmaceutical Statistics 4, 2005, doi 10.1002/pst.175).
    """
    gains = gain.log_ratio + math.sqrt(gain.variance) * NODES
    shifts = gains * math.sqrt(pairs) / pair_sd(noise, windows)
    # Of what is far below no gain the noncentral t is not a number; its share is none.
    power = 1 - nctdtr(pairs - 1, np.maximum(shifts, -30.0), t_quantile(pairs, CONFIDENCE))
    return float(np.nan_to_num(power) @ WEIGHTS)


def plan_pairs(
    gain: Speedup, noise: Noise, *, least: int, seconds: float, trial_cost_s: float, window_s: float
) -> tuple[int, int]:
    """Return pairs and windows per trial of the cheapest confirmation that is likely to prove a gain.

    Its interval ends above 1 with a probability of 95 %, and is narrow: half of it is at most a third of the
    gain. Where the time does not reach, what fills it with the narrowest interval.

    Args:
        gain: of the winner by all trials so far; the pairs to come are no part of it, so that what they show
            is not chosen by what they show.
        noise: of the host.
        least: pairs at the least.
        seconds: that the confirmation may take.
        trial_cost_s: seconds of a trial besides its windows.
        window_s: length of a window.
    """
    enough = [
        (cost_s, pairs, windows)
        for cost_s, pairs, windows in _choices(least, seconds, trial_cost_s, window_s)
        if _is_narrow(gain, noise, pairs, windows)
        and assurance(gain, noise, pairs=pairs, windows=windows) >= ASSURANCE
    ]
    if enough:
        _, pairs, windows = min(enough)
        return pairs, windows
    every = list(_choices(least, seconds, trial_cost_s, window_s))
    if not every:
        return least, 1
    _, pairs, windows = min(every, key=lambda each: half_width(noise, pairs=each[1], windows=each[2]))
    return pairs, windows


def _is_narrow(gain: Speedup, noise: Noise, pairs: int, windows: int) -> bool:
    reach = math.log1p(half_width(noise, pairs=pairs, windows=windows))
    return reach <= NARROW_SHARE * gain.log_ratio


def _choices(
    least: int, seconds: float, trial_cost_s: float, window_s: float
) -> Iterator[tuple[float, int, int]]:
    """Yield seconds, pairs and windows of all confirmations that fit."""
    for windows in range(LEAST_WINDOWS, MAX_WINDOWS + 1):
        for pairs in range(least, max(MAX_PAIRS, least) + 1):
            cost_s = 2 * pairs * (trial_cost_s + windows * window_s)
            if cost_s <= seconds:
                yield cost_s, pairs, windows
