"""Trials that tell the settings of a finalist apart: a two-level design of the changes that it makes.

The search changes many settings at once, and goes where others were good, so that it leaves open which of them
make the gain. Each trial here has some of the finalist's changes, chosen together so that the effects of all are
known best: the determinant of the information about them is made as large as it gets (D-optimal design, exchange
of rows: Fedorov, "Theory of Optimal Experiments", 1972), among what the space allows. Without constraints these
are the orthogonal designs of Plackett & Burman (Biometrika 33, 1946).
"""

import math
from collections.abc import Sequence
from itertools import product
from random import Random

import numpy as np
from numpy.typing import NDArray

from tuner.campaign.experiment import Experiment
from tuner.campaign.progress import UNKNOWN
from tuner.campaign.schedule import cost_s
from tuner.ports import Config
from tuner.records import Role
from tuner.space import Space
from tuner.statistics.ranking import config_key
from tuner.study.storage import Opening

EXACT_CHANGES = 8
"""Up to so many changes all combinations are candidates: 256."""
DRAWN = 256
"""Beyond, so many are drawn."""
ROUNDS = 20
"""Of exchanges; few are needed."""
RIDGE = 1e-3
"""Added to the information, so that a design that cannot tell all effects tells as many as it can."""

Array = NDArray[np.float64]


def tell_apart(experiment: Experiment, finalist: Config) -> float:
    """Measure the design around a finalist, where the confirmation keeps the time that it needs.

    Returns the seconds that its trials have taken.
    """
    space, trials = experiment.setup.space, experiment.plan.factorial
    design = plan_factorial(space, finalist, trials, seed=experiment.setup.settings.seed)
    for done, config in enumerate(design):
        begun = {config_key(start.config) for start in (*experiment.starts, *experiment.pending)}
        if config_key(config) in begun or experiment.ranking().feasibility.is_ruled_out(config):
            continue
        later_s = experiment.plan.other_loads_s + experiment.schedule.mean_cost_s()
        if not experiment.schedule.has_spare_time(later_s):
            break
        experiment.enter("simplify", done, UNKNOWN)
        experiment.make(Opening(role=Role.ABLATION, config=config))
    keys = {config_key(config) for config in design}
    made = (each for each in experiment.own_starts() if each.role is Role.ABLATION)
    return math.fsum(cost_s(each) for each in made if config_key(each.config) in keys)


def plan_factorial(space: Space, finalist: Config, trials: int, *, seed: int = 0) -> list[Config]:
    """Return configurations with some of a finalist's changes each, from which its effects are known best.

    None for a finalist with a single change, which needs none. Each is one that the space allows and that holds
    as much as the default.
    """
    changes = {name: value for name, (_, value) in space.changes(finalist).items()}
    names = [*changes]
    if len(names) < 2 or not trials:  # noqa: PLR2004 - of one there is nothing to tell apart
        return []
    found: dict[str, tuple[list[float], Config]] = {}
    for has in _combine(len(names), seed):
        kept = {name: changes[name] for name, is_in in zip(names, has, strict=True) if is_in}
        config = space.complete(kept, fit=True)
        given = space.changes(config)
        is_whole = {*given} == {*kept} and all(given[name][1] == value for name, value in kept.items())
        if kept and len(kept) < len(names) and is_whole and not space.violations(config):
            if space.allows_less or not space.lacks(config):
                found.setdefault(config_key(config), ([1.0 if each else -1.0 for each in has], config))
    if not found:
        return []
    rows, configs = np.array([row for row, _ in found.values()]), [config for _, config in found.values()]
    return [configs[row] for row in _choose_rows(rows, min(trials, len(rows)), seed)]


def _combine(count: int, seed: int) -> Sequence[tuple[bool, ...]]:
    """Return which changes combinations have: all of few changes, of many some that are drawn."""
    if count <= EXACT_CHANGES:
        return [*product((False, True), repeat=count)]
    rng = Random(seed)  # noqa: S311 - no secret
    drawn = [tuple(rng.random() < 0.5 for _ in range(count)) for _ in range(DRAWN)]
    return [*drawn, *(tuple(not each for each in has) for has in drawn)]


def _choose_rows(rows: Array, trials: int, seed: int) -> list[int]:
    """Return the rows of a D-optimal design beside default and finalist, which are known by then."""
    design = np.hstack([np.ones((len(rows), 1)), rows])
    known = np.ones((2, design.shape[1]))
    known[0, 1:] = -1.0
    base = known.T @ known + RIDGE * np.eye(design.shape[1])
    chosen = Random(seed).sample(range(len(rows)), trials)  # noqa: S311 - no secret
    for _ in range(ROUNDS):
        before = list(chosen)
        for place in range(trials):
            rest = [row for at, row in enumerate(chosen) if at != place]
            inverse = np.linalg.inv(base + design[rest].T @ design[rest])
            worth = np.einsum("ij,jk,ik->i", design, inverse, design)
            worth[rest] = -1.0
            chosen[place] = int(worth.argmax())
        if chosen == before:
            break
    return chosen
