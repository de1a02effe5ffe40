"""The simplification: put back to the default whatever the gain does not need."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean, stdev

from tuner.campaign.controls import measure_control
from tuner.campaign.experiment import Experiment
from tuner.campaign.pairs import Pairing, measure_pairs
from tuner.campaign.suggest import observe
from tuner.optimize.change_ranking import rank_changes
from tuner.ports import Config
from tuner.records import Role
from tuner.statistics.ranking import config_key
from tuner.study.facts import REDUCTIONS, Reduction
from tuner.study.objective import broken

MARGIN = 0.01
MARGIN_SHARE = 0.1
"""A setting may go when that costs less than 1 %, or less than a tenth of the gain."""


def simplify(experiment: Experiment, finalist: Config) -> Config:
    """Measure reductions of a configuration; return the smallest that is as good.

    Each step reverts the share of the changes that the starts so far say matters least, and compares
    before and after in adjacent pairs. After a reduction that costs too much, only half as many are tried.
    """
    plan = experiment.plan
    steps = [*(experiment.storage.recall(REDUCTIONS) or ())]
    accepted, share = [dict(finalist)], 0.5
    for number in range(plan.simplify_steps):
        experiment.progress.stage("simplify", number, plan.simplify_steps)
        if number == len(steps):
            if not experiment.has_time_for(2 * plan.simplify_pairs):
                break
            reduced = _reduce(experiment, accepted[-1], share)
            if reduced is None:
                break
            # Kept before it is measured, so that pairs of two sessions compare the same.
            steps.append(Reduction(config=dict(reduced)))
            experiment.storage.remember(REDUCTIONS, tuple(steps))
        step = steps[number]
        if step.is_accepted is None:
            # The configurations are held against the default in the end, and the host may have changed.
            measure_control(experiment)
            costs_nothing = _costs_nothing(experiment, accepted[-1], step.config, number)
            step = steps[number] = replace(step, is_accepted=costs_nothing)
            experiment.storage.remember(REDUCTIONS, tuple(steps))
        if step.is_accepted:
            accepted.append(dict(step.config))
        else:
            share /= 2
    return _smallest_that_is_as_good(experiment, accepted)


def _reduce(experiment: Experiment, config: Config, share: float) -> Config | None:
    """Revert the least important share of the changes; None when not one would be left out."""
    space = experiment.setup.space
    ranked = rank_changes(space, observe(experiment), config)
    kept = ranked[math.floor(len(ranked) * share) :]
    if len(kept) == len(ranked) or not kept:
        return None
    reduced = space.complete({name: config[name] for name in kept}, fit=True)
    return None if space.violations(reduced) else reduced


def _costs_nothing(experiment: Experiment, whole: Config, reduced: Config, step: int) -> bool:
    pairs = experiment.plan.simplify_pairs
    pairing = Pairing(
        role=Role.ABLATION,
        sides={f"whole {step}": whole, f"reduced {step}": reduced},
        pairs=pairs,
        rng=experiment.random(f"simplify {step}"),
        first_block=step * pairs,
    )
    paired = measure_pairs(pairing, experiment.starts, experiment.make)
    _, arm = pairing.sides
    of_reduced = [start for start in experiment.starts if start.role is Role.ABLATION and start.arm == arm]
    if paired.failed or not paired.logs or broken(of_reduced, experiment.setup.settings.constraints):
        return False
    costs = [before - after for before, after in paired.logs]
    doubt = stdev(costs) / math.sqrt(len(costs)) if len(costs) > 1 else 0.0
    best = experiment.ranking().incumbent
    # The doubt goes to the smaller configuration for now: a setting that cannot be shown to matter is one
    # more to maintain, and in the end all starts decide.
    return mean(costs) - doubt < _margin(best.posterior.log_ratio if best else 0.0)


def _smallest_that_is_as_good(experiment: Experiment, accepted: Sequence[Config]) -> Config:
    """Choose among the finalist and its reductions by all their starts, in the race and in every step.

    A step is decided by a few pairs, in which a setting that matters may seem not to.
    """
    found = {entry.key: entry.speedup.log_ratio for entry in experiment.ranking().entries}
    measured = [config for config in accepted if config_key(config) in found]
    if not measured:
        return accepted[0]
    best = max(found[config_key(config)] for config in measured)
    return next(config for config in reversed(measured) if found[config_key(config)] >= best - _margin(best))


def _margin(gain: float) -> float:
    """Return what leaving settings out may cost, in log points."""
    return max(MARGIN, MARGIN_SHARE * gain)
