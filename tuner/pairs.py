"""Two configurations measured in adjacent pairs of fresh starts, in balanced random order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tuner.measure.confirm import pair_order
from tuner.ports import Config
from tuner.records import Role, Start, State
from tuner.storage import Opening

MAX_TRIES = 2
"""Attempts at one start of a pair before its side is held to have failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A paired comparison: of what, in which role, how often."""

    role: Role
    sides: Mapping[str, Config]
    """Two arms by name; ratios are of the second over the first."""
    pairs: int
    rng: Random
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
    tell: Callable[[int, int], None],
) -> Paired:
    """Measure the pairs that are missing. `starts` is the growing list of all starts of the study.

    Both starts of a pair belong to one session: hours between them would make it no pair.
    """
    order = pair_order(pairing.pairs, pairing.rng, sides=tuple(pairing.sides))
    for index, sequence in enumerate(order):
        block = pairing.first_block + index
        tell(index, pairing.pairs)
        for arm in sequence:
            if finished_pair(starts, pairing, block) is not None:
                break
            for _ in range(MAX_TRIES):
                start = make(Opening(role=pairing.role, config=pairing.sides[arm], arm=arm, block=block))
                if start.counts:
                    break
            else:
                reason = start.failure.reason if start.failure else "no valid window"
                return Paired(logs=read_pairs(starts, pairing), failed=f"{arm}: {reason}")
    return Paired(logs=read_pairs(starts, pairing))


def read_pairs(starts: Sequence[Start], pairing: Pairing) -> tuple[tuple[float, float], ...]:
    """Give the log goodputs of all finished pairs, in order."""
    blocks = range(pairing.first_block, pairing.first_block + pairing.pairs)
    pairs = (finished_pair(starts, pairing, block) for block in blocks)
    return tuple(pair for pair in pairs if pair is not None)


def finished_pair(starts: Sequence[Start], pairing: Pairing, block: int) -> tuple[float, float] | None:
    """Give both log goodputs of one pair when both sides were measured in the same session."""
    sessions: dict[str, dict[str, float]] = {}
    for start in starts:
        if start.role is pairing.role and start.block == block and start.state is State.COMPLETE:
            log = start.log_goodput
            if log is not None:
                sessions.setdefault(start.session, {})[start.arm] = log
    first, second = pairing.sides
    for sides in sessions.values():
        if first in sides and second in sides:
            return sides[first], sides[second]
    return None
