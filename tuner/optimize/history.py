"""Reads the trials of an Optuna study into arrays, and makes one objective of several."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from tuner.optimize.encoding import Array

NumericDistribution = IntDistribution | FloatDistribution
VARIANCE = "variance"
"""User attribute that holds the variance of a trial's value (several: a list, one for each objective)."""
LARGEST = 1e100
"""Values and standard deviations are cut off there: the squares of larger ones are infinite."""

AUGMENTED = 0.05
"""Share of the plain sum, so that nothing is given away in one objective for nothing in another."""
CATASTROPHE = 8.0
"""So many times as far below the median as the best is above it. A search that goes well measures half of its
points near the best: with a bound as near as half that distance, what the others had told, such as which
settings cost 20 %, was lost just then (regret on the made surfaces .187, with this alone .158; 10 seeds)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The trials of a study; rows of `values` belong to rows of `measured`, and so on."""

    measured: tuple[FrozenTrial, ...]
    values: Array
    """Shape (n, objectives), turned so that more is better."""
    variances: Array
    """Shape (n, objectives); NaN where nobody told."""
    failed: tuple[FrozenTrial, ...]
    """Trials without a value: they speak only of feasibility."""
    pending: tuple[FrozenTrial, ...]
    """Trials that other workers are at."""
    slacks: Mapping[str, Mapping[int, float]]
    """By constraint and trial number; positive is infeasible."""

    def is_feasible(self, trial: FrozenTrial) -> bool:
        """Return whether a trial kept every constraint that it told."""
        return all(slacks.get(trial.number, 0.0) <= 0 for slacks in self.slacks.values())

    def recommendable(self) -> list[int]:
        """Return the rows of measured trials that may be recommended: whole ones, that were feasible.

        Of a configuration that was tried several times, most trials have to be.
        """
        votes: dict[tuple[tuple[str, Any], ...], int] = {}
        for trial in self.measured:
            votes[_key(trial)] = votes.get(_key(trial), 0) + (1 if self.is_feasible(trial) else -1)
        for trial in self.failed:
            votes[_key(trial)] = votes.get(_key(trial), 0) - 1
        return [
            row
            for row, trial in enumerate(self.measured)
            if trial.state is TrialState.COMPLETE and self.is_feasible(trial) and votes[_key(trial)] >= 0
        ]


def gather(
    trials: Sequence[FrozenTrial], directions: Sequence[StudyDirection], *, but: int | None = None
) -> History:
    """Sort trials by what they say.

    Args:
        trials: of any state.
        directions: one for each objective.
        but: number of the trial that is being decided.
    """
    signs = np.array([1.0 if each is StudyDirection.MAXIMIZE else -1.0 for each in directions])
    measured, values, variances = [], [], []
    failed, pending = [], []
    slacks: dict[str, dict[int, float]] = {}
    for trial in trials:
        if trial.number == but or not trial.params:
            continue
        if trial.state is TrialState.RUNNING:
            pending.append(trial)
            continue
        found = _values(trial, len(signs))
        if found is not None:
            measured.append(trial)
            values.append(signs * found)
            variances.append(_variances(trial, len(signs)))
        elif trial.state is TrialState.FAIL or trial.state is TrialState.COMPLETE:
            failed.append(trial)
        for name, slack in trial.constraints.items():
            if not math.isnan(slack):
                slacks.setdefault(name, {})[trial.number] = slack
    shape = (-1, len(signs))
    return History(
        measured=tuple(measured),
        values=np.array(values, dtype=float).reshape(shape),
        variances=np.array(variances, dtype=float).reshape(shape),
        failed=tuple(failed),
        pending=tuple(pending),
        slacks=slacks,
    )


def _key(trial: FrozenTrial) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(((name, repr(value)) for name, value in trial.params.items())))


def union_space(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return every parameter that any trial had, with the bounds that it had last, in order of their names.

    Optuna's own samplers take the intersection: a conditional parameter is then drawn at random. A value that
    a trial does not ask for does no harm.
    """
    space: dict[str, BaseDistribution] = {}
    for trial in trials:
        if trial.state is not TrialState.WAITING:
            space.update(trial.distributions)
    return {name: space[name] for name in sorted(space) if not space[name].single()}


def widened(
    space: Mapping[str, BaseDistribution], trials: Sequence[FrozenTrial]
) -> dict[str, BaseDistribution]:
    """Widen the bounds of numbers to any trial's: those may depend on others, or have changed."""
    numbers = {name: each for name, each in space.items() if isinstance(each, NumericDistribution)}
    for trial in trials:
        for name, wide in numbers.items():
            each = trial.distributions.get(name)
            # Of its attributes first: there are many, and to ask for the class takes long.
            if getattr(each, "low", wide.low) >= wide.low and getattr(each, "high", wide.high) <= wide.high:
                continue
            if isinstance(each, NumericDistribution) and _has_grid_of(wide, each):
                numbers[name] = _around(wide, each)
    return {**space, **numbers}


def _has_grid_of(one: NumericDistribution, other: NumericDistribution) -> bool:
    return (one.log, one.step) == (other.log, other.step) and (
        one.step is None or (one.low - other.low) % one.step == 0
    )


def _around(one: NumericDistribution, other: NumericDistribution) -> NumericDistribution:
    low, high = min(one.low, other.low), max(one.high, other.high)
    if isinstance(one, IntDistribution):
        return IntDistribution(int(low), int(high), log=one.log, step=one.step)
    return FloatDistribution(low, high, log=one.log, step=one.step)


def fitting(trials: Sequence[FrozenTrial], space: Mapping[str, BaseDistribution]) -> list[dict[str, Any]]:
    """Return the parameters of trials that are of the same kind as today's."""
    return [
        {
            name: value
            for name, value in trial.params.items()
            if name in space and _is_alike(trial.distributions[name], space[name])
        }
        for trial in trials
    ]


def _is_alike(one: BaseDistribution, other: BaseDistribution) -> bool:
    choices = getattr(one, "choices", None), getattr(other, "choices", None)
    # Mostly they are the very same; Optuna's comparison takes long.
    return choices[0] is choices[1] or one == other


def _values(trial: FrozenTrial, count: int) -> Array | None:
    if trial.state is TrialState.COMPLETE and trial.values is not None:
        found = np.array(trial.values, dtype=float)
    elif trial.state is TrialState.PRUNED and count == 1 and trial.intermediate_values:
        found = np.array([trial.intermediate_values[max(trial.intermediate_values)]])
    else:
        return None
    return np.clip(found, -LARGEST, LARGEST) if np.isfinite(found).all() else None


def _variances(trial: FrozenTrial, count: int) -> Array:
    told = trial.user_attrs.get(VARIANCE)
    if told is None:
        return np.full(count, math.nan)
    try:
        found = np.broadcast_to(np.asarray(told, dtype=float), (count,)).copy()
    except (TypeError, ValueError):
        return np.full(count, math.nan)
    return np.where(found >= 0, np.minimum(found, LARGEST**2), math.nan)


def compress(values: Array, least: float = 0.0) -> Array:
    """Pull up what is far below the median, by `least` at the least, so that it does not set the scale.

    The worst nginx setting is 240 times slower than the best; how bad the bad ones are is of no interest.
    """
    best, median = float(np.max(values)), float(np.median(values))
    # Where half of the values are the best one, the mean still tells how far away the others are.
    middle = median if median < best else min(best, float(np.mean(values)))
    return np.maximum(values, middle - max(CATASTROPHE * (best - middle), least))


def scalarise(values: Array, variances: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Weigh the worst of the objectives (ParEGO: Knowles 2006, doi 10.1109/TEVC.2005.851274).

    Args:
        values: shape (n, k), more is better.
        variances: shape (n, k), NaN where nobody knows.
        rng: of the weights, uniform over all mixtures.

    Returns:
        One value and its variance for each row, shape (n,) each.
    """
    if values.shape[1] == 1:
        return values[:, 0], variances[:, 0]
    kept = np.column_stack([compress(each) for each in values.T])
    best = kept.max(axis=0)
    # The second is less, unless half of the values are the best one.
    spread = np.maximum(best - np.median(kept, axis=0), np.ptp(kept, axis=0) / (1 + CATASTROPHE))
    spread = np.where(spread > 0, spread, 1.0)
    weights = rng.dirichlet(np.ones(values.shape[1]))
    lost = weights * (best - kept) / spread
    mixed = -(lost.max(axis=1) + AUGMENTED * lost.sum(axis=1))
    shares = np.where(lost == lost.max(axis=1, keepdims=True), 1 + AUGMENTED, AUGMENTED) * weights / spread
    return mixed, np.sum(shares**2 * variances, axis=1)
