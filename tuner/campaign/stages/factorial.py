"""Factorial trials: they tell apart what each setting of a finalist is worth.

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
from tuner.campaign.progress import UNKNOWN
from tuner.ports import Config
from tuner.records import Role, Start
from tuner.space import Space
from tuner.statistics.observations import LEARNS_FROM
from tuner.statistics.ranking import config_key
from tuner.study.storage import Opening

MOST_FACTORS = 8
"""Up to so many settings all their combinations are looked at; of more, as many are drawn."""
RIDGE = 1e-3
"""Added to the information, which is singular before there are as many trials as settings."""

Array = NDArray[np.float64]


def tell_apart(experiment: Experiment, finalist: Config) -> list[Start]:
    """Make the factorial trials of a finalist that are missing, while the confirmation keeps its time.

    Returns all of them. They take no longer than the simplification may, and a finalist with a single change
    needs none.
    """
    space, plan, schedule = experiment.setup.space, experiment.plan, experiment.schedule
    combinations = _combine(space, finalist, seed=experiment.setup.settings.seed)
    levels = {
        config_key(each): _levels(space, finalist, each)
        for each in (space.default(), finalist, *combinations.values())
    }
    while True:
        begun = [each for each in (*experiment.starts, *experiment.pending) if each.role in LEARNS_FROM]
        made = [
            each for each in begun if each.role is Role.ABLATION and config_key(each.config) in combinations
        ]
        failed = {config_key(each.config) for each in experiment.starts if not each.counts}
        open_ones = [config for key, config in combinations.items() if key not in failed]
        cost_s = schedule.mean_cost_s()
        is_within = schedule.spent_s(Role.ABLATION) + cost_s <= plan.simplify_s
        has_time = is_within and schedule.has_spare_time(plan.other_loads_s + cost_s)
        if len(made) >= plan.factorial or not open_ones or not has_time:
            return made[: plan.factorial]
        keys = [config_key(each.config) for each in begun]
        rows = [levels[key] for key in keys if key in levels and key not in failed]
        chosen = choose_row(np.array([levels[config_key(each)] for each in open_ones]), np.array(rows))
        experiment.enter("simplify", len(made), UNKNOWN)
        experiment.make(Opening(role=Role.ABLATION, config=open_ones[chosen]))


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


def _combine(space: Space, finalist: Config, *, seed: int) -> dict[str, Config]:
    """Return what the space allows with some of a finalist's changes, by key."""
    names = [*space.changes(finalist)]
    reduced = (
        leave_out(space, finalist, {name for name, is_out in zip(names, out, strict=True) if is_out})
        for out in _draw_levels(len(names), seed)
    )
    return {config_key(config): config for config in reduced if config is not None}


def _draw_levels(factors: int, seed: int) -> Iterator[tuple[bool, ...]]:
    """Return which factors are left out: all combinations of few factors, of many some that are drawn."""
    if factors <= MOST_FACTORS:
        return product((False, True), repeat=factors)
    rng = Random(seed)  # noqa: S311 - no secret
    return (tuple(rng.choice((False, True)) for _ in range(factors)) for _ in range(2**MOST_FACTORS))


def _levels(space: Space, finalist: Config, config: Config) -> list[float]:
    """Return the level of each factor: 1 where a configuration changes the setting, too, else -1."""
    changed = space.changes(config)
    return [1.0 if name in changed else -1.0 for name in space.changes(finalist)]
