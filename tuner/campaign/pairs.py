"""Two configurations measured in adjacent pairs of fresh trials, in balanced random order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

from tuner.campaign.blocks import measure_until_it_counts
from tuner.campaign.experiment import Experiment
from tuner.ports import Config
from tuner.records import Role, State, Trial
from tuner.records.blend import Hosts
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

    @property
    def blocks(self) -> range:
        """Return the numbers of the pairs."""
        return range(self.first_block, self.first_block + self.pairs)


def on_each_host(hosts: Hosts | None, make: Callable[[str, int], Pairing]) -> Mapping[str, Pairing]:
    """Return a comparison for each host of its name and number; of one, or where any will do, a single one.

    That one has no name.
    """
    return {host: make(host, number) for number, host in enumerate(("",) if hosts is None else hosts.names)}


def measure_on_hosts(
    experiment: Experiment,
    pairings: Mapping[str, Pairing],
    make: Callable[[Opening], Trial],
    *,
    stage: str,
    has_ended: Callable[[], bool] = lambda: False,
) -> str | None:
    """Measure the pairs of this host that are missing, and wait until the other hosts have theirs.

    Args:
        experiment: the study.
        pairings: as `on_each_host` returns them.
        make: makes a trial.
        stage: that the pairs are of.
        has_ended: whether the others need not go on, although pairs are missing.

    Returns:
        The side that failed with its reason, or None.
    """
    own, trials = pairings[experiment.host if experiment.host in pairings else ""], experiment.trials
    failed = measure_pairs(
        own, trials, make, partial(experiment.enter, stage),
        is_taken=partial(experiment.is_taken, own.role), wait=experiment.wait_for_others,
    )  # fmt: skip
    while failed is None and not (has_ended() or are_whole(trials, pairings)):
        experiment.wait_a_while()
    return failed


def measure_pairs(
    pairing: Pairing,
    trials: Sequence[Trial],
    make: Callable[[Opening], Trial],
    report: Callable[[int, int], None] = lambda *_: None,
    *,
    is_taken: Callable[[int], bool] = lambda _: False,
    wait: Callable[[], object] = lambda: None,
) -> str | None:
    """Measure the pairs that are missing; return the side that failed twice, with its reason.

    Both trials of a pair belong to one session: hours between them would make it no pair.

    Args:
        pairing: what is compared.
        trials: of the study; `make` adds to it.
        make: makes a trial.
        report: called before each pair with how many are done, of how many.
        is_taken: whether another worker is at the pair of a block.
        wait: lets others go on with theirs.
    """
    order = pair_order(pairing.pairs, pairing.rng, sides=tuple(pairing.sides))
    while len(read_pairs(trials, pairing)) < pairing.pairs:
        for index, (block, sequence) in enumerate(zip(pairing.blocks, order, strict=True)):
            report(index, pairing.pairs)
            for arm in () if is_taken(block) else sequence:
                if find_pair(trials, pairing, block) is not None:
                    break
                opening = Opening(role=pairing.role, config=pairing.sides[arm], arm=arm, block=block)
                failed = measure_until_it_counts(partial(make, opening), arm)
                if failed is not None:
                    return f"{arm}: {failed}"
        wait()
    return None


def are_whole(trials: Sequence[Trial], pairings: Mapping[str, Pairing]) -> bool:
    """Return whether all pairs of all hosts were measured."""
    return all(len(read_pairs(trials, each)) >= each.pairs for each in pairings.values())


def read_pairs(trials: Sequence[Trial], pairing: Pairing) -> list[tuple[Trial, Trial]]:
    """Return the trials of the first and of the second side of all finished pairs, in order."""
    return [pair for block in pairing.blocks if (pair := find_pair(trials, pairing, block)) is not None]


def find_pair(trials: Sequence[Trial], pairing: Pairing, block: int) -> tuple[Trial, Trial] | None:
    """Return both trials of one pair when both sides were measured in the same session.

    Each with the configuration of its side: what was planned before may have had the same numbers. The
    default is what it was: a later space may know more settings.
    """
    sessions: dict[str, dict[str, Trial]] = {}
    for trial in trials:
        is_side = trial.arm == DEFAULT_ARM or trial.config == pairing.sides.get(trial.arm)
        is_mine = trial.role is pairing.role and trial.block == block and is_side
        if is_mine and trial.state is State.COMPLETE and trial.valid_windows:
            sessions.setdefault(trial.session, {})[trial.arm] = trial
    first, second = pairing.sides
    for sides in sessions.values():
        if first in sides and second in sides:
            return sides[first], sides[second]
    return None
