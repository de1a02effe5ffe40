"""Where the next trial tells most: noisy expected improvement times the probability of feasibility.

Letham, Karrer, Ottoni & Bakshy 2019, Constrained Bayesian Optimization with Noisy Experiments
(arXiv 1706.07094). What was observed is noisy, so nobody knows the best value so far: it is drawn, and the
expected improvement averaged over the draws. All draws share one factorisation.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import log_ndtr, ndtr, ndtri

from tuner.optimize.encoding import Points
from tuner.optimize.gp import Array, GaussianProcess

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


class NoisyExpectedImprovement:
    """Log of the improvement to be expected of a feasible point, for maximisation."""

    def __init__(
        self,
        objective: GaussianProcess,
        constraints: Sequence[GaussianProcess],
        pending: Points,
        rng: np.random.Generator,
    ) -> None:
        """Draw what the best may be.

        Args:
            objective: more is better.
            constraints: at most 0 is feasible.
            pending: shape (p, d), points whose outcome is not known yet; they are drawn as well.
            rng: of the draws.
        """
        self._objective = objective
        self._constraints = constraints
        self._known = np.concatenate([objective.points, pending])
        normal = _normal(len(self._known), rng)
        drawn = objective.standardise(objective.draw(self._known, normal))
        slacks = [each.draw(self._known, _normal(len(self._known), rng)) for each in constraints]
        self._best = _best_feasible(drawn, slacks)
        covariance = objective.kernel(self._known, self._known)
        covariance[np.diag_indices(len(covariance))] *= 1 + NOISE_FREE
        self._factor = cholesky(covariance, lower=True, check_finite=False)
        self._weights = cho_solve((self._factor, True), drawn, check_finite=False)

    def improvement(self, point: Array) -> float:
        """Give the expected improvement at a point (d,), in the objective's units, where it is feasible."""
        return math.exp(float(self(point[None])[0])) * self._objective.spread

    def is_hopeful(self, point: Array) -> bool:
        """Say whether a point (d,) may be feasible at all."""
        return bool(log_feasibility(self._constraints, point[None])[0] >= math.log(HOPELESS))

    def __call__(self, points: Points) -> Array:
        """Score points (m, d); shape (m,)."""
        covariances = self._objective.kernel(points, self._known)
        means = covariances @ self._weights
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
    """Give the log probability that points keep all constraints; shape (m,)."""
    log = np.zeros(len(points))
    for each in constraints:
        means, variances = each.predict(points)
        log += log_ndtr(-means / np.sqrt(variances))
    return log


def _best_feasible(drawn: Array, slacks: Sequence[Array]) -> Array:
    """Give the best feasible value of each draw, shape (draws,); where none is, the worst of all."""
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
    """Give by how much one more observation of each point raises the best posterior mean; shape (m,).

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
