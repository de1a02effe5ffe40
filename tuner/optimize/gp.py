"""A Gaussian process whose observations have different, known variances.

Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), chapters 2 and 5. The kernel falls off
with the sum of the parameters' differences, as that of a forest of random trees does (Balog et al. 2016, The
Mondrian Kernel, arXiv 1606.05241): settings act at thresholds and as switches more often than smoothly.
Beside it stands its first order, in which each parameter adds its own (Duvenaud, Nickisch & Rasmussen 2011,
Additive Gaussian Processes, arXiv 1112.4394): what one does alone is learned from few observations. The
length scales have a prior that grows with the number of parameters (Hvarfner, Hellsten & Nardi 2024, arXiv
2402.02746, have it for squared distances), so that few observations of many parameters do not explain
everything by all of them.

Symbols, mostly those of Rasmussen & Williams:

- X `points` (n, d) and y `values` (n,): n observations of d parameters; y is standardised by `Scale`.
- r `rates` (d,): 1 / length scale. D(x, x′): Σ r · difference of x and x′.
- k(x, x′) `Kernel`: a · exp(−D) + b · (1 − D / Σ r) + `CONSTANT`, with a `amplitude` and b `additive`.
- η `nugget`: variance of what each point has for itself. s: scale of the observations' own variances.
- K: k(X, X) + η between equal points + `shared` + s · diag(`own`). L `factor`: LLᵀ = K. K⁻¹y: `weights`.
- θ `theta`: logs of the d length scales, log b, log a, log η, log s.
"""

import math
import warnings
from dataclasses import dataclass, replace
from itertools import islice
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from tuner.optimize.encoding import Array, Columns, Points
from tuner.optimize.slice_sampling import sample_slices

NOISE_SCALE_SPREAD = 1.0
"""Standard deviation that the log of the noise's scale has beforehand at most."""
LOG_SCALE_BOUNDS = (-2.0, 2.0)
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
SEARCHED = (ADDITIVE_PRIOR, AMPLITUDE_PRIOR)
EXPLAINED = ((0.5, 1.0), (-1.0, 0.8))
"""Priors of the additive part and of the other one. A search must not miss what only several settings give
together, and so expects much of it. What settings are worth is asked with the principle of effect hierarchy
(Wu & Hamada, Experiments, 2nd ed. 2009, section 4.6): what each does alone is beforehand four times what they
do together. The observations may say otherwise."""
BURN_IN, THINNING = 200, 20
"""States of the chain of kernels: left out at its beginning, and from one that is kept to the next."""
OTHERS = 4
"""Elements of θ behind the length scales."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationNoise:
    """What observations have beside the function, in the square of the values' units."""

    own: Array
    """Variance of each observation alone; shape (n,)."""
    shared: Array | None = None
    """Covariance that they have together, such as a drift over time; shape (n, n), None for none."""
    degrees: float = math.inf
    """Degrees of freedom with which `own` is known; a scale common to all of it is fitted with the kernel,
    and strays from 1 the more the fewer there are."""

    @property
    def scale_spread(self) -> float:
        """Standard deviation of the log of the scale beforehand: √(2/ν), that of the log of χ²_ν/ν."""
        return min(math.sqrt(2 / self.degrees), NOISE_SCALE_SPREAD)

    def standardise(self, scale: "Scale") -> "ObservationNoise":
        """Return the same for standardised values."""
        shared = None if self.shared is None else self.shared / scale.spread**2
        return replace(self, own=scale.noise(self.own), shared=shared)

    def choose(self, rows: NDArray[np.int64]) -> "ObservationNoise":
        """Return that of some of the observations."""
        shared = None if self.shared is None else self.shared[np.ix_(rows, rows)]
        return replace(self, own=self.own[rows], shared=shared)


class GaussianProcess:
    """The posterior after some observations; everything it says is in the values' own units."""

    def __init__(
        self, kernel: Kernel, nugget: float, points: Points, values: Array, noise: ObservationNoise
    ) -> None:
        """Condition on observations.

        Args:
            kernel: of standardised values.
            nugget: variance of what each point has for itself, standardised; repeats of a point share it.
            points: shape (n, d).
            values: shape (n,).
            noise: of the values.
        """
        self.kernel = kernel
        self.nugget = nugget
        self.points = points
        self._scale = Scale.of(values, noise.own)
        standard = (values - self._scale.middle) / self._scale.spread
        noise = noise.standardise(self._scale)
        self._prior = kernel(points, points)
        covariance = self._prior + nugget * find_alike(points, points)
        if noise.shared is not None:
            covariance = covariance + noise.shared
        self._factor = _factorise(covariance, noise.own + JITTER)
        self._weights = cho_solve((self._factor, True), standard)

    @classmethod
    def fit(
        cls,
        columns: Columns,
        points: Points,
        values: Array,
        noise: ObservationNoise,
        *,
        seed: int = 0,
        is_noise_known: bool = False,
    ) -> Self:
        """Find the most probable kernel (maximum a posteriori), then condition on all observations.

        Raises nothing for values that are all alike or a singular kernel: both give a posterior that knows
        little.

        Args:
            columns: of the points.
            points: shape (n, d); repeats stand side by side.
            values: shape (n,).
            noise: of the values.
            seed: of the choice among very many observations.
            is_noise_known: whether what length scales do not explain is no noise.
        """
        evidence = _Evidence.of(columns, points, values, noise, seed)
        most = LOG_NUGGET_MOST_KNOWN if is_noise_known else LOG_NUGGET_BOUNDS[1]
        kernel, nugget, scale = evidence.unpack(evidence.maximise(most))
        return cls(kernel, nugget, points, values, replace(noise, own=scale * noise.own))

    @classmethod
    def sample(
        cls,
        columns: Columns,
        points: Points,
        values: Array,
        noise: ObservationNoise,
        *,
        count: int,
        seed: int = 0,
        is_noise_known: bool = False,
    ) -> list[Self]:
        """Draw kernels from their own posterior, and condition each on all observations.

        One kernel, the most probable one, knows which parameters matter; what it says of the others is too
        sure. Arguments as for `fit`, and how many to draw.
        """
        evidence = _Evidence.of(columns, points, values, noise, seed, EXPLAINED)
        most = LOG_NUGGET_MOST_KNOWN if is_noise_known else LOG_NUGGET_BOUNDS[1]
        drawn = [evidence.unpack(theta) for theta in evidence.sample(count, most, seed)]
        return [
            cls(kernel, nugget, points, values, replace(noise, own=scale * noise.own))
            for kernel, nugget, scale in drawn
        ]

    def predict(self, points: Points) -> tuple[Array, Array]:
        """Return mean and variance of the function itself, without noise; shape (m,) each."""
        covariances = self.kernel(points, self.points)
        halves = solve_triangular(self._factor, covariances.T, lower=True, check_finite=False)
        variances = np.maximum(self.kernel.variance - np.sum(halves * halves, axis=0), 1e-12)
        return self._back(covariances @ self._weights), variances * self._scale.spread**2

    def joint(
        self,
        points: Points,
        *,
        is_rough: bool = False,
        across: Array | None = None,
        between: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return means (m,) and covariances (m, m) at points, without noise of their own.

        Args:
            points: shape (m, d).
            is_rough: with what each point has for itself.
            across: shape (m, n), covariances of noise that these share with the observations.
            between: shape (m, m), those of noise that these have together.
        """
        to_known, to_each_other = self.kernel(points, self.points), self.kernel(points, points)
        if is_rough:
            to_known += self.nugget * find_alike(points, self.points)
            to_each_other += self.nugget * find_alike(points, points)
        if across is not None and between is not None:
            to_known += across / self._scale.spread**2
            to_each_other += between / self._scale.spread**2
        halves = solve_triangular(self._factor, to_known.T, lower=True, check_finite=False)
        covariances = to_each_other - halves.T @ halves
        return self._back(to_known @ self._weights), covariances * self._scale.spread**2

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

    θ holds the log of each length scale, of the additive part, of the amplitude, of the nugget and of the
    scale of the noise. Only pairs i < j are kept: the covariances are symmetric.
    """

    def __init__(
        self,
        columns: Columns,
        points: Points,
        standard: Array,
        noise: ObservationNoise,
        parts: tuple[tuple[float, float], tuple[float, float]] = SEARCHED,
    ) -> None:
        self._columns = columns
        self._standard = standard
        self._own = noise.own
        self._pairs = first, second = np.triu_indices(len(points), 1)
        self._below = first * len(points) + second
        """Where the pairs are below the diagonal of a matrix, column after column."""
        self._alike = find_alike(points, points)[first, second].astype(float)
        shared = np.zeros((1, 1)) if noise.shared is None else noise.shared
        self._shared = 0.0 if noise.shared is None else shared[first, second]
        self._shared_own = 0.0 if noise.shared is None else shared.diagonal()
        embedded, widths = np.ascontiguousarray(columns.embed(points).T), columns.widths
        steps = np.abs(embedded[:, first] - embedded[:, second])
        self._gaps = np.add.reduceat(steps, np.cumsum(widths) - widths, axis=0)
        """Distances by column and pair."""
        dimensions = len(columns)
        middles = [_typical(dimensions)] * dimensions
        # A scale that is known is held by its bounds, and its prior never asked.
        scale_prior = (0.0, noise.scale_spread or 1.0)
        self._log_scale_bounds = LOG_SCALE_BOUNDS if noise.scale_spread else (0.0, 0.0)
        others = (*parts, NUGGET_PRIOR, scale_prior)
        self._middle = np.array([*middles, *(middle for middle, _ in others)])
        self._spread = np.array([*[LENGTH_PRIOR[1]] * dimensions, *(spread for _, spread in others)])

    @classmethod
    def of(
        cls,
        columns: Columns,
        points: Points,
        values: Array,
        noise: ObservationNoise,
        seed: int,
        parts: tuple[tuple[float, float], tuple[float, float]] = SEARCHED,
    ) -> Self:
        """Standardise observations, and choose among them where there are many."""
        chosen = _choose(values, seed)
        scale = Scale.of(values, noise.own)
        standard = (values[chosen] - scale.middle) / scale.spread
        return cls(columns, points[chosen], standard, noise.choose(chosen).standardise(scale), parts)

    def maximise(self, log_nugget_most: float = LOG_NUGGET_BOUNDS[1]) -> Array:
        """Return the most probable θ."""
        dimensions = len(self._columns)
        others = [ADDITIVE_PRIOR[0], 0.0, min(log_nugget_most, NUGGET_PRIOR[0]), 0.0]
        begin = np.array([_typical(dimensions)] * dimensions + others)
        found = minimize(
            self,
            begin,
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds(log_nugget_most),
            options={"maxiter": ITERATIONS, "ftol": ENOUGH},
        )
        return np.asarray(found.x if math.isfinite(found.fun) else begin)

    def sample(self, count: int, log_nugget_most: float, seed: int) -> list[Array]:
        """Draw θ from its posterior, so far apart on a chain that one says little of the next."""
        low, high = np.array(self._bounds(log_nugget_most)).T
        fixed = low == high

        def log_likelihood(theta: Array) -> float:
            theta = np.where(fixed, low, theta)
            is_within = bool(np.all((theta >= low) & (theta <= high)))
            return self.log_likelihood(theta) if is_within else -math.inf

        chain = sample_slices(
            log_likelihood,
            self.maximise(log_nugget_most),
            self._middle,
            self._spread,
            np.random.default_rng(seed),
        )
        kept = islice(chain, BURN_IN, BURN_IN + count * THINNING, THINNING)
        return [np.where(fixed, low, theta) for theta in kept]

    def _bounds(self, log_nugget_most: float) -> list[tuple[float, float]]:
        return [LOG_LENGTH_BOUNDS] * len(self._columns) + [
            LOG_AMPLITUDE_BOUNDS,
            LOG_AMPLITUDE_BOUNDS,
            (LOG_NUGGET_BOUNDS[0], log_nugget_most),
            self._log_scale_bounds,
        ]

    def log_likelihood(self, theta: Array) -> float:
        """Return the log probability density of the values under θ, but for a constant."""
        rates = np.exp(-theta[:-OTHERS])
        additive, amplitude, nugget, scale = np.exp(theta[-OTHERS:])
        distances = rates @ self._gaps
        factor = self._factor(
            amplitude * np.exp(-distances)
            + additive * (1 - distances / rates.sum())
            + nugget * self._alike
            + self._shared,
            amplitude + additive + nugget + scale * self._own + self._shared_own,
        )
        if factor is None:
            return -math.inf
        weights, _ = dpotrs(factor, self._standard, lower=1)
        return -float(self._standard @ weights / 2 + np.log(factor.diagonal()).sum())

    def unpack(self, theta: Array) -> tuple[Kernel, float, float]:
        """Return the kernel, the nugget and the scale of the noise of θ."""
        additive, amplitude, nugget, scale = np.exp(theta[-OTHERS:]).tolist()
        return Kernel(self._columns, np.exp(-theta[:-OTHERS]), amplitude, additive), nugget, scale

    def __call__(self, theta: Array) -> tuple[float, Array]:
        rates = np.exp(-theta[:-OTHERS])
        additive, amplitude, nugget, scale = np.exp(theta[-OTHERS:])
        distances, total = rates @ self._gaps, rates.sum()
        correlations, own = np.exp(-distances), 1 - distances / total
        factor = self._factor(
            amplitude * correlations + additive * own + nugget * self._alike + self._shared,
            amplitude + additive + nugget + scale * self._own + self._shared_own,
        )
        if factor is None:
            return 1e10, np.zeros_like(theta)
        weights, _ = dpotrs(factor, self._standard, lower=1)
        loss = self._standard @ weights / 2 + float(np.log(factor.diagonal()).sum())
        inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
        # d loss / d K, of which each pair i < j stands twice.
        first, second = self._pairs
        of_pairs = inverse.T.reshape(-1)[self._below] - weights[first] * weights[second]
        of_each = (inverse.diagonal() - weights * weights) / 2
        of_diagonal = float(of_each.sum())

        away = (theta - self._middle) / self._spread
        gradient = away / self._spread
        slopes = amplitude * correlations + additive / total
        gradient[:-OTHERS] += rates * (self._gaps @ (of_pairs * slopes))
        gradient[:-OTHERS] -= rates * (additive / total**2 * (of_pairs @ distances))
        gradient[-4] += additive * (of_pairs @ own + of_diagonal)
        gradient[-3] += amplitude * (of_pairs @ correlations + of_diagonal)
        gradient[-2] += nugget * (of_pairs @ self._alike + of_diagonal)
        gradient[-1] += scale * float(of_each @ self._own)
        return float(loss + away @ away / 2), gradient

    def _factor(self, covariances: Array, variances: Array) -> Array | None:
        """Return the lower Cholesky factor; what is above its diagonal has no meaning.

        LAPACK is called without scipy's checks, which take as long as these small matrices do.
        """
        count = len(self._standard)
        matrix = np.empty((count, count), order="F")
        flat = matrix.T.reshape(-1)
        flat[self._below] = CONSTANT + covariances
        flat[:: count + 1] = CONSTANT + variances + JITTER
        factor, failure = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        return None if failure else factor


def find_alike(one: Points, other: Points) -> NDArray[np.bool_]:
    """Return which points (n, d) are the same as which others (m, d), shape (n, m); NaN equals itself."""
    rows = np.concatenate([np.nan_to_num(one, nan=-1.0), np.nan_to_num(other, nan=-1.0)])
    _, where = np.unique(rows, axis=0, return_inverse=True)
    where = where.reshape(-1)
    return np.asarray(where[: len(one), None] == where[None, len(one) :])


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
    warnings.warn(
        ("the covariance matrix of the model is singular, so its predictions are rough"), stacklevel=2
    )
    return np.asarray(np.diag(np.sqrt(np.maximum(np.diag(covariance) + noise, JITTER))))
