"""A Gaussian process whose observations have different, known variances.

Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), chapters 2 and 5. The kernel falls off
with the sum of the parameters' differences, as that of a forest of random trees does (Balog et al. 2016, The
Mondrian Kernel, arXiv 1606.05241): settings act at thresholds and as switches more often than smoothly.
Beside it stands its first order, in which each parameter adds its own (Duvenaud, Nickisch & Rasmussen 2011,
Additive Gaussian Processes, arXiv 1112.4394): what one does alone is learned from few observations. The
length scales have a prior that grows with the number of parameters (Hvarfner, Hellsten & Nardi 2024, arXiv
2402.02746, have it for squared distances), so that few observations of many parameters do not explain
everything by all of them.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from tuner.optimize.encoding import Array, Columns, Points

MOST_NOISE = 1e12
"""Variance of a standardised value that tells nothing."""
CONSTANT = 1.0
"""Prior variance of the level, in units of the values' spread."""
JITTER = 1e-8
FIT_MOST = 120
"""Observations that the length scales are fitted to; all of them are conditioned on."""
ITERATIONS = 40
ENOUGH = 1e-3
"""Relative change of the log posterior at which the length scales are good enough. Going on to 1e-6 takes up
to three times the evaluations, for 0.6 of the log posterior at most."""
LENGTH_PRIOR = (-0.7, 2.5)
"""Mean and standard deviation of the log of a length scale over d. The wide one lets the observations say
which parameters matter. Regret on recorded and made surfaces with a deviation of 0.7 (10 seeds) .124/.158;
1.2 (20 seeds, as all further) .124/.143; 1.7 .127/.137; 2.5 .122/.136; 4 .126/.145."""
LOG_LENGTH_BOUNDS = (-3.0, 6.0)
LOG_AMPLITUDE_BOUNDS = (-5.0, 4.0)
LOG_NUGGET_BOUNDS = (-9.0, 1.0)
LOG_NUGGET_MOST_KNOWN = -5.0
"""Where the noise is known, what the length scales do not explain is roughness, which neighbours share."""
ADDITIVE_PRIOR = (-0.5, 1.0)
AMPLITUDE_PRIOR = (0.5, 0.8)
NUGGET_PRIOR = (-4.0, 1.0)
"""Mean and standard deviation of the log, in units of the values' variance."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """How far points go together: amplitude · exp(-D) + additive · (1 - D / Σ rate) + constant.

    D is Σ rate · difference. The first term is Laplace's kernel over all columns together; the second is the
    mean of 1 - difference over the columns, weighted by their rates: functions that are sums of one for each.
    """

    columns: Columns
    rates: Array
    """Shape (d,): 1 / length scale."""
    amplitude: float
    additive: float

    @property
    def variance(self) -> float:
        """Prior variance of any point, the level's included."""
        return CONSTANT + self.amplitude + self.additive

    def __call__(self, one: Points, other: Points) -> Array:
        """Return the covariances, shape (n, m)."""
        distances = cdist(self._scaled(one), self._scaled(other), "cityblock")
        # In place: for many points most of the time is spent on getting memory.
        covariances: Array = np.exp(-distances)
        covariances *= self.amplitude
        distances *= -self.additive / self.rates.sum()
        covariances += distances
        covariances += CONSTANT + self.additive
        return covariances

    def _scaled(self, points: Points) -> Array:
        scaled: Array = self.columns.embed(points) * np.repeat(self.rates, self.columns.widths)
        return scaled


@dataclass(frozen=True, slots=True)
class Scale:
    """Turns values into standard ones and back."""

    middle: float
    spread: float

    @classmethod
    def of(cls, values: Array, variances: Array) -> Self:
        # Relative to the values, so that it is the same in any unit of theirs.
        least = 1e-9 * float(np.max(np.abs(values), initial=0.0)) or 1.0
        weights = 1 / (variances + np.var(values) / 4 + (1e-3 * least) ** 2)
        middle = float(np.sum(weights * values) / np.sum(weights))
        return cls(middle, max(float(np.sqrt(np.mean((values - middle) ** 2))), least))

    def noise(self, variances: Array) -> Array:
        """Return variances of values in standard units; what tells nothing is not infinite."""
        with np.errstate(over="ignore"):
            return np.minimum((np.sqrt(variances) / self.spread) ** 2, MOST_NOISE)


class GaussianProcess:
    """The posterior after some observations; everything it says is in the values' own units."""

    def __init__(
        self, kernel: Kernel, nugget: float, points: Points, values: Array, variances: Array
    ) -> None:
        """Condition on observations.

        Args:
            kernel: of standardised values.
            nugget: variance that every standardised observation has besides its own.
            points: shape (n, d), no two alike.
            values: shape (n,).
            variances: shape (n,), of the values.
        """
        self.kernel = kernel
        self.nugget = nugget
        self.points = points
        self._scale = Scale.of(values, variances)
        standard = (values - self._scale.middle) / self._scale.spread
        noise = self._scale.noise(variances) + nugget + JITTER
        self._prior = kernel(points, points)
        self._factor = _factorise(self._prior, noise)
        self._weights = cho_solve((self._factor, True), standard)

    @classmethod
    def fit(
        cls,
        columns: Columns,
        points: Points,
        values: Array,
        variances: Array,
        *,
        seed: int = 0,
        is_noise_known: bool = False,
    ) -> Self:
        """Find the most probable kernel (maximum a posteriori), then condition on all observations.

        Raises nothing for values that are all alike or a singular kernel: both give a posterior that knows
        little.
        """
        evidence = _Evidence.of(columns, points, values, variances, seed)
        most = LOG_NUGGET_MOST_KNOWN if is_noise_known else LOG_NUGGET_BOUNDS[1]
        kernel, nugget = evidence.unpack(evidence.maximise(most))
        return cls(kernel, nugget, points, values, variances)

    def predict(self, points: Points) -> tuple[Array, Array]:
        """Return mean and variance of the function itself, without noise; shape (m,) each."""
        covariances = self.kernel(points, self.points)
        halves = solve_triangular(self._factor, covariances.T, lower=True, check_finite=False)
        variances = np.maximum(self.kernel.variance - np.sum(halves * halves, axis=0), 1e-12)
        return self._back(covariances @ self._weights), variances * self._scale.spread**2

    def joint(self, points: Points) -> tuple[Array, Array]:
        """Return means (m,) and covariances (m, m) of the function at points, without noise."""
        across = self.kernel(points, self.points)
        halves = solve_triangular(self._factor, across.T, lower=True, check_finite=False)
        covariances = self.kernel(points, points) - halves.T @ halves
        return self._back(across @ self._weights), covariances * self._scale.spread**2

    def draw(self, points: Points, normal: Array) -> Array:
        """Draw what the function may be at some points together, without noise.

        Args:
            points: shape (m, d).
            normal: standard normal numbers, shape (draws, m).

        Returns:
            Shape (m, draws).
        """
        covariances = self.kernel(points, self.points)
        halves = solve_triangular(self._factor, covariances.T, lower=True, check_finite=False)
        posterior = self.kernel(points, points) - halves.T @ halves
        root = _factorise(posterior, np.full(len(posterior), JITTER * self.kernel.variance))
        return self._back((covariances @ self._weights)[:, None] + root @ normal.T)

    @property
    def spread(self) -> float:
        """How many of the values' units are one of the kernel's."""
        return self._scale.spread

    def standardise(self, values: Array) -> Array:
        """Turn values into the units of the kernel."""
        return np.asarray((values - self._scale.middle) / self._scale.spread)

    def _back(self, standard: Array) -> Array:
        return np.asarray(self._scale.middle + self._scale.spread * standard)


class _Evidence:
    """Minus the log posterior of a kernel's parameters θ, with its gradient (Rasmussen & Williams, 5.9).

    θ holds the log of each length scale, of the additive part, of the amplitude and of the nugget. Only pairs
    i < j are kept: the covariances are symmetric and the same on the diagonal.
    """

    def __init__(self, columns: Columns, points: Points, standard: Array, noise: Array) -> None:
        self._columns = columns
        self._standard = standard
        self._noise = noise
        self._pairs = first, second = np.triu_indices(len(points), 1)
        self._below = first * len(points) + second
        """Where the pairs are below the diagonal of a matrix, column after column."""
        embedded, widths = np.ascontiguousarray(columns.embed(points).T), columns.widths
        steps = np.abs(embedded[:, first] - embedded[:, second])
        self._gaps = np.add.reduceat(steps, np.cumsum(widths) - widths, axis=0)
        """Distances by column and pair."""
        dimensions = len(columns)
        middles = [_typical(dimensions)] * dimensions
        others = (ADDITIVE_PRIOR, AMPLITUDE_PRIOR, NUGGET_PRIOR)
        self._middle = np.array([*middles, *(middle for middle, _ in others)])
        self._spread = np.array([*[LENGTH_PRIOR[1]] * dimensions, *(spread for _, spread in others)])

    @classmethod
    def of(cls, columns: Columns, points: Points, values: Array, variances: Array, seed: int) -> Self:
        """Standardise observations, and choose among them where there are many."""
        chosen = _choose(values, seed)
        scale = Scale.of(values, variances)
        standard = (values[chosen] - scale.middle) / scale.spread
        return cls(columns, points[chosen], standard, scale.noise(variances[chosen]))

    def maximise(self, log_nugget_most: float = LOG_NUGGET_BOUNDS[1]) -> Array:
        """Return the most probable θ."""
        dimensions = len(self._columns)
        others = [ADDITIVE_PRIOR[0], 0.0, min(log_nugget_most, NUGGET_PRIOR[0])]
        begin = np.array([_typical(dimensions)] * dimensions + others)
        nugget_bounds = (LOG_NUGGET_BOUNDS[0], log_nugget_most)
        bounds = [LOG_LENGTH_BOUNDS] * dimensions + [
            LOG_AMPLITUDE_BOUNDS,
            LOG_AMPLITUDE_BOUNDS,
            nugget_bounds,
        ]
        found = minimize(
            self,
            begin,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": ITERATIONS, "ftol": ENOUGH},
        )
        return np.asarray(found.x if math.isfinite(found.fun) else begin)

    def unpack(self, theta: Array) -> tuple[Kernel, float]:
        """Return the kernel and the nugget of θ."""
        additive, amplitude, nugget = np.exp(theta[-3:]).tolist()
        return Kernel(self._columns, np.exp(-theta[:-3]), amplitude, additive), nugget

    def __call__(self, theta: Array) -> tuple[float, Array]:
        rates = np.exp(-theta[:-3])
        additive, amplitude, nugget = np.exp(theta[-3:])
        distances, total = rates @ self._gaps, rates.sum()
        correlations, own = np.exp(-distances), 1 - distances / total
        factor = self._factor(amplitude * correlations + additive * own, amplitude + additive, nugget)
        if factor is None:
            return 1e10, np.zeros_like(theta)
        weights, _ = dpotrs(factor, self._standard, lower=1)
        loss = self._standard @ weights / 2 + float(np.log(factor.diagonal()).sum())
        inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
        # d loss / d K, of which each pair i < j stands twice.
        first, second = self._pairs
        of_pairs = inverse.T.reshape(-1)[self._below] - weights[first] * weights[second]
        of_diagonal = float(np.trace(inverse) - weights @ weights) / 2

        away = (theta - self._middle) / self._spread
        gradient = away / self._spread
        slopes = amplitude * correlations + additive / total
        gradient[:-3] += rates * (self._gaps @ (of_pairs * slopes))
        gradient[:-3] -= rates * (additive / total**2 * (of_pairs @ distances))
        gradient[-3] += additive * (of_pairs @ own + of_diagonal)
        gradient[-2] += amplitude * (of_pairs @ correlations + of_diagonal)
        gradient[-1] += of_diagonal * nugget
        return float(loss + away @ away / 2), gradient

    def _factor(self, covariances: Array, variance: float, nugget: float) -> Array | None:
        """Return the lower Cholesky factor; what is above its diagonal has no meaning.

        LAPACK is called without scipy's checks, which take as long as these small matrices do.
        """
        count = len(self._standard)
        matrix = np.empty((count, count), order="F")
        flat = matrix.T.reshape(-1)
        flat[self._below] = CONSTANT + covariances
        flat[:: count + 1] = CONSTANT + variance + self._noise + nugget + JITTER
        factor, failure = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        return None if failure else factor


def _typical(dimensions: int) -> float:
    """Return the log of a length scale that the prior expects."""
    return LENGTH_PRIOR[0] + math.log(dimensions)


def _choose(values: Array, seed: int) -> NDArray[np.int64]:
    """Choose the observations to fit to: half of them the best, the others at random."""
    if len(values) <= FIT_MOST:
        return np.arange(len(values))
    order = np.argsort(-values, kind="stable")
    best, rest = order[: FIT_MOST // 2], order[FIT_MOST // 2 :]
    others = np.random.default_rng(seed).choice(rest, FIT_MOST - len(best), replace=False)
    return np.sort(np.concatenate([best, others]))


def _factorise(covariance: Array, noise: Array) -> Array:
    """Return the lower Cholesky factor; a singular matrix gets more noise until it has one."""
    scale = float(np.mean(np.diag(covariance)))
    for extra in (0.0, 1e-8, 1e-6, 1e-4, 1e-2):
        try:
            return np.asarray(
                cholesky(covariance + np.diag(noise + extra * scale), lower=True, check_finite=False)
            )
        except LinAlgError:
            continue
    warnings.warn("the kernel is singular; the model of this study is a rough one", stacklevel=2)
    return np.asarray(np.diag(np.sqrt(np.maximum(np.diag(covariance) + noise, JITTER))))
