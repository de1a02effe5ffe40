"""The local-level model of a host: filter, smoother and jumps over control starts at irregular times.

The level is a random walk seen with noise (Harvey, "Forecasting, Structural Time Series Models and the
Kalman Filter", 1989, section 2.3; Kalman 1960 for the filter, Rauch, Tung & Striebel 1965 for the smoother).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tuner.records import Start
from tuner.statistics.noise import Noise, start_variance

ALARM_SD = 4.0
"""A control farther than this from its prediction is measured again (measurement protocol; with normal noise
one control in 16 000)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What is believed of the level at one time."""

    time_s: float
    level: float
    variance: float

    def after(self, time_s: float, drift_per_s: float) -> "Belief":
        """Carry it on to another time, earlier or later: the random walk adds its variance."""
        return replace(self, time_s=time_s, variance=self.variance + drift_per_s * abs(time_s - self.time_s))

    def learn(self, seen: "Belief") -> "Belief":
        """Weigh it with an observation at the same time: K = P/(P+R), β += K(c̄−β), P = (1−K)P."""
        gain = self.variance / (self.variance + seen.variance)
        return Belief(
            time_s=seen.time_s,
            level=self.level + gain * (seen.level - self.level),
            variance=(1 - gain) * self.variance,
        )

    def revise(self, predicted: "Belief", smoothed: "Belief") -> "Belief":
        """Let the future speak: J = P_t/P_{t+1|t}, β += J(β_s−β_{t+1|t}), P += J²(P_s−P_{t+1|t})."""
        share = self.variance / predicted.variance if predicted.variance > 0 else 0.0
        return Belief(
            time_s=self.time_s,
            level=self.level + share * (smoothed.level - predicted.level),
            variance=self.variance + share**2 * (smoothed.variance - predicted.variance),
        )


def observe(control: Start, noise: Noise) -> Belief:
    """Take the level that one control start shows, in the middle of its windows."""
    log = control.log_goodput
    return Belief(
        time_s=middle_s(control),
        level=0.0 if log is None else log,
        variance=start_variance(noise, len(control.valid_windows), control.steady),
    )


def middle_s(start: Start) -> float:
    """Give the time that a start's windows stand for, in seconds since the epoch."""
    windows = start.valid_windows
    if not windows:
        return start.started_s
    return sum(window.started_s + window.duration_s / 2 for window in windows) / len(windows)


def is_far(seen: Belief, predicted: Belief) -> bool:
    """Say whether an observation is more than 4·√(P+R) from its prediction."""
    return abs(seen.level - predicted.level) > ALARM_SD * math.sqrt(predicted.variance + seen.variance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """A stretch of time without a jump of the level."""

    first_s: float
    last_good_s: float
    """Time of its last control that was where it was expected."""
    filtered: tuple[Belief, ...]
    smoothed: tuple[Belief, ...] = field(repr=False)

    def at(self, time_s: float, drift_per_s: float) -> Belief:
        """Give the level at any time: smoothed between controls, carried on outside of them."""
        later = next((i for i, each in enumerate(self.smoothed) if each.time_s >= time_s), None)
        if later is None:
            return self.filtered[-1].after(time_s, drift_per_s)
        if later == 0:
            return self.smoothed[0].after(time_s, drift_per_s)
        here = self.filtered[later - 1].after(time_s, drift_per_s)
        predicted = here.after(self.smoothed[later].time_s, drift_per_s)
        return here.revise(predicted, self.smoothed[later])


def find_regimes(seen: Sequence[Belief], drift_per_s: float) -> tuple[Regime, ...]:
    """Filter the observations in order of time and begin anew at every confirmed jump.

    A jump is confirmed when two controls in a row are far off on the same side. One that is alone stays,
    with the variance that its distance shows: it is a fact about the host, though not about its level.
    """
    regimes = []
    filtered: list[Belief] = []
    last_good_s = 0.0
    doubtful: Belief | None = None
    for each in seen:
        if not filtered:
            filtered, last_good_s = [each], each.time_s
            continue
        predicted = filtered[-1].after(each.time_s, drift_per_s)
        far = is_far(each, predicted)
        if far and doubtful and (doubtful.level > predicted.level) == (each.level > predicted.level):
            regimes.append(_smooth(filtered, drift_per_s, last_good_s))
            filtered = [doubtful, doubtful.after(each.time_s, drift_per_s).learn(each)]
            doubtful, last_good_s = None, each.time_s
            continue
        if doubtful:
            filtered.append(_learn_doubtful(filtered[-1], doubtful, drift_per_s))
        if far:
            doubtful = each
        else:
            filtered.append(filtered[-1].after(each.time_s, drift_per_s).learn(each))
            doubtful, last_good_s = None, each.time_s
    if doubtful:
        filtered.append(_learn_doubtful(filtered[-1], doubtful, drift_per_s))
    if filtered:
        regimes.append(_smooth(filtered, drift_per_s, last_good_s))
    return tuple(regimes)


def _learn_doubtful(before: Belief, seen: Belief, drift_per_s: float) -> Belief:
    predicted = before.after(seen.time_s, drift_per_s)
    distance = seen.level - predicted.level
    return predicted.learn(replace(seen, variance=max(seen.variance, distance**2 - predicted.variance)))


def _smooth(filtered: Sequence[Belief], drift_per_s: float, last_good_s: float) -> Regime:
    smoothed = [filtered[-1]]
    for believed in reversed(filtered[:-1]):
        predicted = believed.after(smoothed[-1].time_s, drift_per_s)
        smoothed.append(believed.revise(predicted, smoothed[-1]))
    return Regime(
        first_s=filtered[0].time_s,
        last_good_s=last_good_s,
        filtered=tuple(filtered),
        smoothed=tuple(reversed(smoothed)),
    )
