"""Factorial trials: they tell apart the effects of a finalist's settings.

The search changes many settings at once and goes where others were good, so that it leaves open which of
them make the gain. Each factorial trial has some of the finalist's settings and leaves the others at their
defaults: every setting is a factor with two levels. The next trial is the one that raises the determinant of
the information about all main effects most, beside what was measured so far (Dykstra, "The augmentation of
experimental data to maximize |X'X|", Technometrics 13, 1971, doi 10.1080/00401706.1971.10488830), among what
the space allows.
"""

from collections.abc import Iterator
from itertools import product
from random import Random

import numpy as np
from numpy.typing import NDArray

from tuner.campaign.experiment import Experiment
from tuner.campaign.schedule import WRAP_UP_S
from tuner.ports import Config
from tuner.records import Role, State, Trial
from tuner.space import Space
from tuner.statistics.observations import LEARNS_FROM
from tuner.statistics.ranking import config_key
from tuner.statistics.time_left import count_factorial
from tuner.study.storage import Opening

MOST_FACTORS = 8
"""Up to so many settings all their combinations are looked at; of more, as many are drawn."""
RIDGE = 1e-3
"""Added to the information, which is singular before there are as many trials as settings."""

Array = NDArray[np.float64]


def measure_effects(experiment: Experiment, winner: Config) -> None:
    """Make the factorial trials of a winner that are missing, in the time that is left."""
    cost_s = experiment.schedule.mean_cost_s()
    while (trial := plan_factorial(experiment, winner)) is not None:
        if experiment.schedule.time_left_s() < cost_s + WRAP_UP_S:
            break
        total = count_factorial(experiment.plan, len(experiment.setup.space.changes(winner)))
        experiment.enter("effects", len(_list_apart(experiment, winner)), total)
        experiment.make(Opening(role=Role.ABLATION, config=trial))


def plan_factorial(experiment: Experiment, config: Config) -> Config | None:
    """Return the next factorial trial of a configuration; None when there are as many as planned."""
    space, known = experiment.setup.space, _list_apart(experiment, config)
    if len(known) >= count_factorial(experiment.plan, len(space.changes(config))):
        return None
    failed = {config_key(each.config) for each in experiment.trials if not each.counts}
    combinations = _combine(space, config, seed=experiment.setup.settings.seed)
    open_ones = [each for each in combinations if config_key(each) not in failed]
    if not open_ones:
        return None
    ends = [space.default(), config]
    rows = [_levels(space, config, each) for each in (*ends, *(trial.config for trial in known))]
    chosen = choose_row(np.array([_levels(space, config, each) for each in open_ones]), np.array(rows))
    return open_ones[chosen]


def _list_apart(experiment: Experiment, config: Config) -> list[Trial]:
    """Return the trials with some of a configuration's changes, not all, and no others."""
    space = experiment.setup.space
    changes = space.changes(config).items()
    return [
        each
        for each in (*experiment.trials, *experiment.pending)
        if each.role in LEARNS_FROM
        and each.state in {State.RUNNING, State.COMPLETE, State.PRUNED}
        and space.changes(each.config)
        and space.changes(each.config).items() < changes
    ]


def leave_out(space: Space, config: Config, names: set[str]) -> Config | None:
    """Put changes back to the default; None where that changes nothing or breaks a rule."""
    kept = {name: config[name] for name in space.changes(config) if name not in names}
    reduced = space.complete(kept, fit=True)
    if any(reduced.get(name) != value for name, value in kept.items()):
        reduced = space.round(reduced)  # a bound that moved took a number with it
    is_fit = not space.violations(reduced) and (space.allows_less or not space.lacks(reduced))
    return reduced if is_fit and space.changes(reduced) and dict(reduced) != dict(config) else None


def choose_row(rows: Array, known: Array) -> int:
    """Return which row tells most beside known ones: with x the determinant of M is 1 + x'M⁻¹x as large.

    Args:
        rows: shape (n, factors), of -1 and 1.
        known: shape (m, factors), of the trials so far.
    """
    design, measured = (np.hstack([np.ones((len(each), 1)), each]) for each in (rows, known))
    information = measured.T @ measured + RIDGE * np.eye(design.shape[1])
    return int(np.einsum("ij,ji->i", design, np.linalg.solve(information, design.T)).argmax())


def _combine(space: Space, config: Config, *, seed: int) -> list[Config]:
    """Return what the space allows with some of a configuration's changes."""
    names = [*space.changes(config)]
    reduced = (
        leave_out(space, config, {name for name, is_out in zip(names, out, strict=True) if is_out})
        for out in _draw_levels(len(names), seed)
    )
    return [*{config_key(each): each for each in reduced if each is not None}.values()]


def _draw_levels(factors: int, seed: int) -> Iterator[tuple[bool, ...]]:
    """Return which factors are left out: all combinations of few factors, of many some that are drawn."""
    if factors <= MOST_FACTORS:
        return product((False, True), repeat=factors)
    rng = Random(seed)  # noqa: S311 - no secret
    return (tuple(rng.choice((False, True)) for _ in range(factors)) for _ in range(2**MOST_FACTORS))


def _levels(space: Space, config: Config, trial: Config) -> list[float]:
    """Return the level of each factor: 1 where a trial changes the setting, too, else -1."""
    changed = space.changes(trial)
    return [1.0 if name in changed else -1.0 for name in space.changes(config)]
