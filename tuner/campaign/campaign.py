"""The campaign: calibrate → search → race → simplify → confirm.

Every stage asks the storage what is there already and does only what is missing, so that an interrupted
study goes on with the same command.
"""

from tuner.campaign.confirm import CONFIRMED, confirm
from tuner.campaign.controls import measure_control
from tuner.campaign.experiment import Experiment
from tuner.campaign.fixed_rate import compare_latency
from tuner.campaign.generator_room import give_generator_room
from tuner.campaign.metric import settle_metric
from tuner.campaign.race import race
from tuner.campaign.search import search
from tuner.campaign.simplify import simplify


def run_campaign(experiment: Experiment) -> str:
    """Run what is missing of a study; returns why it stopped."""
    calibrate(experiment)
    search(experiment)
    finalist = race(experiment)
    if finalist is None:
        return "nothing beat the default in the search"
    winner = simplify(experiment, finalist)
    verdict = confirm(experiment, winner)
    if verdict == CONFIRMED:
        compare_latency(experiment, winner)
    return verdict


def calibrate(experiment: Experiment) -> None:
    """Measure the default until its noise is known, and settle what is maximized."""
    wanted = experiment.plan.calibration_starts
    while (done := len(experiment.controls())) < wanted:
        experiment.progress.stage("calibrate", done, wanted)
        measure_control(experiment)
        give_generator_room(experiment)
    settle_metric(experiment)
