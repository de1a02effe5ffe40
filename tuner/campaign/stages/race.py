"""The race: the best configurations of the search, measured again where that tells most.

Where the winner is to hold on several hosts, each of them is measured on every host first.
"""

from collections.abc import Sequence
from itertools import count

from tuner.campaign.experiment import Experiment
from tuner.campaign.progress import UNKNOWN
from tuner.campaign.stages.promotion import find_unmet
from tuner.campaign.stages.shortlist import better, has_time, measure_what_tells_most
from tuner.ports import Config
from tuner.records import Role, Trial
from tuner.study.facts import FINALIST
from tuner.study.storage import Opening

ARMS = 4
"""Configurations in the race at the most, the default not among them: what it gives is known by now."""


def race(experiment: Experiment) -> None:
    """Measure the best few again until nothing is left to tell, or the time for it is over."""
    if experiment.storage.recall(FINALIST) is not None:
        return
    for made in count():
        experiment.enter("race", made, UNKNOWN)
        arms, seconds = _arms(experiment), experiment.plan.race_s
        unmet = find_unmet(experiment, arms)
        if unmet is not None and has_time(experiment, Role.RACE, seconds):
            started: Trial | None = experiment.make(Opening(role=Role.RACE, config=unmet))
        else:
            started = measure_what_tells_most(experiment, Role.RACE, arms, seconds=seconds)
        if not started and not experiment.wait_for_others():
            break
    experiment.storage.remember(FINALIST, tuple(_arms(experiment)[:1]))


def _arms(experiment: Experiment) -> Sequence[Config]:
    return [entry.config for entry in better(experiment)[:ARMS]]
