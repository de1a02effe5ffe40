"""The noise of a host: what can be proved in it, and how to spend the seconds.

The model of log goodput y of window j in trial s of configuration c at time t is

    y = β(t) + δ_c + b_s + e_sj,    b ~ N(0, σ_b²),  e ~ N(0, σ_w²),  β a random walk with variance q·Δt.

Variance is kept per level because windows of one trial share b_s: repeating is worth most where the
variance is (Kalibera & Jones, "Rigorous benchmarking in reasonable time", ISMM 2013,
doi 10.1145/2464157.2464160).

Symbols: σ_w `sigma_window`, σ_b `sigma_trial`, q `drift_per_s`; m windows of a trial; c̄ mean of a baseline's
windows; V(h) semivariance of baselines that stand h places apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, stdtrit

from tuner.records import Role, Trial

PRIOR_DEGREES = 5.0
"""Of the spread between windows."""
PRIOR_DEGREES_TRIAL = 2.0
"""Of the spread between trials and of drift. With 5 a host whose trials vary by 12 % was taken for one of 8 %
after the calibration's few baseline trials."""
PRIOR_DRIFT_PER_S = 0.01**2 / 300
"""The level wanders by about 1 % in five minutes."""
OUTLIER_SD = 4.0
"""A difference counts with at most so many robust SDs: a stall or a jump of the level is no noise, and one
of them must not blind the rules that look for it. The same as the baseline's alarm; bursts of 5 σ_w pass."""
LAGS = 4
UNCERTAIN_FACTOR = 4.0
"""Variance of a trial that never became steady, or whose generator was the limit, relative to others'
(measurement protocol)."""
MAX_WINDOWS = 6
MAX_PAIRS = 40
BASELINE_INTERVALS = ((0.1, 8), (0.5, 6))
LEAST_BASELINE_INTERVAL = 4
"""Up to which ratio of drift to noise how many trials lie between baselines; beyond, the least. Where they
alone track the drift, half as many trials between them are best (variance × cost of optimally weighted
baselines under a random walk: three is within 17 % of the best for ratios of 0.05 to 4); beside a model of
all trials the candidates track it as well."""
POWER = 0.8
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Noise of log goodput on one host, as standard deviations on the log scale (0.03 is 3 %)."""

    PRIOR: ClassVar["Noise"]

    sigma_window: float
    """Between windows of one trial."""
    sigma_trial: float
    """Between trials of one configuration, beyond what their windows explain."""
    drift_per_s: float
    """Variance that the host's level gains per second."""
    degrees_window: float
    """Degrees of freedom behind `sigma_window`, the prior's included."""
    degrees_trial: float


Noise.PRIOR = Noise(
    sigma_window=0.03,
    sigma_trial=0.02,
    drift_per_s=PRIOR_DRIFT_PER_S,
    degrees_window=PRIOR_DEGREES,
    degrees_trial=PRIOR_DEGREES_TRIAL,
)


def estimate_noise(trials: Sequence[Trial]) -> Noise:
    """Estimate the noise: σ_w within all trials, σ_b and drift from the baseline trials alone.

    Each is shrunk towards its prior, which is worth a few degrees of freedom. That of σ_b is two thirds of
    this host's σ_w, not a fixed 2 %: hosts differ tenfold in noise, and windows of 1 s on two shared cores
    vary by 8 % and more, where a fixed prior left intervals of speedups with 87–90 % coverage.
    """
    prior = Noise.PRIOR
    counted = [trial for trial in trials if trial.counts and not trial.has_collapsed]
    squares, degrees = _within(counted)
    window_variance = _shrink(prior.sigma_window**2, squares, degrees)
    baselines = sorted(
        (trial for trial in counted if trial.role is Role.BASELINE),
        key=lambda trial: (trial.host, trial.started_s),
    )
    usual = _usual(window_variance)
    between, drift, trial_degrees = _between(baselines, window_variance)
    return Noise(
        sigma_window=math.sqrt(window_variance),
        sigma_trial=math.sqrt(_shrink(usual, between * trial_degrees, trial_degrees, PRIOR_DEGREES_TRIAL)),
        drift_per_s=_shrink(prior.drift_per_s, drift * trial_degrees, trial_degrees, PRIOR_DEGREES_TRIAL),
        degrees_window=PRIOR_DEGREES + degrees,
        degrees_trial=PRIOR_DEGREES_TRIAL + trial_degrees,
    )


def _usual(window_variance: float) -> float:
    """Return the σ_b² to expect of a host with this σ_w²."""
    return window_variance * (Noise.PRIOR.sigma_trial / Noise.PRIOR.sigma_window) ** 2


def _shrink(
    prior: float, sum_of_squares: float, degrees: float, prior_degrees: float = PRIOR_DEGREES
) -> float:
    return (prior_degrees * prior + sum_of_squares) / (prior_degrees + degrees)


def _within(trials: Sequence[Trial]) -> tuple[float, int]:
    """Pool the squared deviations of windows from their trial's mean; returns their sum and degrees."""
    variances: list[float] = []
    degrees: list[int] = []
    for trial in trials:
        logs = [window.log_value for window in trial.valid_windows]
        if len(logs) > 1:
            mean = fmean(logs)
            variances.append(sum((log - mean) ** 2 for log in logs) / (len(logs) - 1))
            degrees.append(len(logs) - 1)
    if not variances:
        return 0.0, 0
    counts = np.asarray(degrees, dtype=float)
    most = _most(np.asarray(variances), counts, Noise.PRIOR.sigma_window**2)
    return float(np.sum(np.minimum(variances, most) * counts)), int(counts.sum())


def _most(variances: NDArray[np.float64], degrees: NDArray[np.float64], prior: float) -> float:
    """Return the most that one variance counts: `OUTLIER_SD`² times their robust centre.

    The centre is the lower median of the variances, each divided by the median of its χ² distribution.
    """
    scaled = np.sort(variances * degrees / chdtri(degrees, 0.5))
    return OUTLIER_SD**2 * _shrink(prior, float(scaled[(len(scaled) - 1) // 2]) * len(scaled), len(scaled))


def _between(baselines: Sequence[Trial], window_variance: float) -> tuple[float, float, float]:
    """Fit the variogram of the baseline means; returns σ_b², drift per second and degrees of freedom.

    V(h) = ½ mean (c̄_{i+h} − c̄_i)² ≈ σ_b² + σ_w²/m + ½ q Δt is immune to slow drift, which an ordinary
    variance is not (Matheron, "Principles of geostatistics", Economic Geology 58, 1963). Least squares over
    the lags 1 to 4, weighted by their number of differences, against the mean Δt of the lag; both
    parameters at least 0. Sessions of an interrupted study are not compared: hours lie between them.
    """
    lags = [pairs for lag in range(1, LAGS + 1) if (pairs := _pairs(baselines, lag))]
    if not lags:
        return 0.0, 0.0, 0.0
    of_windows = window_variance * fmean(1 / len(trial.valid_windows) for trial in baselines)
    nearest = _squares(lags[0])
    most = _most(nearest, np.ones(len(nearest)), _usual(window_variance) + of_windows)
    semivariance = np.asarray([np.mean(np.minimum(_squares(pairs), most)) - of_windows for pairs in lags])
    apart_s = np.asarray([fmean(later.started_s - earlier.started_s for earlier, later in p) for p in lags])
    weight = np.asarray([float(len(pairs)) for pairs in lags])
    middle = np.average(apart_s, weights=weight)
    spread = float(np.sum(weight * (apart_s - middle) ** 2))
    slope = float(np.sum(weight * (apart_s - middle) * semivariance)) / spread if spread > 0 else 0.0
    intercept = float(np.average(semivariance, weights=weight)) - max(slope, 0.0) * middle
    if intercept < 0 < slope:
        intercept = 0.0
        slope = float(np.sum(weight * apart_s * semivariance) / np.sum(weight * apart_s**2))
    return max(intercept, 0.0), 2 * max(slope, 0.0), _degrees(len(nearest))


def _degrees(differences: int) -> float:
    """Return the degrees of freedom of the mean square of so many successive differences.

    Neighbours share a baseline trial, so that m of them tell as much as 2m² / (3m − 1) independent ones (von
    Neumann, Annals of Mathematical Statistics 12, 1941). In 50,000 simulated series of normal numbers it was
    2.2, 3.6, 8.8 and 26.1 for 3, 5, 13 and 39 differences.
    """
    return 2 * differences**2 / (3 * differences - 1)


def _pairs(baselines: Sequence[Trial], lag: int) -> list[tuple[Trial, Trial]]:
    """Pair each baseline trial with the one so many places later in the same session."""
    pairs = zip(baselines, baselines[lag:], strict=False)
    return [(earlier, later) for earlier, later in pairs if earlier.session == later.session]


def _squares(pairs: Sequence[tuple[Trial, Trial]]) -> NDArray[np.float64]:
    """Return half the squared difference of each pair."""
    logs = np.asarray([(earlier.log_value, later.log_value) for earlier, later in pairs], dtype=float)
    halves: NDArray[np.float64] = 0.5 * (logs[:, 1] - logs[:, 0]) ** 2
    return halves


def trial_variance(noise: Noise, windows: int, certain: bool = True) -> float:  # noqa: FBT001, FBT002 - reads well
    """Return the variance of one trial's mean log goodput around its configuration's."""
    variance = noise.sigma_trial**2 + noise.sigma_window**2 / max(windows, 1)
    return variance if certain else UNCERTAIN_FACTOR * variance


def pair_sd(noise: Noise, windows: int) -> float:
    """Return the SD of the log ratio of two fresh trials."""
    return math.sqrt(2 * trial_variance(noise, windows))


def half_width(noise: Noise, *, pairs: int, windows: int) -> float:
    """Return the expected half-width of the 95 % t interval of the gain, as ratio − 1."""
    return math.expm1(t_quantile(pairs, CONFIDENCE) * pair_sd(noise, windows) / math.sqrt(pairs))


def t_quantile(pairs: int, confidence: float) -> float:
    """Return how many standard errors the two-sided t interval of so many pairs reaches."""
    return float(stdtrit(pairs - 1, (1 + confidence) / 2))


def detectable_gain(noise: Noise, *, pairs: int, windows: int) -> float:
    """Return the gain that a two-sided 95 % t test on so many pairs finds with 80 % power, as ratio − 1."""
    quantiles = stdtrit(pairs - 1, np.asarray([(1 + CONFIDENCE) / 2, POWER]))
    return math.expm1(float(quantiles.sum()) * pair_sd(noise, windows) / math.sqrt(pairs))


def baseline_interval(noise: Noise, slot_s: float, windows: int) -> int:
    """Return how many other trials, each `slot_s` long, lie between two baseline trials."""
    ratio = noise.drift_per_s * slot_s / max(trial_variance(noise, windows), 1e-12)
    return next(
        (interval for limit, interval in BASELINE_INTERVALS if ratio < limit), LEAST_BASELINE_INTERVAL
    )


def size_pairs(noise: Noise, *, seconds: float, trial_cost_s: float, window_s: float) -> tuple[int, int]:
    """Return pairs and windows per trial with which given seconds give the narrowest interval.

    What is best for a variance, √(c_start/c_window · σ_w²/σ_b²) windows (Kalibera & Jones 2013, optimal
    repetition counts), is not best for an interval from few pairs: t with three degrees of freedom costs more
    than windows save. So all choices of two or more pairs are compared.
    """
    choices = [
        (max(2, min(MAX_PAIRS, int(seconds / (2 * (trial_cost_s + windows * window_s))))), windows)
        for windows in range(1, MAX_WINDOWS + 1)
    ]
    return min(choices, key=lambda choice: half_width(noise, pairs=choice[0], windows=choice[1]))
