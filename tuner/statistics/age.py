"""How long a server had been under load when a gain was measured, and whether the gain moves with that. Pure.

The age of a window is the load that its trial had had when the window began: the warm-up, and the windows
before it, spoiled ones included (the server answered those as well). The warm-up is what lies between the end
of the deployment and the first window, as both were recorded. A plan's `warmup_s` is only its least: a
warm-up goes on until goodput stands still, and no study keeps how long that was.

Goodput is taken to change alike with each doubling of the age: caches that fill and connections that are
opened matter most at first. A line through the windows of one trial has that slope, whatever the luck of the
trial; trials are the replicates.

Symbols: y log value of a window, a age of its middle in seconds. In trial s, y = c_s + g · log₂ a; g is the
slope that all trials of a side share.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean

from scipy.special import stdtrit

from tuner.records import Trial

MIN_TREND = 0.01
"""Smaller changes of a gain, as a share of it, need no warning: a gain below is not claimed either."""
CONFIDENCE = 0.95
LEAST_TRIALS = 2
LARGEST_LOG = 700.0
"""Two trials that contradict each other have no upper end that a float can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """How much something changes from the youngest windows to the oldest, as a share: −0.03 is 3 % less."""

    change: float
    low: float
    """Ends of the 95 % interval."""
    high: float

    @property
    def is_certain(self) -> bool:
        """Whether even the end of the interval that is nearer to 0 is a change beyond 1 %."""
        return self.low > MIN_TREND or self.high < -MIN_TREND


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """Seconds under load between which both sides of a gain were measured, and what changes meanwhile."""

    from_s: float
    """Age of the youngest window when it began."""
    to_s: float
    """Age of the oldest window when it ended."""
    default: Trend | None
    """From the middle of the youngest windows to that of the oldest; None when trials have one window."""
    winner: Trend | None
    ratio: Trend | None
    """Of winner over default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aged:
    """A valid window by the load before it."""

    from_s: float
    to_s: float
    log: float

    @property
    def doublings(self) -> float:
        """Logarithm to base 2 of its middle."""
        return math.log2((self.from_s + self.to_s) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slope:
    """Change of a logarithm per doubling of the age."""

    value: float
    variance: float
    freedom: float

    def over(self, doublings: float) -> Trend:
        """Return the change over so many doublings with its interval (Student's t)."""
        reach = float(stdtrit(self.freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(self.variance)
        ends = (self.value, self.value - reach, self.value + reach)
        change, low, high = (math.expm1(min(end * doublings, LARGEST_LOG)) for end in ends)
        return Trend(change=change, low=low, high=high)


def find_age(default: Sequence[Trial], winner: Sequence[Trial]) -> Age | None:
    """Find at which ages these trials of both sides were measured; None where no trial says.

    A trial without its timing (it was cut off), or within which the clock was set, says nothing.
    """
    sides = [[aged for trial in side if (aged := _age(trial))] for side in (default, winner)]
    every = [window for side in sides for trial in side for window in trial]
    if not every:
        return None
    middles = [window.doublings for window in every]
    doublings = max(middles) - min(middles)
    slopes = [_fit(side) for side in sides]
    every_slope = (*slopes, _subtract(*slopes))
    trends = [None if slope is None else slope.over(doublings) for slope in every_slope]
    return Age(
        from_s=min(window.from_s for window in every),
        to_s=max(window.to_s for window in every),
        default=trends[0],
        winner=trends[1],
        ratio=trends[2],
    )


def _age(trial: Trial) -> list[_Aged]:
    """Return the valid windows of a trial with their ages; none when these are not known."""
    if not trial.windows:
        return []
    warmup_s = trial.windows[0].started_s - trial.started_s - trial.timing.deploy_s
    if not 0 <= warmup_s <= trial.timing.load_s:
        return []
    ages_s = accumulate((window.duration_s for window in trial.windows), initial=warmup_s)
    return [
        _Aged(from_s=age_s, to_s=age_s + window.duration_s, log=window.log_value)
        for age_s, window in zip(ages_s, trial.windows, strict=False)
        if window.is_valid and window.duration_s > 0
    ]


def _fit(trials: Sequence[Sequence[_Aged]]) -> _Slope | None:
    """Fit one slope to all trials of a side by least squares, each trial around its own mean.

    That is the mean of the trials' slopes, weighted by how far apart in age their windows lie; the same
    weights give its variance. None with fewer than two trials that have windows of different ages.
    """
    fits = [_fit_trial(trial) for trial in trials]
    weights = [weight for weight, _ in fits if weight > 0]
    slopes = [slope for weight, slope in fits if weight > 0]
    if len(slopes) < LEAST_TRIALS:
        return None
    mean, freedom = fmean(slopes, weights), len(slopes) - 1
    spread = sum(w * (slope - mean) ** 2 for w, slope in zip(weights, slopes, strict=True))
    return _Slope(value=mean, variance=spread / freedom / sum(weights), freedom=freedom)


def _fit_trial(windows: Sequence[_Aged]) -> tuple[float, float]:
    """Return the sum of squared deviations in age of one trial, and its slope."""
    center = fmean(window.doublings for window in windows)
    weight = sum((window.doublings - center) ** 2 for window in windows)
    moment = sum((window.doublings - center) * window.log for window in windows)
    return weight, moment / weight if weight > 0 else 0.0


def _subtract(default: _Slope | None, winner: _Slope | None) -> _Slope | None:
    """Return the slope of the ratio: what happens within one trial is of no concern to another.

    Degrees of freedom by Welch (Biometrika 34, 1947, doi 10.1093/biomet/34.1-2.28), as a slower side may be
    noisier.
    """
    if default is None or winner is None:
        return None
    variance = default.variance + winner.variance
    shares = sum(side.variance**2 / side.freedom for side in (default, winner))
    return _Slope(
        value=winner.value - default.value,
        variance=variance,
        freedom=variance**2 / shares if shares > 0 else default.freedom + winner.freedom,
    )
