"""NoisyGPSampler: Bayesian optimization that knows how noisy each observation is, as an Optuna sampler."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState
from scipy.stats import qmc

from tuner.optimize.acquisition import NoisyExpectedImprovement, knowledge_gradient, log_feasibility
from tuner.optimize.conditions import Conditions
from tuner.optimize.encoding import Encoding, Points
from tuner.optimize.gp import Array, Columns, GaussianProcess
from tuner.optimize.history import History, fitting, gather, union_space, within
from tuner.optimize.scalar import compress, scalarise
from tuner.optimize.search import are_new, maximise
from tuner.optimize.warm import lean

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study

SEEN = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING)
STARTUP_TRIALS = 4
"""Regret after 10/15/20 starts on recorded and made surfaces (80 seeds): .261/.207/.179; with 6
.270/.218/.186; with 2 and 3 as with 4."""
EXPLORE_EVERY = 10
"""Every so many trials one is drawn without asking what it promises, should the model be wrong."""
REDRAWN = 0.3
"""So many of the best point's parameters are drawn anew for it: what they do beside what is good is seen in
this way. Uniform draws, these every fifth time, and none at all had the same regret within the 6 % that other
random numbers make (recorded and made surfaces, 20 seeds)."""
DRAWS = 32
"""Points that are drawn for it, of which the first that is probably feasible is taken."""
REPEAT_EVERY = 5
"""Every so many trials one may be measured again. Asked every time, the search stays with what it knows: it
sees what a repeat tells now, and not where a new point may lead."""
GOOD = 8
"""Points with the best posterior mean that the search starts from."""
MOST_CONSTRAINTS = 3
"""Models of constraints. Where more were broken, the last one is of the worst of those broken least often."""
FAILED, DONE = 1.0, -1.0
"""Slacks that say whether a trial had a value at all."""
VARIANCE_OF_SLACK = 0.01
UNKNOWN_SHARE = 0.05
"""Variance that is taken for granted where nobody told it, as a share of the values' spread squared."""
LEAST_FREEDOM = 5
"""Degrees of freedom from which on repeats are taken to tell it."""
PRUNED_INFLATION = 4.0
"""A pruned trial was cut short: its last intermediate value counts with so much more variance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A trial and what the model thinks that it is worth."""

    trial: FrozenTrial
    mean: float
    deviation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The parameters of a trial, and what is expected of them."""

    params: dict[str, Any]
    improvement: float | None = None
    """Expected improvement over the best so far times the probability of feasibility; None where the model
    was not asked."""


class NoisyGPSampler(BaseSampler):
    """Suggests by noisy expected improvement and the probability of feasibility, under Gaussian processes.

    It reads of each trial

    * its value, and how noisy that is: the user attribute `variance`; without it, the noise is inferred;
    * its constraints (`trial.set_constraint`): at most 0 is feasible;
    * whether it failed: a failed trial has no value and speaks only of feasibility;
    * whether it is still running elsewhere.

    The suggestion for a trial depends on the seed, on the trial's number and on the other trials alone, so
    that a resumed study goes on as an uninterrupted one would.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        startup_trials: int = STARTUP_TRIALS,
        warm: Sequence[Mapping[str, Any]] = (),
        repeats: bool = True,
    ) -> None:
        """Make a sampler.

        Raises TypeError or ValueError for what is none of these.

        Args:
            seed: of everything that is drawn, 0 or more; None for another one each time.
            startup_trials: measured trials before the model is asked; until then a Sobol' sequence.
            repeats: whether some suggestions may be what was there before, to be measured once more.
            warm: parameters that were good in earlier studies; the search leans towards them, less and less.
        """
        _checked(seed, startup_trials, warm)
        self._seed = _fresh_seed() if seed is None else int(seed)
        self._startup_trials = startup_trials
        self._warm = tuple(warm)
        self._repeats = repeats

    def reseed_rng(self) -> None:
        """Take another seed, for a worker of its own."""
        self._seed = _fresh_seed()

    def infer_relative_search_space(
        self,
        study: "Study",
        trial: FrozenTrial,  # noqa: ARG002 - Optuna's interface
    ) -> dict[str, "BaseDistribution"]:
        """Give every parameter that any trial had, conditional ones too."""
        return union_space(study.get_trials(deepcopy=False, states=SEEN))

    def sample_independent(
        self,
        study: "Study",  # noqa: ARG002 - Optuna's interface
        trial: FrozenTrial,
        param_name: str,
        param_distribution: "BaseDistribution",
    ) -> Any:  # noqa: ANN401 - a value of any distribution
        """Draw a parameter that no trial had before."""
        encoding = Encoding({param_name: param_distribution})
        rng = np.random.default_rng((self._seed, trial.number, *param_name.encode()))
        return encoding.decode(encoding.draw(1, rng)[0])[param_name]

    def sample_relative(
        self, study: "Study", trial: FrozenTrial, search_space: dict[str, "BaseDistribution"]
    ) -> dict[str, Any]:
        """Suggest the parameters of a trial."""
        return self.propose(study, trial, search_space).params

    def propose(
        self, study: "Study", trial: FrozenTrial, search_space: dict[str, "BaseDistribution"]
    ) -> Proposal:
        """Suggest the parameters of a trial, and say what to expect of them."""
        if not search_space:
            return Proposal(params={})
        trials = within(study.get_trials(deepcopy=False, states=SEEN), search_space)
        history = gather(trials, study.directions, but=trial.number)
        encoding = Encoding(search_space)
        rng = np.random.default_rng((self._seed, trial.number))
        if len(history.measured) < max(1, self._startup_trials):
            return Proposal(params=encoding.decode(self._spread(encoding, trial.number)))
        values, variances = scalarise(history.values, history.variances, rng)
        model = Model.of(history, encoding, values, variances, seed=self._seed)
        pending = model.conditions.apply(encoding.encode(fitting(history.pending, search_space)))
        known = np.concatenate([model.tried, pending])
        if trial.number % EXPLORE_EVERY == EXPLORE_EVERY - 1:
            return Proposal(params=encoding.decode(model.draw(encoding, known, rng)))
        expected = NoisyExpectedImprovement(model.objective, model.constraints, pending, rng)
        score = lean(expected, self._warm, encoding, len(history.measured)) if self._warm else expected
        good = model.best(GOOD)
        point = maximise(
            lambda points: np.where(are_new(points, known), score(points), -np.inf),
            encoding,
            model.conditions,
            good,
            rng,
        )
        is_left = are_new(point[None], known)[0] and expected.is_hopeful(point)
        if not is_left and model.is_likely(good[:1])[0]:
            # All else was tried, or fails.
            point = model.most_telling(good)
        elif self._repeats and trial.number % REPEAT_EVERY == 0:
            # Where it pays more to know which one is best than to try another, one is measured again.
            point = model.most_telling(np.concatenate([point[None], good]))
        alone = len(study.directions) == 1
        return Proposal(
            params=encoding.decode(point), improvement=expected.improvement(point) if alone else None
        )

    def incumbent(self, study: "Study") -> FrozenTrial | None:
        """Give the feasible trial with the best posterior mean; None where no trial is feasible."""
        estimate = self.estimate(study)
        return None if estimate is None else estimate.trial

    def estimate(self, study: "Study") -> Estimate | None:
        """Give the incumbent with its posterior mean and standard deviation.

        Raises:
            ValueError: the study has several objectives; `study.best_trials` gives its Pareto front.
        """
        if len(study.directions) > 1:
            msg = "a study of several objectives has no incumbent; study.best_trials gives its Pareto front"
            raise ValueError(msg)
        trials = study.get_trials(deepcopy=False, states=SEEN)
        space = union_space(trials)
        history = gather(within(trials, space), study.directions)
        candidates = history.recommendable()
        if not candidates:
            return None
        values, told = history.values[:, 0], history.variances[:, 0]
        if space:
            encoding = Encoding(space)
            points = encoding.encode(fitting([history.measured[row] for row in candidates], space))
            model = Model.of(history, encoding, values, told, seed=self._seed)
            means, variances = model.objective.predict(points)
        else:
            # Of nothing but constants there is one configuration, which was measured again and again.
            alike = np.zeros((len(values), 1))
            _, means, variances = merge(alike, values, single_variances(history, alike, values, told)[0])
        best = int(np.argmax(means))
        sign = 1.0 if study.direction.name == "MAXIMIZE" else -1.0
        return Estimate(
            trial=history.measured[candidates[best]],
            mean=sign * float(means[best]),
            deviation=math.sqrt(float(variances[best])),
        )

    def _spread(self, encoding: Encoding, number: int) -> NDArray[np.float64]:
        """Give a point of a scrambled Sobol' sequence (Owen 1998)."""
        sequence = qmc.Sobol(len(encoding.names), rng=np.random.default_rng(self._seed))
        if number:
            sequence.fast_forward(number)
        return np.asarray(encoding.place(sequence.random(1))[0])


@dataclass(frozen=True, slots=True)
class Model:
    """What is thought of a study: its objective, and each constraint that was ever broken."""

    conditions: Conditions
    objective: GaussianProcess
    constraints: tuple[GaussianProcess, ...]
    tried: Points
    """Shape (n, d), those that failed among them."""
    variance: float
    """Of a single observation, typically."""

    @classmethod
    def of(cls, history: History, encoding: Encoding, values: Array, variances: Array, *, seed: int) -> Self:
        """Fit to the trials of a study, of which `values` and `variances` (n,) are what they are worth."""
        space = encoding.space
        measured = encoding.encode(fitting(history.measured, space))
        failed = encoding.encode(fitting(history.failed, space))
        tried = np.concatenate([measured, failed])
        conditions = Conditions.learn(tried, encoding.is_choice)
        columns = Columns(encoding.is_choice, conditions.conditional, encoding.levels)
        single, is_noise_known = single_variances(history, measured, values, variances)
        points, values, variances = merge(measured, values, single)
        objective = GaussianProcess.fit(
            columns, points, compress(values), variances, seed=seed, is_noise_known=is_noise_known
        )
        constraints = [
            GaussianProcess.fit(columns, *merge(of, slack, np.full(len(slack), VARIANCE_OF_SLACK)), seed=seed)
            for of, slack in _broken(history, measured, failed)
        ]
        return cls(conditions, objective, tuple(constraints), tried, float(np.median(single)))

    def best(self, count: int) -> Points:
        """Give the points with the best posterior means, of those that are probably feasible."""
        points = self.objective.points
        means, _ = self.objective.predict(points)
        order = np.lexsort((-means, ~self.is_likely(points)))
        return points[order[:count]]

    def most_telling(self, options: Points) -> Array:
        """Give the point (d,) of some, of which one more observation does most to know which one is best."""
        worth = knowledge_gradient(self.objective, options, self.variance)
        return np.asarray(options[int(np.argmax(worth * np.exp(log_feasibility(self.constraints, options))))])

    def draw(self, encoding: Encoding, known: Points, rng: np.random.Generator) -> Array:
        """Draw some parameters of the best point anew; the point (d,) is not known and probably feasible."""
        drawn, best = encoding.draw(DRAWS, rng), self.best(1)
        is_kept = (rng.random(drawn.shape) >= REDRAWN) & ~np.isnan(best)
        points = self.conditions.apply(np.where(is_kept, best, drawn))
        # Where a small space has no such point left, a known one is better than one that fails.
        worth = 2 * self.is_likely(points) + are_new(points, known)
        return np.asarray(points[int(np.argmax(worth))])

    def is_likely(self, points: Points) -> NDArray[np.bool_]:
        """Say which points (m, d) are rather feasible than not; shape (m,)."""
        return log_feasibility(self.constraints, points) > math.log(0.5)


def merge(points: Points, values: Array, variances: Array) -> tuple[Points, Array, Array]:
    """Put repeats of a point together, weighted by inverse variance."""
    _, first, where = np.unique(
        np.nan_to_num(points, nan=-1.0), axis=0, return_index=True, return_inverse=True
    )
    weights = 1 / variances
    totals = np.bincount(where, weights)
    means = np.bincount(where, weights * values) / totals
    order = np.argsort(first, kind="stable")
    return points[first[order]], means[order], 1 / totals[order]


def single_variances(history: History, points: Points, values: Array, told: Array) -> tuple[Array, bool]:
    """Give the variance of each observation, shape (n,), and say whether they are known.

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
    """Give the variance between observations of the same point; None where there are too few."""
    _, where, counts = np.unique(
        np.nan_to_num(points, nan=-1.0), axis=0, return_inverse=True, return_counts=True
    )
    freedom = len(values) - len(counts)
    if freedom < LEAST_FREEDOM:
        return None
    means = np.bincount(where, values) / counts
    return float(np.sum((values - means[where]) ** 2)) / freedom


def _broken(history: History, measured: Points, failed: Points) -> list[tuple[Points, Array]]:
    """Give points and slacks of the constraints that were broken most often, failing among them."""
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
    """Give the worst slack of each point."""
    _, first, where = np.unique(
        np.nan_to_num(points, nan=-1.0), axis=0, return_index=True, return_inverse=True
    )
    worst = np.full(len(first), -np.inf)
    np.maximum.at(worst, where, slack)
    return points[first], worst


def _bounded(slack: Array) -> Array:
    """Bring slacks of any unit to between -1 and 1; what is feasible stays so."""
    sizes = np.abs(slack[np.isfinite(slack) & (slack != 0)])
    scale = float(np.quantile(sizes, 0.5, method="lower")) if len(sizes) else 1.0
    with np.errstate(over="ignore"):
        return np.asarray(np.tanh(slack / scale))


def _checked(seed: int | None, startup_trials: int, warm: Sequence[Mapping[str, Any]]) -> None:
    """Refuse arguments that would only fail later. Raises ValueError or TypeError."""
    for name, number in (("seed", seed), ("startup_trials", startup_trials)):
        if number is None and name == "seed":
            continue
        if not isinstance(number, int | np.integer) or isinstance(number, bool):
            msg = f"{name}: {number!r} is no whole number"
            raise TypeError(msg)
        if number < 0:
            msg = f"{name}: {number} is negative; use 0 or more"
            raise ValueError(msg)
    if isinstance(warm, Mapping | str) or not all(isinstance(each, Mapping) for each in warm):
        msg = f"warm: {warm!r} is no sequence of parameters by name, as trial.params are"
        raise TypeError(msg)


def _fresh_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])
