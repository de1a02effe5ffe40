"""The campaign: calibrate → search → race → ablation → robustness checks → confirm → effects.

Every stage asks the storage what is there already and does only what is missing, so that an interrupted
study resumes with the same command.
"""

import logging

from tuner.campaign.baselines import measure_baseline
from tuner.campaign.experiment import Experiment, PlanChanged
from tuner.campaign.generator_room import give_generator_room
from tuner.campaign.metric import settle_metric, settle_objective
from tuner.campaign.pace import settle_pace
from tuner.campaign.stages.ablation import ablate
from tuner.campaign.stages.confirm import CONFIRMED, confirm, find_planned, speaks_against_winner
from tuner.campaign.stages.factorial import measure_effects
from tuner.campaign.stages.fixed_rate import compare_latency
from tuner.campaign.stages.race import race
from tuner.campaign.stages.robustness import check_robustness, find_checked
from tuner.campaign.stages.search import search
from tuner.campaign.stages.shortlist import better, reject
from tuner.errors import TooNoisy
from tuner.measure.validity.retries import NOISY
from tuner.ports import Config
from tuner.records import Role
from tuner.statistics.confirmation.robustness import describe
from tuner.study.facts import REJECTED, TOO_NOISY, VERDICT

LOG = logging.getLogger(__name__)
MOST_REJECTED = 5
"""A winner that crashes costs next to no time: without a bound, one reduction after another is tried."""
LEAST_BASELINES = 2
"""Before anything else is measured on a host that is alone. Beside others one is enough: theirs show how
trials scatter, and the next baseline trial comes soon."""
NOTHING_BETTER = "nothing beat the default in the search"


def run_campaign(experiment: Experiment) -> str:
    """Run what is missing of a study; returns why it stopped.

    Where another host's thread has ended a stage meanwhile, what is missing is looked at anew.

    Raises:
        TooNoisy: nothing but the default could be measured, or the study has other hosts.
    """
    while True:
        try:
            return _run_stages(experiment)
        except PlanChanged:
            LOG.info("another worker has finished a stage; this worker checks again which work is left")
            verdict = experiment.storage.recall(VERDICT)
            if verdict is not None:
                return verdict
        except TooNoisy as noisy:
            tried = any(trial.counts and trial.role is not Role.BASELINE for trial in experiment.trials)
            if not tried or experiment.host:
                raise
            return f"{TOO_NOISY}{str(noisy).removeprefix(NOISY)}"


def _run_stages(experiment: Experiment) -> str:
    calibrate(experiment)
    search(experiment)
    race(experiment)
    verdict = NOTHING_BETTER
    while (winner := choose(experiment)) is not None:
        checked = check_robustness(experiment, winner)
        verdict = (
            f"not confirmed: {describe(checked)}" if checked.is_rejected else confirm(experiment, winner)
        )
        if not checked.is_rejected and not speaks_against_winner(verdict):
            break
        reject(experiment, winner, verdict)
    if winner is not None and verdict == CONFIRMED:
        try:  # the gain stays what it is
            compare_latency(experiment, winner)
            measure_effects(experiment, winner)
        except TooNoisy as noisy:
            experiment.progress.note(f"tuner stops measuring response times and effects: {noisy}")
    return verdict


def choose(experiment: Experiment) -> Config | None:
    """Return what is to be confirmed: the best that was not rejected, made as small as it is good.

    None when nothing is better than the default, or there is no time left to prove that of another one.
    """
    planned = find_planned(experiment) or find_checked(experiment)
    if planned is not None:
        return planned
    best = better(experiment)
    rejected = experiment.storage.recall(REJECTED) or ()
    if len(rejected) >= MOST_REJECTED:
        return None
    # As planned, a confirmation takes all the time it is given: after a rejection, the fewest pairs will do.
    check_s = experiment.plan.robustness_s
    is_late = bool(rejected) and not experiment.schedule.has_time_to_confirm(besides_s=check_s)
    return ablate(experiment, best[0].config) if best and not is_late else None


def calibrate(experiment: Experiment) -> None:
    """Measure the default until its noise is known, and settle what is maximized.

    Where several hosts show the noise together, each shows its own level at least.
    """
    settle_objective(experiment)
    wanted = experiment.plan.calibration_trials
    while (done := min(experiment.count_baselines(), wanted)) < wanted or (
        len(experiment.baselines()) < (LEAST_BASELINES if experiment.is_alone else 1)
    ):
        experiment.enter("calibrate", done, wanted)
        measure_baseline(experiment)
        settle_pace(experiment)
        give_generator_room(experiment)
    settle_metric(experiment)
