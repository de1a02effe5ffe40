"""Failure rates of configurations, as posteriors from the counts of all their trials. Pure.

Failures come in bursts, and one trial has more of them than another with the same configuration. So the
counts of a trial are beta-binomial: its own rate is drawn around the configuration's, with the correlation ρ
between requests of one trial (Williams, "The analysis of binary responses from toxicological experiments
involving reproduction and teratogenicity", Biometrics 31, 1975). n requests then tell as much as
n / (1 + (n − 1)·ρ) independent ones. One ρ serves all configurations of a study, and is integrated out.

No check sees everything: now and then a trial goes wrong through no fault of its configuration. The trials of
a sound configuration do so with probability `ACCIDENTS`; those of an unsound one do so often.

Symbols: p one of `RATES`, ρ one of `CORRELATIONS`; k of n requests of a trial failed (`Counts`), where k is
beta-binomial with n, α = p · κ and β = (1 − p) · κ, κ = 1 / ρ − 1 (`size`).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tuner.records import Window

Array = NDArray[np.float64]

LEAST_RATE = 1e-6
"""No study sends the requests that it would take to tell lower rates apart."""
CELLS = 200
EDGES: Array = np.linspace(math.log(LEAST_RATE), 0.0, CELLS + 1)
"""Of the cells into which rates are sorted, as logarithms: each is 7 % wide. A priori all are equally likely,
as befits a rate of which not even the order of magnitude is known."""
RATES: Array = np.exp((EDGES[:-1] + EDGES[1:]) / 2)
CORRELATIONS: Array = np.logspace(-5.5, -0.5, 12)
"""At a rate of `USUAL_RATE`; it grows with the root of the rate. Were it the same at all rates, trials with
high rates would be taken for too alike; were it proportional to them, trials with low ones."""
USUAL_RATE = 1e-3
MOST_KEPT = 1024
"""Configurations whose likelihoods are kept, of 40 KB each."""
MOST_CORRELATION = 0.5
PRIOR_CORRELATION = 10**-3.5
"""2,000 requests of one trial then tell as much as 1,200 independent ones, 20,000 as much as 2,700."""
PRIOR_CORRELATION_DECADES = 1.0
"""Standard deviation of its common logarithm."""
ACCIDENTS = 0.03
"""Share of a sound configuration's trials that fail all the same, or whose counts mean nothing."""
UNSOUND = 0.1
"""Share of configurations whose trials often go wrong."""
UNSOUND_SHARES = (0.31, 0.75, 0.97)
"""Share of their trials that do: the middles of the thirds of a Beta(1, ½) distribution, since most of them
never work. So one failed trial of one leaves 29 % that the configuration is sound, two of two leave 2 %, and
one of ten leaves 97 %."""
LEAST_ACCIDENT = 0.01
"""Least rate of a trial that went wrong; below, the spread between trials explains it."""
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Counts:
    """Failed and all requests of one trial; none at all of one that failed."""

    failed: int = 0
    requests: int = 0

    @classmethod
    def of(cls, windows: Sequence[Window]) -> "Counts":
        """Return those of the windows of one trial."""
        failed = sum(window.failures.total for window in windows)
        return cls(failed=failed, requests=failed + sum(window.correct for window in windows))


@dataclass(frozen=True, slots=True, kw_only=True)
class CredibleInterval:
    """A figure with the 95 % interval of its posterior."""

    value: float
    """As it was seen."""
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRate:
    """What is known of the failures of one configuration."""

    shares: Array
    """Probability of each cell of `RATES`; they sum to 1."""
    sound_shares: Array
    """The part of it with which the configuration is sound."""
    failed: int
    requests: int
    trials: int
    failed_trials: int
    """Of all trials."""

    @property
    def p_sound(self) -> float:
        """The probability that its trials go wrong by accident only."""
        return float(self.sound_shares.sum())

    def at_most(self, limit: float) -> float:
        """Return the probability that it is sound and its rate at most so high.

        No count of requests can show that none ever fails: a limit of 0 is kept until one has failed.
        """
        if limit <= 0:
            return 0.0 if self.failed else self.p_sound
        return float(np.interp(math.log(limit), EDGES, _cumulate(self.sound_shares)))

    def at_most_that_of(self, other: "FailureRate", *, factor: float, least: float) -> float:
        """Return the probability that it is sound and its rate at most `factor` · another one, or `least`."""
        limits = np.log(np.maximum(factor * RATES, least))
        return float(other.shares @ np.interp(limits, EDGES, _cumulate(self.sound_shares)))

    def interval(self) -> CredibleInterval:
        """Return the rate as it was seen, with its interval; from 0 on where nothing failed."""
        tail = (1 - CONFIDENCE) / 2
        low, high = np.exp(np.interp([tail, 1 - tail], _cumulate(self.shares), EDGES))
        seen = self.failed / self.requests if self.requests else 0.0
        return CredibleInterval(
            value=seen, low=min(float(low), seen) if self.failed else 0.0, high=max(float(high), seen)
        )


def _cumulate(shares: Array) -> Array:
    """Return the probabilities of rates up to each of `EDGES`."""
    return np.concatenate([[0.0], np.cumsum(shares)])


class FailureRates:
    """The posteriors of all configurations of a study."""

    def __init__(self, counts: Mapping[Hashable, Sequence[Counts]]) -> None:
        """Fit to the counts of every trial, by configuration; one without any trials has the prior."""
        self._trials = {key: tuple(sorted(each)) for key, each in counts.items()}
        decades = np.log10(CORRELATIONS / PRIOR_CORRELATION) / PRIOR_CORRELATION_DECADES
        evidence = [
            _likelihood(each).evidence
            for each in self._trials.values()
            # Where nothing failed, nothing differs: a high ρ would explain that as well as low rates do.
            if any(trial.failed for trial in each)
        ]
        of_correlation = np.sum([-(decades**2) / 2, *evidence], axis=0)
        self._of_correlation: Array = of_correlation - _log_sum(of_correlation, axis=0)
        self._found: dict[Hashable, FailureRate] = {}

    def of(self, key: Hashable) -> FailureRate:
        """Return the posterior of one configuration; the prior when it is not known."""
        if key not in self._found:
            self._found[key] = self._find(key)
        return self._found[key]

    def _find(self, key: Hashable) -> FailureRate:
        trials = self._trials.get(key, ())
        likelihood = _likelihood(trials)
        weights = (self._of_correlation - likelihood.evidence)[:, None]
        sound, unsound = np.exp(likelihood.logs + weights).sum(axis=1)
        return FailureRate(
            shares=sound + unsound,
            sound_shares=sound,
            failed=sum(each.failed for each in trials),
            requests=sum(each.requests for each in trials),
            trials=len(trials),
            failed_trials=sum(not each.requests for each in trials),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Likelihood:
    logs: Array
    """Log of prior times likelihood, shape (2, ρ, rates): of a sound configuration, and of an unsound one."""
    evidence: Array
    """The same summed over both and over the rates, shape (ρ,)."""


@lru_cache(maxsize=MOST_KEPT)
def _likelihood(trials: tuple[Counts, ...]) -> _Likelihood:
    """Return what the trials of one configuration say. Kept: a new trial changes one configuration only."""
    often = np.asarray([ACCIDENTS, *UNSOUND_SHARES])[:, None, None]
    total = np.zeros((len(often), len(CORRELATIONS), CELLS))
    for trial in trials:
        if not trial.requests:
            total += np.log(often)
            continue
        log = _log_beta_binomial(trial)
        accident = _log_sum(log[:, RATES >= LEAST_ACCIDENT], axis=1)[:, None]
        accident -= math.log(np.count_nonzero(RATES >= LEAST_ACCIDENT))
        total += np.logaddexp(np.log1p(-often) + log, np.log(often) + accident)
    unsound = _log_sum(total[1:], axis=0) + math.log(UNSOUND / len(UNSOUND_SHARES))
    logs = np.asarray([total[0] + math.log1p(-UNSOUND), unsound])
    return _Likelihood(logs=logs, evidence=_log_sum(logs, axis=(0, 2)))


def _log_beta_binomial(trial: Counts) -> Array:
    """Return the log likelihood of one trial's counts, shape (ρ, rates), but for what all have in common."""
    correlation = CORRELATIONS[:, None] * np.sqrt(RATES / USUAL_RATE)
    size = 1 / np.minimum(correlation, MOST_CORRELATION) - 1
    alpha, beta = RATES * size, (1 - RATES) * size
    log = gammaln(trial.failed + alpha) - gammaln(alpha)
    log += gammaln(trial.requests - trial.failed + beta) - gammaln(beta)
    return np.asarray(log + gammaln(size) - gammaln(trial.requests + size))


def _log_sum(logs: Array, *, axis: int | tuple[int, ...]) -> Array:
    """Return the logarithm of a sum of exponentials."""
    most = logs.max(axis=axis, keepdims=True)
    return np.asarray(np.log(np.exp(logs - most).sum(axis=axis)) + most.squeeze(axis=axis))
