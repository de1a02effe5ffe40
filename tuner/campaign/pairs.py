"""Two configurations measured in adjacent pairs of fresh starts, in balanced random order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

from tuner.campaign.blocks import measure_until_it_counts
from tuner.ports import Config
from tuner.records import Role, Start, State
from tuner.statistics.confirmation.paired_gain import pair_order
from tuner.statistics.ranking import DEFAULT_ARM
from tuner.study.storage import Opening


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A paired comparison: of what, in which role, how often."""

    role: Role
    sides: Mapping[str, Config]
    """Two arms by name; ratios are of the second over the first."""
    pairs: int
    rng: Random = field(default_factory=Random)
    """Of their order."""
    first_block: int = 0
    """Number of the first pair, so that several comparisons of one role do not mix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """What a paired comparison gave."""

    logs: tuple[tuple[float, float], ...]
    """Log goodput of the first and of the second side, pair by pair."""
    failed: str | None = None
    """The side that failed twice in a row and ended the comparison, with the reason."""


def measure_pairs(
    pairing: Pairing,
    starts: Sequence[Start],
    make: Callable[[Opening], Start],
    report: Callable[[int, int], None] = lambda *_: None,
    *,
    is_taken: Callable[[int], bool] = lambda _: False,
    wait: Callable[[], object] = lambda: None,
    wait_until_quiet: Callable[[], bool] = lambda: False,
) -> Paired:
    """Measure the pairs that are missing.

    Both starts of a pair belong to one session: hours between them would make it no pair.

    Args:
        pairing: what is compared.
        starts: of the study; `make` adds to it.
        make: makes a start.
        report: called before each pair with how many are done, of how many.
        is_taken: whether another worker is at the pair of a block.
        wait: lets others go on with theirs.
        wait_until_quiet: waits once for other programs to leave the host alone; returns whether they have.
    """
    order = pair_order(pairing.pairs, pairing.rng, sides=tuple(pairing.sides))
    while len(read_pairs(starts, pairing)) < pairing.pairs:
        for index, sequence in enumerate(order):
            report(index, pairing.pairs)
            block = pairing.first_block + index
            failed = (
                None
                if is_taken(block)
                else _measure_pair(pairing, sequence, block, starts, make, wait_until_quiet)
            )
            if failed is not None:
                return Paired(logs=read_pairs(starts, pairing), failed=failed)
        wait()
    return Paired(logs=read_pairs(starts, pairing))


def _measure_pair(
    pairing: Pairing,
    sequence: Sequence[str],
    block: int,
    starts: Sequence[Start],
    make: Callable[[Opening], Start],
    wait_until_quiet: Callable[[], bool],
) -> str | None:
    """Measure what is missing of one pair; returns the side that failed with its reason, or None."""
    for arm in sequence:
        if finished_pair(starts, pairing, block) is not None:
            break
        opening = Opening(role=pairing.role, config=pairing.sides[arm], arm=arm, block=block)
        failed = measure_until_it_counts(partial(make, opening), arm, wait_until_quiet=wait_until_quiet)
        if failed is not None:
            return f"{arm}: {failed}"
    return None


def read_pairs(starts: Sequence[Start], pairing: Pairing) -> tuple[tuple[float, float], ...]:
    """Return the log goodputs of all finished pairs, in order."""
    blocks = range(pairing.first_block, pairing.first_block + pairing.pairs)
    pairs = (finished_pair(starts, pairing, block) for block in blocks)
    return tuple(pair for pair in pairs if pair is not None)


def read_starts(starts: Sequence[Start], pairing: Pairing) -> tuple[list[Start], list[Start]]:
    """Return the starts of the first and of the second side of all finished pairs, in order."""
    blocks = range(pairing.first_block, pairing.first_block + pairing.pairs)
    found = [pair for block in blocks if (pair := find_pair(starts, pairing, block)) is not None]
    return [first for first, _ in found], [second for _, second in found]


def finished_pair(starts: Sequence[Start], pairing: Pairing, block: int) -> tuple[float, float] | None:
    """Return both log goodputs of one pair when both sides were measured in the same session."""
    found = find_pair(starts, pairing, block)
    if found is None:
        return None
    first, second = (start.log_value for start in found)
    return None if first is None or second is None else (first, second)


def find_pair(starts: Sequence[Start], pairing: Pairing, block: int) -> tuple[Start, Start] | None:
    """Return both starts of one pair when both sides were measured in the same session.

    Each with the configuration of its side: what was planned before may have had the same numbers. The
    default is what it was: a later space may know more settings.
    """
    sessions: dict[str, dict[str, Start]] = {}
    for start in starts:
        is_side = start.arm == DEFAULT_ARM or start.config == pairing.sides.get(start.arm)
        is_mine = start.role is pairing.role and start.block == block and is_side
        if is_mine and start.state is State.COMPLETE and start.valid_windows:
            sessions.setdefault(start.session, {})[start.arm] = start
    first, second = pairing.sides
    for sides in sessions.values():
        if first in sides and second in sides:
            return sides[first], sides[second]
    return None
