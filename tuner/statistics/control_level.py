"""The control level: what the default would have given at any time, and speedups relative to it.

Absolute goodput of a shared host is worth little: identical systems were reported as up to 38 % apart
(Abedi & Brecht, "Conducting repeatable experiments in highly variable cloud computing environments", ICPE
2017, doi 10.1145/3030207.3030229). So the default is measured again and again, and everything else is a ratio
to its level at that time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from tuner.errors import TargetError
from tuner.records import Role, Start, is_censored
from tuner.statistics.level import Belief, Regime, find_regimes, is_far, middle_s, observe
from tuner.statistics.noise import Noise, start_variance

UNSTABLE_SD = 0.10
UNSTABLE_FACTOR = 3.0
UNSTABLE_STARTS = 3
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """Goodput relative to the control level at that time, as a log ratio with its variance."""

    log_ratio: float
    variance: float

    @property
    def ratio(self) -> float:
        return math.exp(self.log_ratio)

    def interval(self, level: float = CONFIDENCE) -> tuple[float, float]:
        """Give the ends of the normal interval, as ratios."""
        reach = float(ndtri((1 + level) / 2)) * math.sqrt(self.variance)
        return math.exp(self.log_ratio - reach), math.exp(self.log_ratio + reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlLevel:
    """Level of the default's log goodput over time."""

    regimes: tuple[Regime, ...]
    noise: Noise

    @classmethod
    def fit(cls, controls: Sequence[Start], noise: Noise) -> "ControlLevel":
        """Filter and smooth all control starts that count, in whatever order they come.

        Raises:
            TargetError: none of them counts.
        """
        seen = sorted((observe(start, noise) for start in controls if start.counts), key=_time)
        if not seen:
            msg = (
                f"control level: none of {len(controls)} starts of the default gave a measurement. "
                "See why in the log of the last one."
            )
            raise TargetError(msg)
        return cls(regimes=find_regimes(seen, noise.drift_per_s), noise=noise)

    def at(self, time_s: float) -> tuple[float, float]:
        """Give level and variance at a time: smoothed in the past, predicted beyond the last control.

        Between the last good control before a jump and the first after it, the level may be either:
        the mean of both, with half their distance as further standard deviation.
        """
        drift = self.noise.drift_per_s
        index = max(0, sum(regime.first_s <= time_s for regime in self.regimes) - 1)
        here = self.regimes[index]
        now = here.at(time_s, drift)
        if index + 1 == len(self.regimes) or time_s <= here.last_good_s:
            return now.level, now.variance
        then = self.regimes[index + 1].at(time_s, drift)
        half = (then.level - now.level) / 2
        return now.level + half, (now.variance + then.variance) / 2 + half**2

    def alarm(self, control: Start) -> bool:
        """Say whether a new control, not among the fitted, is more than 4·√(P+R) from its prediction."""
        seen = observe(control, self.noise)
        level, variance = self.at(seen.time_s)
        return is_far(seen, Belief(time_s=seen.time_s, level=level, variance=variance))

    @property
    def jumps(self) -> tuple[tuple[float, float], ...]:
        """Confirmed jumps: time of the last good control before and of the first one after."""
        pairs = zip(self.regimes, self.regimes[1:], strict=False)
        return tuple((before.last_good_s, after.first_s) for before, after in pairs)


def _time(belief: Belief) -> float:
    return belief.time_s


def speedups(starts: Sequence[Start], noise: Noise) -> dict[int, Speedup]:
    """Give the speedup of every start that counts, by its number; nothing before the first control.

    Every new control revises the past: the level is smoothed over all of them, anew after confirmed jumps.
    The variance holds σ_b², σ_w²/n and the level's own; of a start that was not steady, or whose goodput is
    only a lower bound, four times the first two.
    """
    controls = [start for start in starts if start.role is Role.CONTROL and start.counts]
    if not controls:
        return {}
    fitted = ControlLevel.fit(controls, noise)
    found = {}
    for start in starts:
        log = start.log_goodput
        if start.counts and log is not None:
            level, variance = fitted.at(middle_s(start))
            certain = start.steady and not is_censored(start.valid_windows)
            own = start_variance(noise, len(start.valid_windows), certain)
            found[start.number] = Speedup(log_ratio=log - level, variance=own + variance)
    return found


def combine(repeats: Sequence[Speedup], noise: Noise = Noise.PRIOR) -> Speedup:
    """Put repeats of one configuration together, weighted by inverse variance.

    Repeats are starts, so each brings its own σ_b². Where they disagree more than their variances say, the
    variance grows: reduced χ² (Birge, Physical Review 40, 1932) pooled with the degrees behind σ_b.

    Raises:
        ValueError: there is nothing to combine.
    """
    if not repeats:
        msg = "speedups: there is no repeat to combine. Pass at least one."
        raise ValueError(msg)
    weights = [1 / max(each.variance, 1e-12) for each in repeats]
    mean = sum(w * each.log_ratio for w, each in zip(weights, repeats, strict=True)) / sum(weights)
    chi_square = sum(w * (each.log_ratio - mean) ** 2 for w, each in zip(weights, repeats, strict=True))
    degrees = noise.degrees_start
    excess = (degrees + chi_square) / (degrees + len(repeats) - 1)
    return Speedup(log_ratio=mean, variance=max(1.0, excess) / sum(weights))


def is_unstable(repeats: Sequence[Speedup]) -> bool:
    """Say whether starts of one configuration scatter too much to promise anything, from three starts on.

    More than 10 %, and more than three times what their variances say. The protocol's limit of 3 σ_b is the
    same where windows are long; starts of two windows of 1 s scatter by their windows alone, and on a noisy
    host good configurations were lost. TUNA (arXiv 2503.01801) calls a relative range of 30 % unstable; on
    hosts whose default scatters as much that tells nothing.
    """
    if len(repeats) < UNSTABLE_STARTS:
        return False
    spread = float(np.std([each.log_ratio for each in repeats], ddof=1))
    expected = math.sqrt(float(np.mean([each.variance for each in repeats])))
    return spread > max(UNSTABLE_FACTOR * expected, UNSTABLE_SD)
