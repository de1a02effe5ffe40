"""What configurations give differently from host to host, beyond what the hosts' own levels explain.

A random interaction of configuration and host: on host h a configuration gives f(x) + g_h(x), where g_h
has the variance τ² for every x but the default, of which it is 0. What two configurations change alike they
share; so a setting that one host does not bear is known by all configurations that have it.

τ is known only from configurations that were measured on several hosts. Its prior is a half-Cauchy
distribution (Gelman, "Prior distributions for variance parameters in hierarchical models", Bayesian
Analysis 1, 2006): alike hosts shrink it to nearly nothing, and unlike ones are believed. The likelihood is
that of random effects with the mean integrated out (Röver, "Bayesian random-effects meta-analysis", Journal
of Statistical Software 93, 2020).

Symbols: τ `sd`, one of `SDS`; of one configuration, y_h `log_ratio` and v_h `variance` of its effect on
host h; w_h = 1 / (v_h + τ²).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuner.optimize.encoding import Points

USUAL_SD = 0.01
"""Median of τ beforehand, in log points."""
SDS = np.geomspace(1e-3, 1.0, 61)
"""Values of τ that are weighed against each other."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one configuration gives over the default on one host, as its trials there show it."""

    log_ratio: float
    variance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """Covariances of what configurations give differently on hosts."""

    sd: float
    """τ: standard deviation of what one configuration gives on a host, around what it gives on all."""
    default: Points
    """Shape (1, d)."""
    is_choice: NDArray[np.bool_]
    """Which columns of the points have no order, shape (d,)."""

    def covariances(
        self, one: Points, of_one: Sequence[str | None], other: Points, of_other: Sequence[str | None]
    ) -> Array:
        """Return those between points (n, d) and (m, d) on hosts; None stands for all hosts together.

        What points give on all hosts together has no part in it.
        """
        names = sorted({host for host in (*of_one, *of_other) if host is not None})
        numbers: dict[str | None, int] = {host: number for number, host in enumerate(names)}
        here = np.array([numbers.get(host, -1) for host in of_one], dtype=int)
        there = np.array([numbers.get(host, -2) for host in of_other], dtype=int)
        is_same = here[:, None] == there[None, :]
        return np.asarray(self.sd**2 * is_same * self._overlap(one, other))

    def _overlap(self, one: Points, other: Points) -> Array:
        """Return which share of what they change two points change alike, in shape (n, m); 1 with itself."""
        alike = np.zeros((len(one), len(other)))
        for column, is_choice in enumerate(self.is_choice):
            first, second = _fill(one[:, column]), _fill(other[:, column])
            usual = _fill(self.default[:, column])[0]
            # Most points change few columns.
            changed = np.ix_(np.flatnonzero(first != usual), np.flatnonzero(second != usual))
            apart = np.abs(first[changed[0]] - second[changed[1]])
            alike[changed] += apart == 0 if is_choice else np.exp(-apart)
        scale = np.sqrt(np.outer(self._count(one), self._count(other)))
        return np.asarray(np.divide(alike, scale, out=np.zeros_like(alike), where=scale > 0))

    def _count(self, points: Points) -> Array:
        """Return how many columns points change, shape (n,)."""
        return np.asarray((_fill(points) != _fill(self.default)).sum(axis=1), dtype=np.float64)


def _fill(points: Array) -> Array:
    """Return points in which what is switched off is a value of its own."""
    return np.nan_to_num(points, nan=-1.0)


def estimate_sd(effects: Iterable[Mapping[str, Effect]]) -> float:
    """Return the median of what τ may be, given what configurations gave on each host: host → effect."""
    log_weights = -np.log1p((SDS / USUAL_SD) ** 2) + np.log(SDS)
    for by_host in effects:
        if len(by_host) > 1:
            log_weights += _log_likelihood([*by_host.values()])
    weights = np.exp(log_weights - log_weights.max())
    return float(np.interp(0.5, np.cumsum(weights) / weights.sum(), SDS))


def _log_likelihood(effects: Sequence[Effect]) -> Array:
    """Return that of each of `SDS` for one configuration, but for a constant."""
    logs = np.array([each.log_ratio for each in effects])
    variances = np.array([each.variance for each in effects])
    weights = 1 / (variances[None, :] + SDS[:, None] ** 2)
    total = weights.sum(axis=1)
    mean = (weights * logs).sum(axis=1) / total
    away = (weights * (logs[None, :] - mean[:, None]) ** 2).sum(axis=1)
    return np.asarray(0.5 * (np.log(weights).sum(axis=1) - np.log(total) - away))
