"""A Gaussian process whose observations have different, known variances.

Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), chapters 2 and 5. The length scales have
a prior that grows with the number of parameters (Hvarfner, Hellsten & Nardi 2024, arXiv 2402.02746), so that
few observations of many parameters do not explain everything by all of them.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from tuner.optimize.encoding import Points

Array = NDArray[np.float64]

CONSTANT = 1.0
"""Prior variance of the level, in units of the values' spread."""
JITTER = 1e-8
FIT_MOST = 120
"""Observations that the length scales are fitted to; all of them are conditioned on."""
ITERATIONS = 40
LOG_LENGTH_BOUNDS = (-3.0, 6.0)
LOG_AMPLITUDE_BOUNDS = (-5.0, 4.0)
SHARE_BOUNDS = (-4.0, 4.0)
LOG_NUGGET_BOUNDS = (-9.0, 1.0)
SHARE_SPREAD = 1.5
"""Prior standard deviation of the additive share's logit."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What kind each column of the points is; shape (d,) each."""

    is_choice: NDArray[np.bool_]
    is_conditional: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.is_choice)

    def gaps(self, column: int, one: Array, other: Array) -> Array:
        """Give the squared distances in one column, shape (n, m).

        Two choices are 0 or 1 apart. A parameter that may be off lies on an arc about the point that stands
        for off (Swersky et al. 2014, arXiv 1409.4011): as far from it, 1, as the ends of its range from each
        other.
        """
        if not self.is_conditional[column]:
            if self.is_choice[column]:
                return np.asarray(one[:, None] != other, dtype=float)
            return np.asarray(np.square(one[:, None] - other))
        off, other_off = np.isnan(one)[:, None], np.isnan(other)
        if self.is_choice[column]:
            apart = np.asarray(one[:, None] != other, dtype=float)
        else:
            apart = np.square(2 * np.sin(np.pi / 6 * (one[:, None] - other)))
        return np.where(off & other_off, 0.0, np.where(off | other_off, 1.0, apart))


@dataclass(frozen=True, slots=True)
class Kernel:
    """Matérn 5/2 over all columns together, and over each of them alone.

    The second part is a sum: settings mostly add up, and what one does is learned from few points that way
    (Duvenaud, Nickisch & Rasmussen 2011, arXiv 1112.4394). Both share their length scales.
    """

    columns: Columns
    precisions: Array
    """Shape (d,): 1 / length scale squared."""
    amplitude: float
    share: float
    """Of the sum, 0 to 1."""

    @property
    def variance(self) -> float:
        """Prior variance of any point, the level's included."""
        return CONSTANT + self.amplitude

    def __call__(self, one: Points, other: Points) -> Array:
        """Give the covariances, shape (n, m)."""
        together = np.zeros((len(one), len(other)))
        alone = np.zeros_like(together)
        for column, precision in enumerate(self.precisions):
            gaps = self.columns.gaps(column, one[:, column], other[:, column]) * precision
            together += gaps
            alone += _matern(gaps)
        mixed = (1 - self.share) * _matern(together) + self.share / len(self.columns) * alone
        return CONSTANT + self.amplitude * mixed


def _matern(squares: Array) -> Array:
    """Matérn 5/2 of squared distances (Rasmussen & Williams, equation 4.17)."""
    scaled = np.sqrt(5 * squares)
    return np.asarray((1 + scaled + scaled * scaled / 3) * np.exp(-scaled))


def _matern_slope(squares: Array) -> tuple[Array, Array]:
    """The same with its derivative by the squared distance, -5/6 (1 + √5 r) exp(-√5 r)."""
    scaled = np.sqrt(5 * squares)
    decay = np.exp(-scaled)
    return (1 + scaled + scaled * scaled / 3) * decay, -5 / 6 * (1 + scaled) * decay


@dataclass(frozen=True, slots=True)
class Scale:
    """Turns values into standard ones and back."""

    middle: float
    spread: float

    @classmethod
    def of(cls, values: Array, variances: Array) -> Self:
        weights = 1 / (variances + np.var(values) / 4 + 1e-12)
        middle = float(np.sum(weights * values) / np.sum(weights))
        return cls(middle, max(float(np.sqrt(np.mean((values - middle) ** 2))), 1e-9))


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
        noise = variances / self._scale.spread**2 + nugget + JITTER
        self._prior = kernel(points, points)
        self._factor = _factorise(self._prior, noise)
        self._weights = cho_solve((self._factor, True), standard)

    @classmethod
    def fit(cls, columns: Columns, points: Points, values: Array, variances: Array, *, seed: int = 0) -> Self:
        """Find the most probable kernel (maximum a posteriori), then condition on all observations.

        Raises nothing for values that are all alike or a singular kernel: both give a posterior that knows
        little.
        """
        chosen = _choose(values, seed)
        scale = Scale.of(values, variances)
        evidence = _Evidence(
            columns,
            points[chosen],
            (values[chosen] - scale.middle) / scale.spread,
            variances[chosen] / scale.spread**2,
        )
        kernel, nugget = evidence.maximise()
        return cls(kernel, nugget, points, values, variances)

    def predict(self, points: Points) -> tuple[Array, Array]:
        """Give mean and variance of the function itself, without noise; shape (m,) each."""
        covariances = self.kernel(points, self.points)
        halves = solve_triangular(self._factor, covariances.T, lower=True, check_finite=False)
        variances = np.maximum(self.kernel.variance - np.sum(halves * halves, axis=0), 1e-12)
        return self._back(covariances @ self._weights), variances * self._scale.spread**2

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

    θ holds the log of each length scale, the log amplitude, the logit of the additive share and the log
    nugget. Only pairs i < j are kept: the covariances are symmetric and the same on the diagonal.
    """

    def __init__(self, columns: Columns, points: Points, standard: Array, noise: Array) -> None:
        self._columns = columns
        self._standard = standard
        self._noise = noise
        self._pairs = np.triu_indices(len(points), 1)
        self._gaps = np.array(
            [
                columns.gaps(each, points[:, each], points[:, each])[self._pairs]
                for each in range(len(columns))
            ]
        )
        dimensions = len(columns)
        self._length_middle = math.sqrt(2) + math.log(dimensions) / 2
        self._length_spread = math.sqrt(3)

    def maximise(self) -> tuple[Kernel, float]:
        """Give the most probable kernel and nugget."""
        dimensions = len(self._columns)
        begin = np.array([math.log(dimensions) / 2] * dimensions + [0.0, 0.0, -4.0])
        bounds = [LOG_LENGTH_BOUNDS] * dimensions
        bounds += [LOG_AMPLITUDE_BOUNDS, SHARE_BOUNDS, LOG_NUGGET_BOUNDS]
        found = minimize(
            self, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ITERATIONS}
        )
        lengths, amplitude, share, nugget = _unpack(found.x if math.isfinite(found.fun) else begin)
        return Kernel(self._columns, 1 / lengths**2, amplitude, share), nugget

    def __call__(self, theta: Array) -> tuple[float, Array]:
        lengths, amplitude, share, nugget = _unpack(theta)
        precisions = 1 / lengths**2
        dimensions, count = len(lengths), len(self._standard)
        together, together_slope = _matern_slope(precisions @ self._gaps)
        each, each_slope = _matern_slope(self._gaps * precisions[:, None])
        alone = each.mean(axis=0)
        covariances = amplitude * ((1 - share) * together + share * alone)

        matrix = np.empty((count, count))
        matrix[self._pairs] = matrix.T[self._pairs] = CONSTANT + covariances
        matrix[np.diag_indices(count)] = CONSTANT + amplitude + self._noise + nugget + JITTER
        try:
            factor = cholesky(matrix, lower=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros_like(theta)
        inverse = cho_solve((factor, True), np.eye(count), check_finite=False)
        weights = inverse @ self._standard
        loss = self._standard @ weights / 2 + float(np.log(np.diag(factor)).sum())
        # d loss / d K, of which each pair i < j stands twice.
        pull = inverse - np.outer(weights, weights)
        of_pairs, of_diagonal = pull[self._pairs], float(np.trace(pull)) / 2

        gradient = np.empty_like(theta)
        lengths_part = (1 - share) * (self._gaps @ (of_pairs * together_slope))
        lengths_part += share / dimensions * ((each_slope * self._gaps) @ of_pairs)
        gradient[:dimensions] = -2 * precisions * amplitude * lengths_part
        gradient[-3] = of_pairs @ covariances + of_diagonal * amplitude
        gradient[-2] = share * (1 - share) * amplitude * (of_pairs @ (alone - together))
        gradient[-1] = of_diagonal * nugget

        prior, prior_gradient = self._prior(theta)
        return loss + prior, gradient + prior_gradient

    def _prior(self, theta: Array) -> tuple[float, Array]:
        """Lengths ~ LogNormal(√2 + ½ ln d, √3), amplitude ~ Gamma(2, 1), nugget ~ LogNormal(-4, 1)."""
        lengths = (theta[:-3] - self._length_middle) / self._length_spread
        share = theta[-2] / SHARE_SPREAD
        nugget = theta[-1] + 4
        amplitude = math.exp(theta[-3])
        loss = (lengths @ lengths + share**2 + nugget**2) / 2 + amplitude - theta[-3]
        gradient = np.concatenate(
            [lengths / self._length_spread, [amplitude - 1, share / SHARE_SPREAD, nugget]]
        )
        return float(loss), gradient


def _unpack(theta: Array) -> tuple[Array, float, float, float]:
    share = 1 / (1 + math.exp(-theta[-2]))
    return np.exp(theta[:-3]), math.exp(theta[-3]), share, math.exp(theta[-1])


def _choose(values: Array, seed: int) -> NDArray[np.int64]:
    """Choose the observations to fit to: half of them the best, the others at random."""
    if len(values) <= FIT_MOST:
        return np.arange(len(values))
    order = np.argsort(-values, kind="stable")
    best, rest = order[: FIT_MOST // 2], order[FIT_MOST // 2 :]
    others = np.random.default_rng(seed).choice(rest, FIT_MOST - len(best), replace=False)
    return np.sort(np.concatenate([best, others]))


def _factorise(covariance: Array, noise: Array) -> Array:
    """Give the lower Cholesky factor; a singular matrix gets more noise until it has one."""
    scale = float(np.mean(np.diag(covariance)))
    for extra in (0.0, 1e-8, 1e-6, 1e-4, 1e-2):
        try:
            return np.asarray(
                cholesky(covariance + np.diag(noise + extra * scale), lower=True, check_finite=False)
            )
        except LinAlgError:
            continue
    warnings.warn("the kernel is singular; the model of this study is a rough one", stacklevel=2)
    return np.asarray(np.diag(np.sqrt(np.diag(covariance) + noise)))
