"""The baseline level: what the default would have given at any time, and speedups relative to it.

Absolute goodput of a shared host is worth little: identical systems were reported as up to 38 % apart
(Abedi & Brecht, "Conducting repeatable experiments in highly variable cloud computing environments", ICPE
2017, doi 10.1145/3030207.3030229). So the default is measured again and again, and everything else is a ratio
to its level at that time.

The level is a random walk seen with noise (Harvey, "Forecasting, Structural Time Series Models and the
Kalman Filter", 1989, section 2.3; Kalman 1960 for the filter, Rauch, Tung & Striebel 1965 for the smoother).

Symbols: β `level` with variance P; c̄ mean log value of one baseline, with variance R = σ_b² + σ_w² / m; q
`drift_per_s`; K gain of the filter, J that of the smoother; index s: smoothed, t+1|t: predicted.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from statistics import median

import numpy as np
from scipy.special import ndtri

from tuner.errors import TargetError
from tuner.records import Metric, Role, Trial, is_censored
from tuner.statistics.noise import Noise, trial_variance

ALARM_SD = 4.0
"""A baseline farther than this from its prediction is measured again (measurement protocol; with normal noise
one baseline trial in 16 000)."""
UNSTABLE_SD = 0.10
UNSTABLE_FACTOR = 3.0
UNSTABLE_TRIALS = 3
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelEstimate:
    """The level at one time, as known or as one baseline trial shows it."""

    time_s: float
    level: float
    variance: float

    def predict(self, time_s: float, drift_per_s: float) -> "LevelEstimate":
        """Predict another time, earlier or later: the random walk adds its variance."""
        return replace(self, time_s=time_s, variance=self.variance + drift_per_s * abs(time_s - self.time_s))

    def update(self, seen: "LevelEstimate") -> "LevelEstimate":
        """Update with an observation at the same time: K = P/(P+R), β += K(c̄−β), P = (1−K)P."""
        gain = self.variance / (self.variance + seen.variance)
        return LevelEstimate(
            time_s=seen.time_s,
            level=self.level + gain * (seen.level - self.level),
            variance=(1 - gain) * self.variance,
        )

    def smooth(self, predicted: "LevelEstimate", smoothed: "LevelEstimate") -> "LevelEstimate":
        """Smooth with what came later: J = P_t/P_{t+1|t}, β += J(β_s−β_{t+1|t}), P += J²(P_s−P_{t+1|t})."""
        share = self.variance / predicted.variance if predicted.variance > 0 else 0.0
        return LevelEstimate(
            time_s=self.time_s,
            level=self.level + share * (smoothed.level - predicted.level),
            variance=self.variance + share**2 * (smoothed.variance - predicted.variance),
        )


def reference_logs(baselines: Sequence[Trial]) -> list[tuple[Trial, float]]:
    """Return the baselines that tell the level, each with the log value that it stands for.

    One that has collapsed tells nothing of the host. Where all have, all stand for their median: how little
    gets through is chance, and the host is taken for as steady as can be.
    """
    counted = [(trial, trial.log_value or 0.0) for trial in baselines if trial.counts]
    sound = [(trial, log) for trial, log in counted if not trial.has_collapsed]
    if sound or not counted:
        return sound
    middle = median(log for _, log in counted)
    return [(trial, middle) for trial, _ in counted]


def _observe(baseline: Trial, noise: Noise, log: float) -> LevelEstimate:
    """Return the level that one baseline trial shows, in the middle of its windows."""
    return LevelEstimate(
        time_s=middle_s(baseline),
        level=log,
        variance=trial_variance(noise, len(baseline.valid_windows), baseline.steady),
    )


def middle_s(trial: Trial) -> float:
    """Return the time that a trial's windows stand for, in seconds since the epoch."""
    windows = trial.valid_windows
    if not windows:
        return trial.started_s
    return sum(window.started_s + window.duration_s / 2 for window in windows) / len(windows)


def _is_far(seen: LevelEstimate, predicted: LevelEstimate) -> bool:
    """Return whether an observation is more than 4·√(P+R) from its prediction."""
    return abs(seen.level - predicted.level) > ALARM_SD * math.sqrt(predicted.variance + seen.variance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """A stretch of time without a jump of the level."""

    first_s: float
    last_good_s: float
    """Time of its last baseline trial that was where it was expected."""
    filtered: tuple[LevelEstimate, ...]
    smoothed: tuple[LevelEstimate, ...] = field(repr=False)

    def at(self, time_s: float, drift_per_s: float) -> LevelEstimate:
        """Return the level at any time: smoothed between baseline trials, carried on outside of them."""
        later = next((i for i, each in enumerate(self.smoothed) if each.time_s >= time_s), None)
        if later is None:
            return self.filtered[-1].predict(time_s, drift_per_s)
        if later == 0:
            return self.smoothed[0].predict(time_s, drift_per_s)
        here = self.filtered[later - 1].predict(time_s, drift_per_s)
        predicted = here.predict(self.smoothed[later].time_s, drift_per_s)
        return here.smooth(predicted, self.smoothed[later])


def _find_regimes(seen: Sequence[LevelEstimate], drift_per_s: float) -> tuple[Regime, ...]:
    """Filter the observations in order of time and begin anew at every confirmed jump.

    A jump is confirmed when two baselines in a row are far off on the same side. One that is alone stays,
    with the variance that its distance shows: it is a fact about the host, though not about its level.
    """
    regimes = []
    filtered: list[LevelEstimate] = []
    last_good_s = 0.0
    doubtful: LevelEstimate | None = None
    for each in seen:
        if not filtered:
            filtered, last_good_s = [each], each.time_s
            continue
        predicted = filtered[-1].predict(each.time_s, drift_per_s)
        far = _is_far(each, predicted)
        if far and doubtful and (doubtful.level > predicted.level) == (each.level > predicted.level):
            regimes.append(_smooth(filtered, drift_per_s, last_good_s))
            filtered = [doubtful, doubtful.predict(each.time_s, drift_per_s).update(each)]
            doubtful, last_good_s = None, each.time_s
            continue
        if doubtful:
            filtered.append(_update_with_doubtful(filtered[-1], doubtful, drift_per_s))
        if far:
            doubtful = each
        else:
            filtered.append(filtered[-1].predict(each.time_s, drift_per_s).update(each))
            doubtful, last_good_s = None, each.time_s
    if doubtful:
        filtered.append(_update_with_doubtful(filtered[-1], doubtful, drift_per_s))
    if filtered:
        regimes.append(_smooth(filtered, drift_per_s, last_good_s))
    return tuple(regimes)


def _update_with_doubtful(before: LevelEstimate, seen: LevelEstimate, drift_per_s: float) -> LevelEstimate:
    predicted = before.predict(seen.time_s, drift_per_s)
    distance = seen.level - predicted.level
    return predicted.update(replace(seen, variance=max(seen.variance, distance**2 - predicted.variance)))


def _smooth(filtered: Sequence[LevelEstimate], drift_per_s: float, last_good_s: float) -> Regime:
    smoothed = [filtered[-1]]
    for each in reversed(filtered[:-1]):
        predicted = each.predict(smoothed[-1].time_s, drift_per_s)
        smoothed.append(each.smooth(predicted, smoothed[-1]))
    return Regime(
        first_s=filtered[0].time_s,
        last_good_s=last_good_s,
        filtered=tuple(filtered),
        smoothed=tuple(reversed(smoothed)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineLevel:
    """Level of the default's log goodput over time."""

    regimes: tuple[Regime, ...]
    noise: Noise

    @classmethod
    def fit(cls, baselines: Sequence[Trial], noise: Noise) -> "BaselineLevel":
        """Filter and smooth all baseline trials that count, in whatever order they come.

        Raises:
            TargetError: none of them counts.
        """
        seen = [_observe(trial, noise, log) for trial, log in reference_logs(baselines)]
        if not seen:
            raise TargetError(
                f"baseline level: none of {len(baselines)} trials of the default gave a measurement. Read "
                "the log of the study for the reasons."
            )
        return cls(
            regimes=_find_regimes(sorted(seen, key=attrgetter("time_s")), noise.drift_per_s), noise=noise
        )

    def at(self, time_s: float) -> tuple[float, float]:
        """Return level and variance at a time: smoothed in the past, predicted beyond the last baseline.

        Between the last good baseline trial before a jump and the first after it, the level may be either:
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

    def alarm(self, baseline: Trial) -> bool:
        """Return whether a new baseline, not among the fitted, is more than 4·√(P+R) from its prediction."""
        seen = _observe(baseline, self.noise, baseline.log_value or 0.0)
        level, variance = self.at(seen.time_s)
        return _is_far(seen, LevelEstimate(time_s=seen.time_s, level=level, variance=variance))

    @property
    def jumps(self) -> tuple[tuple[float, float], ...]:
        """Confirmed jumps: time of the last good baseline trial before and of the first one after."""
        pairs = zip(self.regimes, self.regimes[1:], strict=False)
        return tuple((before.last_good_s, after.first_s) for before, after in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """Goodput relative to the baseline level at that time, as a log ratio with its variance."""

    log_ratio: float
    variance: float

    @property
    def ratio(self) -> float:
        return math.exp(self.log_ratio)

    def interval(self, level: float = CONFIDENCE) -> tuple[float, float]:
        """Return the ends of the normal interval, as ratios."""
        reach = float(ndtri((1 + level) / 2)) * math.sqrt(self.variance)
        return math.exp(self.log_ratio - reach), math.exp(self.log_ratio + reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLevels:
    """The baseline level of each host of a study; what one host gives says nothing of another's."""

    by_host: Mapping[str, BaselineLevel]

    @classmethod
    def fit(cls, baselines: Sequence[Trial], noise: Noise) -> "HostLevels":
        """Fit each host by its own baselines; one without any that counts has no level."""
        groups: dict[str, list[Trial]] = {}
        for trial in baselines:
            if trial.counts:
                groups.setdefault(trial.host, []).append(trial)
        return cls(by_host={host: BaselineLevel.fit(group, noise) for host, group in groups.items()})

    def knows(self, trial: Trial) -> bool:
        """Return whether the default was measured on the host of a trial."""
        return trial.host in self.by_host

    def at(self, trial: Trial) -> tuple[float, float]:
        """Return level and variance of a trial's host when it was measured."""
        return self.by_host[trial.host].at(middle_s(trial))


def speedups(trials: Sequence[Trial], noise: Noise) -> dict[int, Speedup]:
    """Return the speedup of every trial that counts, by its number; nothing before the first baseline trial.

    Every new baseline revises the past: the level is smoothed over all of them, anew after confirmed jumps.
    The variance holds σ_b², σ_w²/n and the level's own; of a trial that was not steady, or whose goodput is
    only a lower bound, four times the first two.
    """
    fitted = HostLevels.fit([trial for trial in trials if trial.role is Role.BASELINE], noise)
    found = {}
    for trial in trials:
        log = trial.log_value
        if trial.counts and log is not None and fitted.knows(trial):
            level, variance = fitted.at(trial)
            certain = trial.steady and not is_lower_bound(trial)
            own = trial_variance(noise, len(trial.valid_windows), certain)
            found[trial.number] = Speedup(log_ratio=log - level, variance=own + variance)
    return found


def is_lower_bound(trial: Trial) -> bool:
    """Return whether what is compared of a trial is only a lower bound: goodput of a busy load generator."""
    windows = trial.valid_windows
    return is_censored(windows) and all(window.metric is Metric.GOODPUT for window in windows)


def combine(repeats: Sequence[Speedup], noise: Noise = Noise.PRIOR) -> Speedup:
    """Combine repeats of one configuration, weighted by inverse variance.

    Repeats are trials, so each brings its own σ_b². Where they disagree more than their variances say, the
    variance grows: reduced χ² (Birge, Physical Review 40, 1932) pooled with the degrees behind σ_b.

    Raises:
        ValueError: there is nothing to combine.
    """
    if not repeats:
        raise ValueError("speedups: there is no repeat to combine. Pass at least one repeat.")
    weights = [1 / max(each.variance, 1e-12) for each in repeats]
    mean = sum(w * each.log_ratio for w, each in zip(weights, repeats, strict=True)) / sum(weights)
    chi_square = sum(w * (each.log_ratio - mean) ** 2 for w, each in zip(weights, repeats, strict=True))
    degrees = noise.degrees_trial
    excess = (degrees + chi_square) / (degrees + len(repeats) - 1)
    return Speedup(log_ratio=mean, variance=max(1.0, excess) / sum(weights))


def is_unstable(repeats: Sequence[Speedup]) -> bool:
    """Return whether trials of one configuration scatter too much to promise anything, from three trials on.

    More than 10 %, and more than three times what their variances say. The protocol's limit of 3 σ_b is the
    same where windows are long; trials of two windows of 1 s scatter by their windows alone, and on a noisy
    host good configurations were lost. TUNA (arXiv 2503.01801) calls a relative range of 30 % unstable; on
    hosts whose default scatters as much that tells nothing.
    """
    if len(repeats) < UNSTABLE_TRIALS:
        return False
    spread = float(np.std([each.log_ratio for each in repeats], ddof=1))
    expected = math.sqrt(float(np.mean([each.variance for each in repeats])))
    return spread > max(UNSTABLE_FACTOR * expected, UNSTABLE_SD)
