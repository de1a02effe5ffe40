"""Optimizers that are compared, each behind the same three calls."""

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, QMCSampler, RandomSampler, TPESampler
from optuna.trial import Trial, TrialState

from benchmarks.surfaces import Outcome, Surface
from tuner.optimize import NoisyGPSampler
from tuner.optimize.history import VARIANCE


class Peer(Protocol):
    """Proposes, learns, recommends; values are to be maximized."""

    def ask(self) -> Mapping[str, Any]:
        """Give the parameters of the next trial."""

    def tell(self, outcome: Outcome) -> None:
        """Learn what that trial gave."""

    def recommend(self) -> Mapping[str, Any] | None:
        """Give the parameters of the trial that is thought best; None where none was measured."""


class OfOptuna:
    """Any Optuna sampler; it recommends the best observed trial."""

    def __init__(self, surface: Surface, sampler: BaseSampler) -> None:
        """Make a study in memory."""
        self._surface = surface
        self.study = optuna.create_study(direction="maximize", sampler=sampler)
        self._trial: Trial | None = None

    def ask(self) -> Mapping[str, Any]:
        """Suggest every parameter that is active beside those before it."""
        self._trial = trial = self.study.ask()
        for name, distribution in self._surface.space.items():
            if self._surface.is_active(name, trial.params):
                suggest(trial, name, distribution)
        return trial.params

    def tell(self, outcome: Outcome) -> None:
        """Tell the value with its variance, or that the trial failed."""
        trial = cast("Trial", self._trial)
        if outcome.value is None:
            self.study.tell(trial, state=TrialState.FAIL)
            return
        trial.set_user_attr(VARIANCE, outcome.variance)
        self.study.tell(trial, outcome.value)

    def recommend(self) -> Mapping[str, Any] | None:
        """Give the best observed."""
        try:
            return self.study.best_params
        except ValueError:
            return None


class Ours(OfOptuna):
    """NoisyGPSampler, which recommends by posterior mean."""

    def recommend(self) -> Mapping[str, Any] | None:
        """Give the incumbent."""
        incumbent = cast("NoisyGPSampler", self.study.sampler).incumbent(self.study)
        return None if incumbent is None else incumbent.params


def suggest(trial: Trial, name: str, distribution: BaseDistribution) -> None:
    """Ask a trial for a parameter by its distribution."""
    if isinstance(distribution, CategoricalDistribution):
        trial.suggest_categorical(name, distribution.choices)
    elif isinstance(distribution, IntDistribution):
        trial.suggest_int(name, distribution.low, distribution.high, log=distribution.log)
    elif isinstance(distribution, FloatDistribution):
        trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)


class Smac:
    """SMAC3's hyperparameter optimization facade: a random forest with expected improvement."""

    def __init__(self, surface: Surface, seed: int, trials: int) -> None:
        """Translate the space and make the facade."""
        from pathlib import Path
        from tempfile import mkdtemp

        from ConfigSpace import (
            Categorical,
            ConfigurationSpace,
            EqualsCondition,
            Float,
            Integer,
        )
        from smac import HyperparameterOptimizationFacade, Scenario

        space = ConfigurationSpace(seed=seed)
        for name, each in surface.space.items():
            if isinstance(each, CategoricalDistribution):
                space.add(Categorical(name, list(range(len(each.choices)))))
            elif isinstance(each, IntDistribution):
                space.add(Integer(name, (each.low, each.high), log=each.log))
            elif isinstance(each, FloatDistribution):
                space.add(Float(name, (each.low, each.high), log=each.log))
        for child, (parent, value) in getattr(surface, "parents", {}).items():
            index = cast("CategoricalDistribution", surface.space[parent]).choices.index(value)
            space.add(EqualsCondition(space[child], space[parent], index))
        self._surface = surface
        scenario = Scenario(
            space,
            deterministic=True,
            n_trials=trials,
            seed=seed,
            output_directory=Path(mkdtemp(prefix="smac-")),
        )
        self._smac = HyperparameterOptimizationFacade(
            scenario, _never_called, overwrite=True, logging_level=50
        )
        self._info: Any = None
        self._best = -math.inf
        self._best_params: Mapping[str, Any] | None = None

    def ask(self) -> Mapping[str, Any]:
        """Ask the facade."""
        self._info = self._smac.ask()
        return self._back(self._info.config)

    def tell(self, outcome: Outcome) -> None:
        """Tell the facade, which minimizes."""
        from smac.runhistory.dataclasses import TrialValue
        from smac.runhistory.enumerations import StatusType

        if outcome.value is None:
            self._smac.tell(self._info, TrialValue(cost=10.0, status=StatusType.CRASHED))
            return
        self._smac.tell(self._info, TrialValue(cost=-outcome.value))
        if outcome.value > self._best:
            self._best, self._best_params = outcome.value, self._back(self._info.config)

    def recommend(self) -> Mapping[str, Any] | None:
        """Give the best observed."""
        return self._best_params

    def _back(self, config: Any) -> dict[str, Any]:  # noqa: ANN401 - ConfigSpace has no types
        found = {}
        for name, value in dict(config).items():
            distribution = self._surface.space[name]
            found[name] = (
                distribution.choices[int(value)]
                if isinstance(distribution, CategoricalDistribution)
                else value
            )
        return found


def _never_called(config: object, seed: int = 0) -> float:
    raise NotImplementedError


def _ours(surface: Surface, seed: int, _trials: int) -> Peer:
    return Ours(surface, NoisyGPSampler(seed=seed))


def _random(surface: Surface, seed: int, _trials: int) -> Peer:
    return OfOptuna(surface, RandomSampler(seed=seed))


def _qmc(surface: Surface, seed: int, _trials: int) -> Peer:
    return OfOptuna(surface, QMCSampler(seed=seed, scramble=True, warn_independent_sampling=False))


def _tpe(surface: Surface, seed: int, _trials: int) -> Peer:
    return OfOptuna(
        surface, TPESampler(seed=seed, multivariate=True, group=bool(getattr(surface, "parents", {})))
    )


def _gp(surface: Surface, seed: int, _trials: int) -> Peer:
    return OfOptuna(surface, GPSampler(seed=seed))


PEERS: Mapping[str, Callable[[Surface, int, int], Peer]] = {
    "noisy-gp": _ours, "random": _random, "qmc": _qmc, "tpe": _tpe, "gp": _gp, "smac": Smac,
}  # fmt: skip

warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
