"""Arms measured in interleaved blocks of fresh trials, each block in a random order of its own.

The level of the host is common to the trials of a block, so that its drift cancels out of their ratios; the
random order keeps what drifts within a block from favouring an arm. An arm is a configuration, or one under a
load of its own: whoever makes the trials knows.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from random import Random

from tuner.errors import TooNoisy
from tuner.measure.validity.retries import LEAVE, NOISY
from tuner.records import State, Trial

MAX_FAILURES = 2
"""Failed trials in a row before an arm is held to have failed."""
MAX_SPOILED = 5
"""Trials in a row that the environment may spoil: that is nobody's failure, but no time to measure either."""

Order = Callable[[int, Sequence[str]], Sequence[str]]
"""Puts the arms of a block in order, given its number."""
Choose = Callable[[Mapping[str, str]], Sequence[str]]
"""Chooses the arms of the next block, given those that have failed with the reason; none to end."""


def measure_blocks(
    choose: Choose,
    make: Callable[[str, int], Trial],
    *,
    seed: str,
    order: Order | None = None,
    first: int = 0,
    has_time: Callable[[], bool] = lambda: True,
    wait_until_quiet: Callable[[], bool] = lambda: False,
) -> Mapping[str, str]:
    """Measure one block after the other; returns the arms that failed, with the reason.

    A block that the end of the time cuts off stays: what compares arms has to allow for missing trials.

    Args:
        choose: asked before each block.
        make: makes a trial of an arm, in the block of that number.
        seed: of the order within the blocks; the same one gives the same order to the block of a number.
        order: of the arms in each block; by default at random.
        first: number of the first block. One that was cut off by an interruption is not resumed: hours
            may lie between.
        has_time: asked before each trial.
        wait_until_quiet: waits once for other programs to leave the host alone; returns whether they have.

    Raises:
        TooNoisy: the environment spoils one trial after the other.
    """
    failed: dict[str, str] = {}
    for block in count(first):
        arms = choose(failed)
        if not arms:
            break
        rng = Random(f"{seed}/{block}")  # noqa: S311 - no secret
        for arm in order(block, arms) if order else rng.sample(list(arms), len(arms)):
            if not has_time():
                return failed
            reason = measure_until_it_counts(
                partial(make, arm, block), arm, wait_until_quiet=wait_until_quiet
            )
            if reason is not None:
                failed[arm] = reason
    return failed


def measure_until_it_counts(
    make: Callable[[], Trial], arm: str, *, wait_until_quiet: Callable[[], bool] = lambda: False
) -> str | None:
    """Make trials until one counts; returns why the arm failed, or None.

    Raises:
        TooNoisy: the environment spoils one after the other.
    """
    failures = spoiled = 0
    has_waited = False
    while True:
        trial = make()
        if trial.counts:
            return None
        reason = trial.failure.reason if trial.failure else "no valid window"
        failures += trial.state is State.FAILED
        spoiled += trial.state is not State.FAILED
        if failures == MAX_FAILURES:
            return reason
        if spoiled == MAX_SPOILED and not has_waited and wait_until_quiet():
            spoiled, has_waited = 0, True
        if spoiled == MAX_SPOILED:
            what = f"{arm} could not be measured {MAX_SPOILED} times in a row"
            raise TooNoisy(f"{NOISY}, {what}: {reason} {LEAVE}")
