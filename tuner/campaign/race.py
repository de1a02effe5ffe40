"""The race: the best configurations of the search, started again where that tells most."""

from collections.abc import Sequence
from itertools import count

from tuner.campaign.experiment import Experiment
from tuner.campaign.progress import UNKNOWN
from tuner.campaign.shortlist import better, measure_what_tells_most
from tuner.ports import Config
from tuner.records import Role
from tuner.study.facts import FINALIST

ARMS = 4
"""Configurations in the race at the most, the default not among them: what it gives is known by now."""


def race(experiment: Experiment) -> None:
    """Start the best few again until nothing is left to tell, or the time for it is over."""
    if experiment.storage.recall(FINALIST) is not None:
        return
    for made in count():
        experiment.enter("race", made, UNKNOWN)
        started = measure_what_tells_most(
            experiment, Role.RACE, _arms(experiment), seconds=experiment.plan.race_s
        )
        if not started and not experiment.wait_for_others():
            break
    experiment.storage.remember(FINALIST, tuple(_arms(experiment)[:1]))


def _arms(experiment: Experiment) -> Sequence[Config]:
    return [entry.config for entry in better(experiment)[:ARMS]]
