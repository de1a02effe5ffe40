"""What a study maximizes, settled once, before its search: goodput, or what the server's CPUs give.

Where the load generator is the limit, goodput is the generator's. Then the study compares requests per CPU
second of the server, and says so; where even that cannot be read, it ends before it has cost five minutes.
"""

from tuner.campaign.experiment import Experiment
from tuner.errors import TargetError
from tuner.records import Metric, Role
from tuner.statistics.bottleneck import Bottleneck, find_bottleneck
from tuner.study.facts import METRIC

REMEDY = (
    "Give it more CPUs or threads (`load.threads`), load hosts of its own (`load.host`, for installed "
    "services), or take a generator that needs less CPU time"
)


def settle_metric(experiment: Experiment) -> None:
    """Decide from the calibration what the study maximizes, and keep it; nothing when that is done.

    Raises:
        TargetError: the load generator is the limit, and what the server costs cannot be read.
    """
    storage = experiment.storage
    if storage.recall(METRIC) is not None or any(start.role is Role.SEARCH for start in experiment.starts):
        return  # a study of an earlier tuner goes on as it began
    windows = [window for start in experiment.controls() for window in start.valid_windows]
    if not windows:
        return
    found = find_bottleneck(windows)
    if not found.is_generator:
        storage.remember(METRIC, Metric.GOODPUT)
        return
    if not found.has_cost:
        raise TargetError(
            f"load: {describe_limit(found)}, so goodput would measure the generator, and the CPU time of the "
            f"server cannot be read, which could be compared instead. {REMEDY}."
        )
    experiment.maximize(Metric.PER_CPU)
    experiment.progress.note(
        f"{describe_limit(found)}: goodput would measure the generator, so requests per CPU second of the "
        f"server are compared. {REMEDY} to compare goodput."
    )


def describe_limit(found: Bottleneck) -> str:
    """Return both shares in a few words."""
    return (
        f"the load generator used {found.generator_busy:.0%} of its CPUs, the server "
        f"{found.server_busy:.0%} of its own"
    )
