"""What became of a study: what is wrong with its starts and targets, and what its winner is truly worth."""

from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks.fleet_faults.fleet import Fleet
from benchmarks.fleet_faults.worker import worth_of
from tests.integration.waiting import wait_until
from tests.unit.simulation import TUNED, space_of
from tuner.campaign.stages.confirm import CONFIRMED
from tuner.records import Role, Start, State
from tuner.statistics.ranking import config_key
from tuner.study.facts import CONFIRMATION, VERDICT
from tuner.study.storage import Storage

PRICE = 0.01
"""Log points that each changed setting has to be worth."""
PATIENCE_S = 60.0
"""A watchdog of a few seconds has long acted by then, on any machine."""


def find_wrong(fleet: Fleet) -> list[str]:
    """Return what is not as it should be once every worker has ended."""
    return [*_wrong_starts(fleet.storage.starts()), *_targets_not_back(fleet)]


def _wrong_starts(starts: Sequence[Start]) -> Iterator[str]:
    if [start.number for start in starts] != list(range(len(starts))):
        yield "numbers are missing"
    for start in starts:
        if start.state is State.RUNNING or (start.state is State.INVALID and start.failure is None):
            yield f"start {start.number} has no outcome"
    searched = [start for start in starts if start.role is Role.SEARCH]
    done = Counter(config_key(start.config) for start in searched if start.state is not State.INVALID)
    for start in searched:
        times = done[config_key(start.config)]
        if times != 1:
            yield f"the configuration of start {start.number} was tried {times} times"
    confirming = [start for start in starts if start.role is Role.CONFIRM and start.counts]
    sides = Counter((start.block, start.arm) for start in confirming)
    yield from (f"side {side} was measured {times} times" for side, times in sides.items() if times > 1)
    blocks = {block for block, _ in sides}
    for block in blocks:
        hosts = {start.host for start in confirming if start.block == block}
        if len(hosts) > 1 or len([side for side in sides if side[0] == block]) != 2:
            yield f"pair {block} is not whole, or of several hosts"


def _targets_not_back(fleet: Fleet) -> Iterator[str]:
    for worker in fleet.workers:
        try:
            wait_until(lambda: worker.machine.everything() == worker.before, patience_s=PATIENCE_S)  # noqa: B023
        except AssertionError:
            yield f"{worker.host} is not as it was before:\n{worker.machine.log()}"


def net_worth(storage: Storage, seed: int) -> tuple[float, int]:
    """Return what ships is truly worth less the price of its changes, in log points, and the changes."""
    planned = storage.recall(CONFIRMATION)
    if storage.recall(VERDICT) != CONFIRMED or planned is None:
        return 0.0, 0
    changes = len(space_of(*TUNED).changes(planned.config))
    return worth_of(seed, planned.config) - PRICE * changes, changes
