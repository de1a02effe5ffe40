"""How a drawn server is noisy: windows, trials, age, and what its host does meanwhile, second by second."""

import math
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

STEP_S = 0.25
LENGTH_S = 900.0
"""Of a host's history, which then begins anew."""
SPOILED_SHARE = 0.3
"""Share of a window that is stolen before a check sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Standard deviations are those of log goodput."""

    sigma_window: float
    sigma_start: float
    drift_per_minute: float
    """SD that a random walk gains in a minute."""
    slow_depth: float
    """Lost in slow phases, of 7 s after 14 s on average; 0 on a host without neighbours."""
    burst_share: float
    """Of the time in which something else runs, for 1 to 3 s."""
    burst_depth: float
    seen_share: float
    """Of the bursts that a check sees as stolen time; the others merely slow a window down."""
    age_depth: float
    """Log goodput above or below the steady one when a server is new."""
    age_s: float
    """After which a third of that is left."""
    spread_of_failures: float
    """SD of the logarithm of the rate of failures between trials."""


def draw_noise(rng: Random) -> Noise:
    """Draw the noise of a server and its host.

    Within trials of recorded studies log goodput scatters by 0.03 (nginx, kept connections) to 0.10 (Apache,
    closed ones) at the median, between trials of one configuration by 0.07.
    """
    sigma_window = math.exp(rng.uniform(math.log(0.03), math.log(0.15)))
    return Noise(
        sigma_window=sigma_window,
        sigma_start=sigma_window * rng.uniform(0.55, 0.8),
        drift_per_minute=rng.uniform(0.005, 0.03),
        slow_depth=rng.uniform(0.1, 0.35) if rng.random() < 0.25 else 0.0,
        burst_share=rng.uniform(0.0, 0.05),
        burst_depth=rng.uniform(0.1, 0.5),
        seen_share=rng.uniform(0.3, 0.8),
        age_depth=rng.gauss(0.0, 0.03) if rng.random() < 0.7 else 0.0,
        age_s=rng.uniform(1.0, 6.0),
        spread_of_failures=rng.uniform(0.4, 1.0),
    )


class History:
    """What a host does over time, whatever is measured on it: all arms meet the same."""

    def __init__(self, noise: Noise, seed: str) -> None:
        """Draw it all at once."""
        rng = Random(seed)  # noqa: S311 - no secret
        steps = round(LENGTH_S / STEP_S)
        walk = noise.drift_per_minute * math.sqrt(STEP_S / 60)
        self._level = np.cumsum([rng.gauss(0.0, walk) for _ in range(steps)])
        if noise.slow_depth:
            self._level -= noise.slow_depth * _phases(rng, steps, fast_s=14.0, slow_s=7.0)
        self._stolen = np.zeros(steps)
        if noise.burst_share:
            self._add_bursts(noise, rng)

    def _add_bursts(self, noise: Noise, rng: Random) -> None:
        steps, mean_s = len(self._level), 2.0
        first = 0.0
        while True:
            first += rng.expovariate(noise.burst_share / mean_s)
            begin, end = (round(at / STEP_S) for at in (first, first + rng.uniform(1.0, 3.0)))
            if begin >= steps:
                return
            self._level[begin:end] -= noise.burst_depth
            if rng.random() < noise.seen_share:
                self._stolen[begin:end] = 1.0

    def level(self, begun_s: float, duration_s: float) -> float:
        """Return what the host adds to log goodput in a time."""
        return float(self._level[_steps(begun_s, duration_s)].mean())

    def is_stolen(self, begun_s: float, duration_s: float) -> bool:
        """Return whether so much of a window was stolen that a check sees it."""
        return float(self._stolen[_steps(begun_s, duration_s)].mean()) >= SPOILED_SHARE


def _phases(rng: Random, steps: int, *, fast_s: float, slow_s: float) -> NDArray[np.float64]:
    """Draw where a host is slow: 1 there, else 0."""
    slow, at, is_slow = np.zeros(steps), 0.0, False
    while at < steps * STEP_S:
        lasts_s = rng.expovariate(1 / (slow_s if is_slow else fast_s))
        slow[round(at / STEP_S) : round((at + lasts_s) / STEP_S)] = is_slow
        at, is_slow = at + lasts_s, not is_slow
    return slow


def _steps(begun_s: float, duration_s: float) -> NDArray[np.int64]:
    first = math.floor(begun_s / STEP_S)
    count = max(1, round(duration_s / STEP_S))
    return np.arange(first, first + count) % round(LENGTH_S / STEP_S)
