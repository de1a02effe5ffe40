"""The model of a study: Gaussian processes of its objective and of the constraints that were broken."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from optuna.study import StudyDirection
from optuna.trial import TrialState

from tuner.optimize.acquisition import HOPELESS, Score, knowledge_gradient, log_feasibility
from tuner.optimize.encoding import Array, Columns, Conditions, Encoding, Points
from tuner.optimize.gp import GaussianProcess, ObservationNoise
from tuner.optimize.history import History, compress, fitting, gather
from tuner.optimize.optimizer import Observation, Point
from tuner.optimize.replay import shared, tell
from tuner.space import Dimension

MOST_CONSTRAINTS = 3
"""Models of constraints. Where more were broken, the last one is of the worst of those broken least often."""
CREDIBLE = 0.3
"""Probability of feasibility of what was feasible when it was tried: noise may have made it so. What lies on
the bound, where the best often is, has about one half."""
NO_WORTH = 1e-9
"""Gain, in units of the values' spread, that is none."""
FAILED, DONE = 1.0, -1.0
"""Slacks that say whether a trial had a value at all."""
VARIANCE_OF_SLACK = 0.01
UNKNOWN_SHARE = 0.05
"""Variance that is taken for granted where nobody told it, as a share of the values' spread squared."""
LEAST_FREEDOM = 5
"""Degrees of freedom from which on repeats are taken to tell it."""
PRUNED_INFLATION = 4.0
"""A pruned trial was cut short: its last intermediate value counts with so much more variance."""


@dataclass(frozen=True, slots=True)
class Model:
    """Posteriors of the objective, and of every constraint that was broken."""

    conditions: Conditions
    objective: GaussianProcess
    constraints: tuple[GaussianProcess, ...]
    """MOST_CONSTRAINTS at most."""
    tried: Points
    """Shape (n, d), those that failed among them."""
    variance: float
    """Of a single observation, typically."""

    @classmethod
    def of(
        cls,
        history: History,
        encoding: Encoding,
        values: Array,
        variances: Array,
        *,
        seed: int,
        trend: Score = lambda points: np.zeros(len(points)),
    ) -> Self:
        """Fit to the trials of a study, of which `values` and `variances` (n,) are what they are worth.

        What `trend` says of points (m, d) is expected beforehand: the objective is what comes on top of it.
        """
        space = encoding.space
        measured = encoding.encode(fitting(history.measured, space))
        failed = encoding.encode(fitting(history.failed, space))
        tried = np.concatenate([measured, failed])
        conditions = Conditions.learn(tried, encoding.is_choice)
        columns = Columns(encoding.is_choice, conditions.conditional, encoding.levels)
        single, is_noise_known = single_variances(history, measured, values, variances)
        points, values, variances = merge(measured, values - trend(measured), single)
        objective = GaussianProcess.fit(
            columns,
            points,
            compress(values),
            ObservationNoise(own=variances),
            seed=seed,
            is_noise_known=is_noise_known,
        )
        constraints = [
            _fit_slack(columns, of, slack, seed) for of, slack in _broken(history, measured, failed)
        ]
        return cls(conditions, objective, tuple(constraints), tried, float(np.median(single)))

    def best(self, count: int, bonus: Score) -> Points:
        """Return the points with the best posterior means, of those that are probably feasible.

        What points (m, d) are worth besides, shape (m,), is added to the means.
        """
        points = self.objective.points
        means, _ = self.objective.predict(points)
        order = np.lexsort((-(means + bonus(points)), ~self.is_likely(points)))
        return points[order[:count]]

    def most_informative(self, options: Points) -> Array:
        """Return the point (d,) whose next observation tells most about which one is best.

        The first of them where none does.
        """
        log = log_feasibility(self.constraints, options)
        rivals = self.objective.points[self.is_likely(self.objective.points)]
        worth = knowledge_gradient(self.objective, rivals, options, self.variance) * np.exp(log)
        # What rounding leaves of nothing does not decide: the first option does.
        worth[(worth < NO_WORTH * self.objective.spread) | (log < math.log(HOPELESS))] = 0.0
        return np.asarray(options[int(np.argmax(worth))])

    def doubt(self, points: Points) -> Array:
        """Return the log of how little is known of points (m, d) times how likely they are feasible; (m,)."""
        _, variances = self.objective.predict(points)
        return np.asarray(
            np.log(np.maximum(variances, 1e-300)) / 2 + log_feasibility(self.constraints, points)
        )

    def is_credible(self, points: Points) -> NDArray[np.bool_]:
        """Return which points (m, d) are believed to be feasible, the most likely one always; shape (m,)."""
        log = log_feasibility(self.constraints, points)
        return log >= min(math.log(CREDIBLE), float(log.max()))

    def is_likely(self, points: Points) -> NDArray[np.bool_]:
        """Return which points (m, d) are rather feasible than not; shape (m,)."""
        return log_feasibility(self.constraints, points) > math.log(0.5)


def _fit_slack(columns: Columns, points: Points, slack: Array, seed: int) -> GaussianProcess:
    points, slack, variances = merge(points, slack, np.full(len(slack), VARIANCE_OF_SLACK))
    return GaussianProcess.fit(columns, points, slack, ObservationNoise(own=variances), seed=seed)


def merge(points: Points, values: Array, variances: Array) -> tuple[Points, Array, Array]:
    """Merge repeats of a point, weighted by inverse variance."""
    first, where = _alike(points)
    weights = 1 / variances
    totals = np.bincount(where, weights)
    means = np.bincount(where, weights * values) / totals
    order = np.argsort(first, kind="stable")
    return points[first[order]], means[order], 1 / totals[order]


def single_variances(history: History, points: Points, values: Array, told: Array) -> tuple[Array, bool]:
    """Return the variance of each observation, shape (n,), and say whether they are known.

    Where nobody told them, the repeats do, if there are enough; else a share of the spread is taken for
    granted. None is exactly 0.
    """
    kept = compress(values)
    spread, size = float(np.var(kept)), float(np.max(np.abs(values)))
    assumed, is_known = UNKNOWN_SHARE * spread, not np.isnan(told).any()
    if not is_known and (repeated := _between_repeats(points, kept)) is not None:
        assumed, is_known = repeated, True
    is_cut = np.array([each.state is TrialState.PRUNED for each in history.measured], dtype=bool)
    variances = np.where(np.isnan(told), assumed, told) * np.where(is_cut, PRUNED_INFLATION, 1.0)
    return np.maximum(variances, 1e-9 * spread + (1e-9 * size) ** 2 + 1e-200), is_known


def _between_repeats(points: Points, values: Array) -> float | None:
    """Return the variance between observations of the same point; None where there are too few."""
    first, where = _alike(points)
    freedom = len(values) - len(first)
    if freedom < LEAST_FREEDOM:
        return None
    means = np.bincount(where, values) / np.bincount(where)
    return float(np.sum((values - means[where]) ** 2)) / freedom


def _broken(history: History, measured: Points, failed: Points) -> list[tuple[Points, Array]]:
    """Return points and slacks of the constraints that were broken most often, failing among them."""
    found: list[tuple[int, Points, Array]] = []
    if len(failed):
        slack = np.concatenate([np.full(len(measured), DONE), np.full(len(failed), FAILED)])
        found.append((len(failed), np.concatenate([measured, failed]), slack))
    for slacks in history.slacks.values():
        rows = [
            (row, slacks[each.number]) for row, each in enumerate(history.measured) if each.number in slacks
        ]
        told = np.array([slack for _, slack in rows])
        broken = int(np.sum(told > 0))
        if broken:
            found.append((broken, measured[[row for row, _ in rows]], _bounded(told)))
    found.sort(key=lambda each: -each[0])
    pairs = [(points, slack) for _, points, slack in found]
    if len(pairs) > MOST_CONSTRAINTS:
        rest = pairs[MOST_CONSTRAINTS - 1 :]
        pairs[MOST_CONSTRAINTS - 1 :] = [_worst(*(np.concatenate(each) for each in zip(*rest, strict=True)))]
    return pairs


def _worst(points: Points, slack: Array) -> tuple[Points, Array]:
    """Return the worst slack of each point."""
    first, where = _alike(points)
    worst = np.full(len(first), -np.inf)
    np.maximum.at(worst, where, slack)
    return points[first], worst


def _alike(points: Points) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows where each distinct point first stands (k,), and which of them a row is (n,)."""
    _, first, where = np.unique(
        np.nan_to_num(points, nan=-1.0), axis=0, return_index=True, return_inverse=True
    )
    return first, where


def _bounded(slack: Array) -> Array:
    """Bring slacks of any unit to between -1 and 1; what is feasible stays so."""
    sizes = np.abs(slack[np.isfinite(slack) & (slack != 0)])
    scale = float(np.quantile(sizes, 0.5, method="lower")) if len(sizes) else 1.0
    with np.errstate(over="ignore"):
        return np.asarray(np.tanh(slack / scale))


def fit(dimensions: Sequence[Dimension], observations: Sequence[Observation]) -> tuple[Encoding, Model]:
    """Return the model of the log speedup, and how points are told to it.

    Args:
        dimensions: of the space.
        observations: of every trial so far; at least one has a speedup.
    """
    space = {name: each for name, each in shared(dimensions).items() if not each.single()}
    trials = [
        tell(replace(seen, cost=None), space, None if seen.log_ratio is None else [seen.log_ratio])
        for seen in observations
    ]
    history = gather(trials, [StudyDirection.MAXIMIZE])
    encoding = Encoding(space)
    return encoding, Model.of(history, encoding, history.values[:, 0], history.variances[:, 0], seed=0)


def predict(
    dimensions: Sequence[Dimension], observations: Sequence[Observation], points: Sequence[Point]
) -> Array:
    """Return the posterior mean of the log speedup at points; shape (m,).

    Args:
        dimensions: of the space.
        observations: of every trial so far; at least one has a speedup.
        points: values by dimension name.
    """
    encoding, model = fit(dimensions, observations)
    means, _ = model.objective.predict(encoding.encode(points))
    return means
