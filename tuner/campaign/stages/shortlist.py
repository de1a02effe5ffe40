"""What may be shipped, and which trial tells most about which of it is best."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tuner.campaign.experiment import Experiment
from tuner.ports import Config, Scalar
from tuner.records import Role, Trial
from tuner.space.values import as_number
from tuner.statistics.ranking import LIKELY, Entry, config_key
from tuner.study.facts import REJECTED, Rejection
from tuner.study.storage import Opening

LEAST_WORTH = 0.0001
"""Log points that another trial is expected to bring; below, the race is decided."""

BLAME = 0.7
"""Probability that a setting is to blame for a rejection, whatever its value and the others; a judgement."""


def better(experiment: Experiment) -> list[Entry]:
    """Return what may be shipped and is better than the default by posterior mean, best first.

    Where the default fails, better is whatever rather does not. After a rejection, what shares few settings
    with the rejected configuration comes first.
    """
    space, ranking = experiment.setup.space, experiment.ranking()
    rejected = list_rejected(experiment)
    default_fails = ranking.feasibility.default_fails
    found = [
        entry
        for entry in ranking.entries
        if (entry.p_feasible >= LIKELY if default_fails else entry.posterior.log_ratio > 0)
        and entry.key not in rejected
        # Trials that were made before capacity was guarded may be in the storage.
        and (space.allows_less or not space.lacks(entry.config))
    ]
    if not rejected:
        return found
    return sorted(
        found, key=lambda entry: -chance_to_pass(experiment, entry.config) * entry.posterior.log_ratio
    )


def chance_to_pass(experiment: Experiment, config: Config) -> float:
    """Return the chance that a configuration lacks what others were rejected for; 1 where none was.

    Which setting was to blame is not known: each of the changed ones may have been, with equal chances.
    """
    space, chance = experiment.setup.space, 1.0
    for rejection in experiment.storage.recall(REJECTED) or ():
        blamed = space.changes(rejection.config)
        shared = [name for name, change in blamed.items() if _is_alike(change, config.get(name))]
        chance *= 1 - BLAME * len(shared) / max(1, len(blamed))
    return chance


def _is_alike(change: tuple[Scalar, Scalar], value: Scalar | None) -> bool:
    """Return whether a value is that of a change, or lies on the same side of the default."""
    default, changed = (as_number(each) for each in change)
    number = None if value is None else as_number(value)
    if default is None or changed is None or number is None:
        return value == change[1]
    return number != default and (number > default) == (changed > default)


def list_rejected(experiment: Experiment) -> set[str]:
    """Return the keys of the configurations that are not shipped, whatever they gain."""
    return {config_key(each.config) for each in experiment.storage.recall(REJECTED) or ()}


def reject(experiment: Experiment, config: Config, reason: str) -> None:
    """Keep that a configuration is not shipped, whatever else becomes of the study."""
    rejected = experiment.storage.recall(REJECTED) or ()
    experiment.storage.remember(REJECTED, (*rejected, Rejection(config=dict(config), reason=reason)))
    experiment.progress.note(f"{reason}; if time is left, tuner checks another candidate")


def measure_what_tells_most(
    experiment: Experiment,
    role: Role,
    configs: Sequence[Config],
    *,
    seconds: float,
    bonus: NDArray[np.float64] | None = None,
) -> Trial | None:
    """Measure the configuration whose trial tells most about which is best; None when none is worth it.

    Args:
        experiment: the study.
        role: of the trial.
        configs: what is chosen among.
        seconds: that all trials in this role may take.
        bonus: shape (n,), worth of each besides its gain, in log points.
    """
    posterior = experiment.ranking().posterior
    if posterior is None or len(configs) < 2 or not has_time(experiment, role, seconds):  # noqa: PLR2004 - of one there is nothing to choose
        return None
    worth = posterior.worth_of_a_trial(
        configs, at_s=experiment.clock.time(), windows=experiment.plan.windows[1], bonus=bonus,
        host=experiment.host, pending=experiment.pending_under_load(),
    )  # fmt: skip
    worth *= [_may_be_feasible(experiment, config) for config in configs]
    best = int(worth.argmax())
    if worth[best] < LEAST_WORTH:
        return None
    return experiment.make(Opening(role=role, config=configs[best]))


def has_time(experiment: Experiment, role: Role, seconds: float) -> bool:
    """Return whether all trials in a role stay within so many seconds with another one."""
    is_within = experiment.schedule.spent_s(role) + experiment.schedule.mean_cost_s() <= seconds
    return is_within and experiment.schedule.has_time_for(1)


def _may_be_feasible(experiment: Experiment, config: Config) -> float:
    """Return the probability that a configuration may ship; 0 where it was started and failed enough."""
    feasibility = experiment.ranking().feasibility
    return 0.0 if feasibility.is_ruled_out(config) else feasibility.probability(config)
