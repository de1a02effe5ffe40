"""What a study compares, settled once, before its search: goodput, or what the server's CPUs give.

At a fixed rate, the study file says what: response times, or CPU time.

Where the load generator is the limit, goodput is the generator's. Then the study compares requests per CPU
second of the server, and says so; where even that cannot be read, it ends before it has cost five minutes.
"""

from dataclasses import replace
from statistics import fmean

from tuner.campaign.experiment import Experiment
from tuner.errors import TargetError
from tuner.records import Metric, Role, under_load
from tuner.statistics.bottleneck import find_bottleneck
from tuner.study.facts import BLEND, METRIC

REMEDY = (
    "Give the load generator more CPUs, more threads (`load.threads:`), or for installed services a separate "
    "host (`load.host:`). Or use a load generator that needs less CPU time"
)


def settle_objective(experiment: Experiment) -> None:
    """Keep what a study at a fixed rate minimizes, before its first trial."""
    metric = experiment.setup.settings.objective.metric
    if metric.is_at_rate and experiment.storage.recall(METRIC) is None:
        experiment.storage.remember(METRIC, metric)


def settle_metric(experiment: Experiment) -> None:
    """Decide from the calibration what the study maximizes, and keep it; nothing when that is done.

    Raises:
        TargetError: the load generator is the limit, and what the server costs cannot be read.
    """
    storage = experiment.storage
    if experiment.setup.load.beside:
        _settle_levels(experiment)
        return
    if storage.recall(METRIC) is not None or any(trial.role is Role.SEARCH for trial in experiment.trials):
        return  # a study of an earlier tuner resumes as it began
    windows = [window for trial in experiment.baselines() for window in trial.valid_windows]
    if not windows:
        return
    found = find_bottleneck(windows)
    if not found.is_generator:
        storage.remember(METRIC, Metric.GOODPUT)
        return
    if not found.has_cost:
        raise TargetError(
            f"load: {found}, so goodput can hardly grow. tuner cannot compare CPU time instead, because the "
            f"CPU time of the server cannot be read. {REMEDY}."
        )
    experiment.settle(METRIC, Metric.PER_CPU)
    experiment.progress.note(
        f"{found}, so goodput can hardly grow. Therefore tuner compares requests per CPU second of the "
        f"server. To compare goodput: {REMEDY}."
    )


def _settle_levels(experiment: Experiment) -> None:
    """Keep what the default gives under each of several loads, which always compare goodput."""
    blend, baselines = experiment.storage.blend, experiment.baselines()
    if blend is None or blend.levels or not baselines:
        return
    logs = {name: [under_load(each, name).log_goodput for each in baselines] for name in blend.weights}
    levels = {name: fmean(log for log in seen if log is not None) for name, seen in logs.items()}
    experiment.settle(BLEND, replace(blend, levels=levels))
