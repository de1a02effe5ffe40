"""Any other Optuna sampler behind the optimizer interface, and any optimizer after some given points."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import optuna
from optuna.samplers import BaseSampler
from optuna.trial import TrialState

from tuner.errors import UsageError
from tuner.optimize.optimizer import Observation, Optimizer, Point, Suggestion
from tuner.optimize.replay import directions, seed_of, shared, tell, worst_for_missing
from tuner.space import Dimension


class Foreign:
    """Tells a sampler the whole history and asks it once.

    A start without a measurement is told as the worst value so far, with the constraint that it broke:
    Optuna's samplers learn nothing from a failed trial.
    """

    def __init__(self, name: str, make: Callable[[int], BaseSampler]) -> None:
        """Take how to make the sampler from a seed, and make it once.

        Args:
            name: by which errors call it.
            make: as it says.

        Raises:
            UsageError: it cannot be made.
        """
        self._name = name
        self._make = make
        with somebody_elses(name, "made without arguments"):
            make(0)

    def suggest(
        self,
        dimensions: Sequence[Dimension],
        observations: Sequence[Observation],
        *,
        seed: int,
        refused: int = 0,
    ) -> Suggestion:
        """Return a point within the dimensions; the same arguments give the same point."""
        space = shared(dimensions)
        with somebody_elses(self._name, "asked"):
            study = optuna.create_study(
                directions=directions(observations), sampler=self._make(seed_of(seed, observations, refused))
            )
            for seen, values in zip(observations, worst_for_missing(observations), strict=True):
                study.add_trial(tell(seen, space, values))
            return Suggestion(point=study.ask(space).params)


@contextmanager
def somebody_elses(name: str, what: str) -> Iterator[None]:
    """Turn whatever somebody else's sampler raises into an error with a remedy. Raises UsageError."""
    try:
        yield
    except Exception as error:
        raise UsageError(
            f"optimizer: {name!r} cannot be {what}: {type(error).__name__}: {error}. Use another one."
        ) from error


class AskedAgain(Foreign):
    """Asks a sampler for every point of the history again before it is asked for the next.

    For samplers that follow what they suggested themselves: the place in a sequence, marks on their trials.
    What one suggestion takes grows with the history: after 60 starts 60 times as long as a sampler needs.
    """

    def suggest(
        self,
        dimensions: Sequence[Dimension],
        observations: Sequence[Observation],
        *,
        seed: int,
        refused: int = 0,
    ) -> Suggestion:
        """Return a point within the dimensions; the same arguments give the same point."""
        space = shared(dimensions)
        with somebody_elses(self._name, "asked"):
            study = optuna.create_study(directions=directions(observations), sampler=self._make(seed % 2**32))
            for seen, values in zip(observations, worst_for_missing(observations), strict=True):
                asked = study.ask(space)
                marks = study.get_trials(deepcopy=False)[asked.number].system_attrs
                study.tell(asked, state=TrialState.FAIL)
                study.add_trial(tell(seen, space, values, **marks))
            for _ in range(refused):
                study.tell(study.ask(space), state=TrialState.FAIL)
            return Suggestion(point=study.ask(space).params)


class TriesFirst:
    """Suggests some given points before it asks another optimizer."""

    def __init__(self, optimizer: Optimizer, first: Sequence[Point]) -> None:
        """Remember the points, in their order."""
        self._optimizer = optimizer
        self._first = first

    def suggest(
        self,
        dimensions: Sequence[Dimension],
        observations: Sequence[Observation],
        *,
        seed: int,
        refused: int = 0,
    ) -> Suggestion:
        """Return the first of the given points that was not tried, or what the optimizer suggests."""
        tried = [dict(seen.point) for seen in observations]
        left = [point for point in self._first if dict(point) not in tried]
        if refused < len(left):
            return Suggestion(point=left[refused])
        return self._optimizer.suggest(dimensions, observations, seed=seed, refused=refused - len(left))
