"""What became of a study: what is wrong with its trials and targets, and what its winner is truly worth."""

from collections.abc import Iterator

from benchmarks.fleet.faults.fleet import Fleet
from benchmarks.fleet.faults.worker import worth_of
from tests.integration.shared_study import find_wrong_trials
from tests.integration.waiting import wait_until
from tests.unit.simulation import TUNED, space_of
from tuner.campaign.stages.confirm import CONFIRMED
from tuner.study.facts import CONFIRMATION, VERDICT
from tuner.study.storage import Storage

PRICE = 0.01
"""Log points that each changed setting has to be worth."""
PATIENCE_S = 60.0
"""A watchdog of a few seconds has long acted by then, on any machine."""


def find_wrong(fleet: Fleet) -> list[str]:
    """Return what is not as it should be once every worker has ended."""
    return [*find_wrong_trials(fleet.open_study().trials()), *_targets_not_back(fleet)]


def _targets_not_back(fleet: Fleet) -> Iterator[str]:
    for each in fleet.machines:
        try:
            wait_until(lambda: each.machine.everything() == each.before, patience_s=PATIENCE_S)  # noqa: B023
        except AssertionError:
            yield f"{each.host} is not as it was before:\n{each.machine.log()}"


def net_worth(storage: Storage, seed: int) -> tuple[float, int]:
    """Return what ships is truly worth less the price of its changes, in log points, and the changes."""
    planned = storage.recall(CONFIRMATION)
    if storage.recall(VERDICT) != CONFIRMED or planned is None:
        return 0.0, 0
    changes = len(space_of(*TUNED).changes(planned.config))
    return worth_of(seed, planned.config) - PRICE * changes, changes
