"""Acquisition function: noisy expected improvement times the probability of feasibility.

Letham, Karrer, Ottoni & Bakshy 2019, Constrained Bayesian Optimization with Noisy Experiments
(arXiv 1706.07094). What was observed is noisy, so nobody knows the best value so far: it is drawn, and the
expected improvement averaged over the draws. All draws share one factorisation.

The point that scores highest is sought among changes and mixtures of the points that are known to be good.
Both keep the search near what is good, as a trust region would (Papenmeier et al. 2025, arXiv 2502.09198),
and choices and numbers need no different treatment. Climbing from the best of them, one parameter at a time,
finds higher scores, yet not better points: no model of a few dozen trials is right in such detail.

Symbols:

- f_s `drawn`: draw s of `DRAWS` of the objective at the known points; f*_s `best`: its best feasible value.
- μ_s(x) `means`, δ(x) `deviations`: of the process conditioned on draw s; z `steps`: (μ_s − f*_s) / δ.
- Score of x: log of the mean over s of δ · (z Φ(z) + φ(z)), plus the log probability that x is feasible.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import log_ndtr, ndtr, ndtri

from tuner.optimize.encoding import Array, Conditions, Encoding, Points
from tuner.optimize.gp import GaussianProcess
from tuner.optimize.leaning import UNIFORM, Leaning

DRAWS = 64
NOISE_FREE = 1e-6
"""Relative jitter of a process that is conditioned on draws, which have no noise."""

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
"""Gauss-Hermite quadrature over a standard normal number."""
HOPELESS = 0.05
"""Points less probably feasible come after all others. Where nothing is left to gain the product of two tiny
numbers decides, and a model's tails are not to be believed."""
BEHIND_ALL_OTHERS = -1e6


CHANGED = 200
MOST_CHANGED = 7
"""Parameters of a good point that change; from one to so many."""
SPREAD = 0.15
"""Standard deviation of a change in a number's position."""
MOVED = 0.5
"""Share of the changed numbers that only move; the others are drawn anew."""
PARENTS = 3
"""Points, the best ones, that are changed; mixed are all."""
MIXED = 200
MOST_CHANGED_OF_MIXED = 3
PUT_BACK = 100
MOST_PUT_BACK = 3

Score = Callable[[Points], NDArray[np.float64]]


class NoisyExpectedImprovement:
    """Log of the improvement to be expected of a feasible point, for maximisation."""

    def __init__(
        self,
        objective: GaussianProcess,
        constraints: Sequence[GaussianProcess],
        pending: Points,
        rng: np.random.Generator,
        bonus: Score = lambda points: np.zeros(len(points)),
    ) -> None:
        """Draw what the best may be.

        Args:
            objective: more is better.
            constraints: at most 0 is feasible.
            pending: shape (p, d), points whose outcome is not known yet; they are drawn as well.
            rng: of the draws.
            bonus: what points (m, d) are worth besides, in the objective's units; shape (m,).
        """
        self._objective = objective
        self._bonus = bonus
        self._constraints = constraints
        self._known = np.concatenate([objective.points, pending])
        normal = _normal(len(self._known), rng)
        drawn = objective.standardise(objective.draw(self._known, normal))
        slacks = [each.draw(self._known, _normal(len(self._known), rng)) for each in constraints]
        known_bonus = bonus(self._known) / objective.spread
        self._best = _best_feasible(drawn + known_bonus[:, None], slacks)
        covariance = objective.kernel(self._known, self._known)
        covariance[np.diag_indices(len(covariance))] *= 1 + NOISE_FREE
        self._factor = cholesky(covariance, lower=True, check_finite=False)
        self._weights = cho_solve((self._factor, True), drawn, check_finite=False)

    def improvement(self, point: Array) -> float:
        """Return the expected improvement at a point (d,), in the objective's units, where it is feasible."""
        return math.exp(float(self(point[None])[0])) * self._objective.spread

    def is_hopeful(self, point: Array) -> bool:
        """Return whether a point (d,) may be feasible at all."""
        return bool(log_feasibility(self._constraints, point[None])[0] >= math.log(HOPELESS))

    def __call__(self, points: Points) -> Array:
        """Score points (m, d); shape (m,)."""
        covariances = self._objective.kernel(points, self._known)
        means = covariances @ self._weights + (self._bonus(points) / self._objective.spread)[:, None]
        halves = solve_triangular(self._factor, covariances.T, lower=True, check_finite=False)
        left = self._objective.kernel.variance - np.sum(halves * halves, axis=0)
        deviations = np.sqrt(np.maximum(left, 1e-10))[:, None]
        steps = (means - self._best) / deviations
        density = np.exp(-steps * steps / 2) / math.sqrt(2 * math.pi)
        improvement = (deviations * (steps * ndtr(steps) + density)).mean(axis=1)
        feasible = log_feasibility(self._constraints, points)
        hopeless = np.where(feasible < math.log(HOPELESS), BEHIND_ALL_OTHERS, 0.0)
        return np.asarray(np.log(np.maximum(improvement, 1e-300)) + feasible + hopeless)


def log_feasibility(constraints: Sequence[GaussianProcess], points: Points) -> Array:
    """Return the log probability that points keep all constraints; shape (m,)."""
    log = np.zeros(len(points))
    for each in constraints:
        means, variances = each.predict(points)
        log += log_ndtr(-means / np.sqrt(variances))
    return log


def _best_feasible(drawn: Array, slacks: Sequence[Array]) -> Array:
    """Return the best feasible value of each draw, shape (draws,); where none is, the worst of all."""
    feasible = np.ones(drawn.shape, dtype=bool)
    for slack in slacks:
        feasible &= slack <= 0
    best = np.where(feasible, drawn, -np.inf).max(axis=0)
    return np.asarray(np.where(np.isfinite(best), best, drawn.min()))


def _normal(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw standard normal numbers, shape (DRAWS, count), spread evenly in each column (Latin hypercube)."""
    ranks = np.argsort(rng.random((DRAWS, count)), axis=0)
    return np.asarray(ndtri((ranks + rng.uniform(1e-9, 1 - 1e-9, ranks.shape)) / DRAWS))


def knowledge_gradient(process: GaussianProcess, rivals: Points, points: Points, variance: float) -> Array:
    """Return by how much one more observation of each point raises the best posterior mean; shape (m,).

    Frazier, Powell & Dayanik 2009, The Knowledge-Gradient Policy for Correlated Normal Beliefs
    (doi 10.1287/ijoc.1080.0314). The best is sought among the rivals and the point itself, because only what
    was observed can be recommended. Points may be observed ones: then it is what a repeat is worth.

    Args:
        process: the model.
        rivals: shape (k, d), what could be recommended by now.
        points: shape (m, d).
        variance: of the observation to come.
    """
    means, covariances = process.joint(np.concatenate([rivals, points]))
    known = len(rivals)
    own = np.arange(known, known + len(points))
    moved = covariances[:, own] / np.sqrt(covariances[own, own] + variance)
    best = float(means[:known].max(initial=means[own].min()))
    after = (means[:known, None, None] + moved[:known, :, None] * NODES).max(axis=0, initial=-np.inf)
    after = np.maximum(after, means[own][:, None] + moved[own, np.arange(len(points))][:, None] * NODES)
    return np.asarray(after @ WEIGHTS - best)


def gradient_of_knowledge(means: Array, moved: Array) -> Array:
    """Return by how much each of some observations raises the best of some means; shape (n,).

    Args:
        means: shape (k,), of what is chosen among.
        moved: shape (k, n), by how much an observation that is one standard deviation up raises each mean.
    """
    after = (means[:, None, None] + moved[:, :, None] * NODES).max(axis=0)
    return np.asarray(after @ WEIGHTS - means.max())


def maximise(
    score: Score,
    encoding: Encoding,
    conditions: Conditions,
    good: Points,
    rng: np.random.Generator,
    leaning: Leaning | None = None,
    *,
    reference: Points,
) -> NDArray[np.float64]:
    """Return the point (d,) that scores highest.

    Args:
        score: of points (m, d); shape (m,).
        encoding: of the space.
        conditions: what is off is no coordinate of a point.
        good: shape (k, d), points to search around, the best of this study first; NaN is drawn anew.
        rng: the same draws give the same point.
        reference: shape (1, d), a point that is changed however many are better, and to whose values single
            parameters of good points are put back; shape (0, d) for none.
        leaning: what hints say of the columns; None where there are none.
    """
    parents = np.resize(np.concatenate([good[:PARENTS], reference]), (CHANGED, good.shape[1]))
    points = np.concatenate(
        [
            change(parents, 1, MOST_CHANGED, encoding, rng, leaning),
            change(_mix(good, rng), 0, MOST_CHANGED_OF_MIXED, encoding, rng, leaning),
            *(put_back(np.resize(good, (PUT_BACK, good.shape[1])), each, rng) for each in reference),
        ]
    )
    points = encoding.keep(conditions.apply(points))
    return np.asarray(points[int(np.argmax(score(points)))])


def are_new(points: Points, known: Points) -> NDArray[np.bool_]:
    """Return which points (m, d) are none of the known ones (n, d); shape (m,)."""
    rows = {row.tobytes() for row in known}
    return np.array([row.tobytes() not in rows for row in points], dtype=bool)


def change(
    points: Points,
    least: int,
    most: int,
    encoding: Encoding,
    rng: np.random.Generator,
    leaning: Leaning | None = None,
) -> Points:
    """Change from `least` to `most` parameters of each point (n, d); what is off gets some value.

    Of those that lean, most changes follow the hints.
    """
    fresh = _others(points, encoding, rng)
    moved = encoding.snap(points + SPREAD * rng.standard_normal(points.shape))
    only_moves = ~encoding.is_choice & (rng.random(points.shape) < MOVED)
    is_off = np.isnan(points)
    values = np.where(only_moves & ~is_off, moved, fresh)
    ranks = np.argsort(rng.random(points.shape), axis=1)
    if leaning is not None:
        leans = rng.random((len(points), 1)) >= UNIFORM
        ranks = np.where(leans, leaning.ranks(points, rng), ranks)
        values = np.where(leans, leaning.lean(points, values, encoding, rng), values)
    is_changed = ranks < rng.integers(least, most + 1, size=(len(points), 1))
    return np.asarray(np.where(is_changed | is_off, values, points))


def put_back(points: Points, reference: Array, rng: np.random.Generator) -> Points:
    """Put from one to a few parameters of each point (n, d) back to those of a reference (d,)."""
    is_other = points != reference
    ranks = np.argsort(np.argsort(np.where(is_other, rng.random(points.shape), 2.0), axis=1), axis=1)
    is_back = is_other & (ranks < rng.integers(1, MOST_PUT_BACK + 1, size=(len(points), 1)))
    return np.asarray(np.where(is_back, reference, points))


def _others(points: Points, encoding: Encoding, rng: np.random.Generator) -> Points:
    """Draw points of which every choice is another one than before, where there is another."""
    drawn = encoding.draw(len(points), rng)
    further = 1 + np.floor(rng.random(points.shape) * (encoding.levels - 1))
    others = np.where(np.isnan(points), drawn, (points + further) % encoding.levels)
    return np.asarray(np.where(encoding.is_choice & (encoding.levels > 1), others, drawn))


def _mix(good: Points, rng: np.random.Generator) -> Points:
    """Mix pairs of good points: each parameter comes from one of two, from one of them more often."""
    one, other = good[rng.integers(len(good), size=(2, MIXED))]
    return np.asarray(np.where(rng.random(one.shape) < rng.random((MIXED, 1)), one, other))
