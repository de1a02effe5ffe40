"""The response of log goodput to the arms of interleaved blocks, such as the values of one parameter.

The model of log goodput y of a trial of arm a in block t is

    y = β_t + f_a + e,

with a level β_t of its own for each block, so that drift of the host cancels out, and one f for all blocks.
Numbers that lie next to each other have similar f: a Gaussian process on their scale, with a part that each
value has for itself. That prior draws an arm of few trials towards the others, which keeps the best of many
from being the luckiest of many (the winner's curse; Efron & Morris, Scientific American 236, 1977). Its
hyperparameters are averaged over by their marginal likelihood, so their uncertainty is a part of every
interval. The noise e is Student's t: a stall of the host hits one trial and must not move the curve (Lange,
Little & Taylor, JASA 84, 1989, doi 10.1080/01621459.1989.10478852).

Symbols: W `weights` of the cells; D which cell is of which arm; A `information` = DᵀMD and DᵀMy `shown`,
where M is W with the levels of the blocks projected out; S a prior covariance of f, in units of the noise's
variance; (I + SA)⁻¹S the posterior's.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

DRAWS = 4000
CONFIDENCE = 0.95
NOISE_DEGREES = 4.0
"""Of Student's t of single trials."""
NOISE_EXCESS = 1.5
"""Variance of what is fitted with t's weights over what the weighted squares say: (ν + 3) / (ν + 1) = 1.4
where the noise is such a t (Lange et al., section 3), 1.55 where it is normal."""
PRIOR_NOISE = 0.04
PRIOR_NOISE_DEGREES = 1.0
"""Spread between trials that is expected before any is seen, and what that is worth in degrees of freedom."""
SIGNALS = tuple(np.geomspace(0.02, 50.0, 9))
"""Standard deviations of f relative to the noise."""
VAGUE_SIGNAL = 10.0
"""The same of a value beside a scale of numbers, of which they tell nothing."""
SMOOTH_SHARES = (0.0, 0.5, 0.9, 0.99)
"""Of f's variance: what neighbours share."""
LENGTHS = (0.15, 0.3, 0.6, 1.2)
"""Over how much of the range neighbours are alike."""
ROUNDS = 6
"""In which the weights of the trials settle."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one trial showed."""

    block: Hashable
    arm: int
    log: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A ratio with its 95 % interval."""

    ratio: float
    low: float
    high: float

    @classmethod
    def of(cls, logs: Array) -> "Estimate":
        """Return what draws of a log ratio say."""
        tail = (1 - CONFIDENCE) / 2
        low, middle, high = np.exp(np.quantile(logs, (tail, 0.5, 1 - tail))).tolist()
        return cls(ratio=middle, low=low, high=high)

    @property
    def half_width(self) -> float:
        """Return half of the interval's width, as a share of the ratio."""
        return (self.high - self.low) / (2 * self.ratio)


@dataclass(frozen=True, kw_only=True)
class ResponseCurve:
    """What all blocks say of the arms together."""

    draws: Array
    """Of the posterior of f, shape (draws, arms); what all arms share is arbitrary."""

    @classmethod
    def fit(cls, cells: Sequence[Cell], places: Sequence[float | None], *, seed: int = 0) -> "ResponseCurve":
        """Fit to the cells; blocks may lack some arms.

        Args:
            cells: one for each trial that counts.
            places: of each arm, where on its scale it lies, from 0 to 1; None for what has no place.
            seed: of the draws.
        """
        arms = np.array([cell.arm for cell in cells])
        logs = np.array([cell.log for cell in cells])
        member = _membership([cell.block for cell in cells])
        weights, fitted = np.ones(len(cells)), []
        for _ in range(ROUNDS):
            fitted = _fit_all(_Seen.sum_up(member, arms, logs, weights, len(places)), places)
            weights = _weigh(member, arms, logs, weights, fitted)
        return cls(draws=_draw(fitted, seed))

    def against(self, baseline: int) -> list[Estimate]:
        """Return the ratio of each arm to one of them."""
        return [Estimate.of(column) for column in (self.draws - self.draws[:, [baseline]]).T]

    def chances_within(self, share: float, among: Sequence[int]) -> dict[int, float]:
        """Return the probability that each of some arms loses at most a share against the best of them."""
        chosen = self.draws[:, list(among)]
        losses = chosen.max(axis=1, keepdims=True) - chosen
        near = np.mean(losses <= -np.log1p(-share) + 1e-12, axis=0)
        return dict(zip(among, map(float, near), strict=True))

    @cached_property
    def means(self) -> Array:
        """Posterior means of f, shape (arms,)."""
        means: Array = self.draws.mean(axis=0)
        return means


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The cells without the levels of their blocks, as sufficient statistics."""

    information: Array
    """Of f in units of the noise's precision, shape (arms, arms)."""
    shown: Array
    """Shape (arms,)."""
    squares: float
    degrees: float
    """Cells less blocks."""

    @classmethod
    def sum_up(cls, member: Array, arms: NDArray[np.int64], logs: Array, weights: Array, k: int) -> "_Seen":
        """Project the blocks' levels out, each cell with its weight."""
        design = np.eye(k)[arms]
        weighted = member * weights[:, None]
        within = np.diag(weights) - weighted @ np.diag(1 / weighted.sum(axis=0)) @ weighted.T
        return cls(
            information=design.T @ within @ design,
            shown=design.T @ within @ logs,
            squares=float(logs @ within @ logs),
            degrees=float(member.shape[0] - member.shape[1]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """The posterior under one set of hyperparameters; covariances are relative to the noise's variance."""

    mean: Array
    covariance: Array
    squares: float
    degrees: float
    log_evidence: float


def _fit_all(seen: _Seen, places: Sequence[float | None]) -> list[_Fitted]:
    """Fit under all hyperparameters.

    What lies beside a scale, such as `off`, is another thing than its numbers: were it drawn towards them as
    they are towards each other, a flat range would pull it in.
    """
    beside = np.array([place is None for place in places])
    vague = np.diag(np.where(beside, VAGUE_SIGNAL**2, 0.0))
    priors = [signal**2 * kernel for kernel in _kernels(places) for signal in SIGNALS]
    if not beside.all():
        priors = [np.where(np.diag(beside), vague, prior) for prior in priors]
    return [_fit(seen, prior) for prior in priors]


def _kernels(places: Sequence[float | None]) -> list[Array]:
    """Return the correlations of f, shape (arms, arms), of all hyperparameters."""
    at = np.array([np.nan if place is None else place for place in places])
    apart = np.abs(at[:, None] - at[None, :])
    own = np.eye(len(at))
    if np.isnan(apart[~own.astype(bool)]).all():
        return [own]
    kernels = []
    for share, length in product(SMOOTH_SHARES, LENGTHS):
        # Matérn 5/2, which bends more than a Gaussian: responses have knees.
        scaled = np.sqrt(5.0) * np.nan_to_num(apart, nan=np.inf) / length
        with np.errstate(invalid="ignore"):
            alike = np.nan_to_num((1 + scaled + scaled**2 / 3) * np.exp(-scaled), nan=0.0)
        np.fill_diagonal(alike, 1.0)
        kernels.append(share * alike + (1 - share) * own)
    return kernels


def _fit(seen: _Seen, prior: Array) -> _Fitted:
    """Return the posterior under one prior covariance, the noise's variance integrated out."""
    joint = np.eye(len(prior)) + prior @ seen.information
    covariance = np.linalg.solve(joint, prior)
    mean = covariance @ seen.shown
    squares = PRIOR_NOISE_DEGREES * PRIOR_NOISE**2 + max(0.0, seen.squares - float(seen.shown @ mean))
    degrees = PRIOR_NOISE_DEGREES + seen.degrees
    return _Fitted(
        mean=mean, covariance=(covariance + covariance.T) / 2, squares=squares, degrees=degrees,
        log_evidence=float(-0.5 * np.linalg.slogdet(joint)[1] - 0.5 * degrees * np.log(squares)),
    )  # fmt: skip


def _shares(fitted: Sequence[_Fitted]) -> Array:
    """Return the posterior probabilities of the hyperparameters."""
    logs = np.array([each.log_evidence for each in fitted])
    odds = np.exp(logs - logs.max())
    return np.asarray(odds / odds.sum())


def _weigh(
    member: Array, arms: NDArray[np.int64], logs: Array, weights: Array, fitted: Sequence[_Fitted]
) -> Array:
    """Return the weight of each cell: less, the farther it is from where the others put it."""
    shares = _shares(fitted)
    mean = sum(share * each.mean for share, each in zip(shares, fitted, strict=True))
    scale = sum(share * each.squares / each.degrees for share, each in zip(shares, fitted, strict=True))
    apart = logs - np.asarray(mean)[arms]
    weighted = member * weights[:, None]
    levels = (weighted.T @ apart) / weighted.sum(axis=0)
    residual = apart - member @ levels
    return np.asarray((NOISE_DEGREES + 1) / (NOISE_DEGREES + residual**2 / scale))


def _draw(fitted: Sequence[_Fitted], seed: int) -> Array:
    """Draw f from the posterior: hyperparameters, then the noise's variance, then f."""
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(DRAWS, _shares(fitted))
    parts = []
    for each, count in zip(fitted, counts, strict=True):
        if count:
            values, vectors = np.linalg.eigh(each.covariance)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            noise = np.sqrt(NOISE_EXCESS * each.squares / generator.chisquare(each.degrees, count))
            parts.append(each.mean + noise[:, None] * (generator.normal(size=(count, len(root))) @ root.T))
    return np.concatenate(parts)


def _membership(blocks: Sequence[Hashable]) -> Array:
    """Return which cell is in which block, shape (cells, blocks)."""
    numbers: Mapping[Hashable, int] = {block: number for number, block in enumerate(dict.fromkeys(blocks))}
    return np.eye(len(numbers))[[numbers[block] for block in blocks]]
