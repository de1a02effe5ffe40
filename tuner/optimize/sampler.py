"""NoisyGPSampler: Bayesian optimization that knows how noisy each observation is, as an Optuna sampler."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from tuner.optimize.acquisition import NoisyExpectedImprovement, Score, are_new, maximise
from tuner.optimize.encoding import Encoding, Points
from tuner.optimize.history import History, fitting, gather, scalarise, union_space, widened
from tuner.optimize.leaning import HINT_PRICES, Leaning
from tuner.optimize.model import Model, merge, single_variances
from tuner.space import Hint

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study

    from tuner.optimize.replay import ReplayedStudy

SEEN = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING)
STARTUP_TRIALS = 4
"""Regret after 10/15/20 trials on recorded and made surfaces (80 seeds): .261/.207/.179; with 6
.270/.218/.186; with 2 and 3 as with 4."""
EXPLORE_EVERY = 10
"""Every so many trials one goes where least is known, whatever it promises, should the model be wrong. Regret
after 20 trials (recorded and made surfaces, 80 seeds) .181, with uniform draws .184, with changes of the best
.181."""
REPEAT_EVERY = 5
"""Every so many trials one may be measured again. Asked every time, the search stays with what it knows: it
sees what a repeat tells now, and not where a new point may lead."""
GOOD = 8
"""Points with the best posterior mean that the search starts from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEstimate:
    """A trial and what the model thinks that it is worth."""

    trial: FrozenTrial
    mean: float
    deviation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledTrial:
    """The parameters of a trial, and what is expected of them."""

    params: dict[str, Any]
    improvement: float | None = None
    """Expected improvement over the best so far times the probability of feasibility; None where the model
    was not asked."""


class KeptModel:
    """The last model, as long as nothing new was measured: that more is pending changes nothing of it."""

    def __init__(self) -> None:
        """Begin with none."""
        self._last: tuple[tuple[object, ...], History, Model] | None = None

    def find(self, history: History, further: tuple[object, ...], fit: Callable[[], Model]) -> Model:
        """Return the model of these very trials, and of what it depends on further; fit it where needed."""
        # What is kept keeps its trials alive, so that no other one can have the identity of one of them.
        key = (*further, *map(id, history.measured), None, *map(id, history.failed))
        if self._last is None or self._last[0] != key:
            self._last = key, history, fit()
        return self._last[2]


class NoisyGPSampler(BaseSampler):
    """Suggests by noisy expected improvement and the probability of feasibility, under Gaussian processes.

    It reads of each trial

    * its value, and how noisy that is: the user attribute `variance`; without it, the noise is inferred;
    * its constraints (`trial.set_constraint`): at most 0 is feasible;
    * whether it failed: a failed trial has no value and speaks only of feasibility;
    * whether it is still running elsewhere.

    The suggestion for a trial depends on the seed, on the trial's number and on the other trials alone, so
    that a resumed study continues as an uninterrupted one would.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        startup_trials: int = STARTUP_TRIALS,
        warm: Sequence[Mapping[str, Any]] = (),
        repeats: bool = True,
        reference: Mapping[str, Any] | None = None,
        price: float = 0.0,
        hints: Mapping[str, Hint] = MappingProxyType({}),
    ) -> None:
        """Make a sampler.

        Raises TypeError or ValueError for what is none of these.

        Args:
            seed: of everything that is drawn, 0 or more; None for another one each time.
            startup_trials: measured trials before the model is asked; until then a Sobol' sequence.
            repeats: whether some suggestions may be what was there before, to be measured once more.
            warm: parameters that were good in earlier studies; the search mixes them with what is good in
                this one. They are not tried as they are: `study.enqueue_trial` does that.
            reference: parameters of what is in use today. Single ones are put back to it, so that what does
                not help is not carried along for ever.
            price: of each parameter that differs from the reference, in the objective's units.
            hints: what experts know, by parameter name. Two thirds of the changes lean on them, and each is
                expected to be worth some prices when it is right and the reference does not follow it.
        """
        warm = warm if isinstance(warm, Mapping | str) else tuple(warm)
        _checked(seed, startup_trials, warm)
        self._seed = _fresh_seed() if seed is None else int(seed)
        self._startup_trials = startup_trials
        self._warm = tuple(warm)
        self._repeats = repeats
        self._reference = () if reference is None else (dict(reference),)
        self._price = price
        self._hints = dict(hints)

    def reseed_rng(self) -> None:
        """Draw another seed, for a worker of its own."""
        self._seed = _fresh_seed()

    def infer_relative_search_space(
        self,
        study: "Study",
        trial: FrozenTrial,  # noqa: ARG002 - Optuna's interface
    ) -> dict[str, "BaseDistribution"]:
        """Return every parameter that any trial had, conditional ones too."""
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
        self,
        study: "Study | ReplayedStudy",
        trial: FrozenTrial,
        search_space: dict[str, "BaseDistribution"],
        kept: KeptModel | None = None,
    ) -> SampledTrial:
        """Suggest the parameters of a trial, and say what to expect of them.

        A model that is kept is that of the trial before, where several are suggested at once.
        """
        if not search_space:
            return SampledTrial(params={})
        trials = study.get_trials(deepcopy=False, states=SEEN)
        history = gather(trials, study.directions, but=trial.number)
        encoding = Encoding(widened(search_space, trials), today=search_space)
        rng = np.random.default_rng((self._seed, trial.number))
        if len(history.measured) < max(1, self._startup_trials):
            return SampledTrial(params=encoding.decode(self._spread(encoding, trial.number)))
        values, variances = scalarise(history.values, history.variances, rng)
        leaning = Leaning.of(self._hints, encoding) if self._hints else None
        of_hints = partial(self._expect, leaning, encoding)
        model = (kept or KeptModel()).find(
            history,
            (self._seed, values.tobytes(), variances.tobytes()),
            lambda: Model.of(history, encoding, values, variances, seed=self._seed, trend=of_hints),
        )
        pending = model.conditions.apply(encoding.encode(fitting(history.pending, search_space)))
        known = np.concatenate([model.tried, pending])
        reference = model.conditions.apply(encoding.encode(self._reference))
        less_price = partial(_less_price, reference, self._price)

        def bonus(points: Points) -> NDArray[np.float64]:
            return less_price(points) + of_hints(points)

        expected = NoisyExpectedImprovement(model.objective, model.constraints, pending, rng, bonus)
        is_exploring = trial.number % EXPLORE_EVERY == EXPLORE_EVERY - 1
        score: Score = model.doubt if is_exploring else expected
        good = model.best(GOOD, bonus)
        earlier = _recall(self._warm, GOOD, encoding, rng)
        point = maximise(
            lambda points: np.where(are_new(points, known), score(points), -np.inf),
            encoding,
            model.conditions,
            np.concatenate([good, earlier]),
            rng,
            leaning,
            reference=reference,
        )
        is_left = are_new(point[None], known)[0] and expected.is_hopeful(point)
        if not is_left and model.is_likely(good[:1])[0]:
            # All else was tried, or fails.
            point = model.most_informative(good)
        elif self._repeats and trial.number % REPEAT_EVERY == 0:
            # Where it pays more to know which one is best than to try another, one is measured again.
            point = model.most_informative(np.concatenate([point[None], good]))
        is_told = len(study.directions) == 1 and not is_exploring
        return SampledTrial(
            params=encoding.decode(point), improvement=expected.improvement(point) if is_told else None
        )

    def _expect(self, leaning: Leaning | None, encoding: Encoding, points: Points) -> NDArray[np.float64]:
        """Return what hints promise of points (m, d), in the objective's units; shape (m,)."""
        if leaning is None or not self._reference:
            return np.zeros(len(points))
        return HINT_PRICES * self._price * leaning.expect(points, encoding.encode(self._reference)[0])

    def incumbent(self, study: "Study") -> FrozenTrial | None:
        """Return the feasible trial with the best posterior mean; None where no trial is feasible."""
        estimate = self.estimate(study)
        return None if estimate is None else estimate.trial

    def estimate(self, study: "Study") -> TrialEstimate | None:
        """Return the incumbent with its posterior mean and standard deviation.

        Raises:
            ValueError: the study has several objectives; `study.best_trials` gives its Pareto front.
        """
        if len(study.directions) > 1:
            raise ValueError(
                "a study of several objectives has no incumbent; study.best_trials gives its Pareto front"
            )
        trials = study.get_trials(deepcopy=False, states=SEEN)
        space = union_space(trials)
        history = gather(trials, study.directions)
        candidates = history.recommendable()
        if not candidates:
            return None
        values, told = history.values[:, 0], history.variances[:, 0]
        if space:
            encoding = Encoding(widened(space, trials))
            points = encoding.encode(fitting([history.measured[row] for row in candidates], space))
            model = Model.of(history, encoding, values, told, seed=self._seed)
            means, variances = model.objective.predict(points)
            credible = np.flatnonzero(model.is_credible(points))
            best = int(credible[np.argmax(means[credible])])
        else:
            # Of nothing but constants there is one configuration, which was measured again and again.
            alike = np.zeros((len(values), 1))
            _, means, variances = merge(alike, values, single_variances(history, alike, values, told)[0])
            best = 0
        sign = 1.0 if study.direction.name == "MAXIMIZE" else -1.0
        return TrialEstimate(
            trial=history.measured[candidates[best]],
            mean=sign * float(means[best]),
            deviation=math.sqrt(float(variances[best])),
        )

    def _spread(self, encoding: Encoding, number: int) -> NDArray[np.float64]:
        """Return a point of a scrambled Sobol' sequence (Owen 1998)."""
        # To import it takes longer than all else here; a study has a start of its own and never comes here.
        from scipy.stats import qmc

        sequence = qmc.Sobol(len(encoding.names), rng=np.random.default_rng(self._seed))
        if number:
            sequence.fast_forward(number)
        return np.asarray(encoding.keep(encoding.place(sequence.random(1)))[0])


def _checked(seed: int | None, startup_trials: int, warm: Sequence[Mapping[str, Any]]) -> None:
    """Refuse arguments that would only fail later. Raises ValueError or TypeError."""
    for name, number in (("seed", seed), ("startup_trials", startup_trials)):
        if number is None and name == "seed":
            continue
        if not isinstance(number, int | np.integer) or isinstance(number, bool):
            raise TypeError(f"{name}: {number!r} is no whole number")
        if number < 0:
            raise ValueError(f"{name}: {number} is negative; use 0 or more")
    if isinstance(warm, Mapping | str) or not all(isinstance(each, Mapping) for each in warm):
        raise TypeError(f"warm: {warm!r} is no sequence of parameters by name, as trial.params are")


def _less_price(reference: Points, price: float, points: Points) -> NDArray[np.float64]:
    """Return minus the price of what differs from the reference, for points (m, d); shape (m,)."""
    is_other = [(points != each) & ~(np.isnan(points) | np.isnan(each)) for each in reference] or [
        np.zeros(points.shape, dtype=bool)
    ]
    return np.asarray(-price * is_other[0].sum(axis=1))


def _fresh_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])


def _recall(
    warm: Sequence[Mapping[str, Any]], count: int, encoding: Encoding, rng: np.random.Generator
) -> Points:
    """Return `count` points that earlier studies found good, each time others; (0, d) where there are none.

    What they lack, and what today's space has otherwise, is NaN. The model alone decides whether a mixture
    with them is worth a trial, so that what is no longer true does no harm. A prior that multiplies the
    acquisition (Hvarfner et al. 2022, πBO, arXiv 2204.11051) does, and its gain was none; the figures are in
    benchmarks/optimizer.md.
    """
    points = encoding.encode([_usable(each, encoding) for each in warm])
    return points[np.resize(rng.permutation(len(warm)), count)] if len(warm) else points


def _usable(params: Mapping[str, Any], encoding: Encoding) -> dict[str, Any]:
    """Return the parameters without those that are no number where one is needed."""
    return {
        name: params[name]
        for name, choices in zip(encoding.names, encoding.choices, strict=True)
        if name in params and (choices is not None or isinstance(params[name], int | float))
    }
