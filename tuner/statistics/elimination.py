"""The final race: few configurations and the default in randomised blocks of fresh starts."""

import math
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
from scipy.special import stdtr


def race_order(arms: Sequence[str], blocks: int, rng: Random) -> list[list[str]]:
    """Return the order of the arms in each block: random, and each arm in each place equally often.

    Every len(arms) blocks form a Latin square with shuffled rows, columns and arms, so that neither the
    place in a block nor drift within it favours an arm.
    """
    size = len(arms)
    order: list[list[str]] = []
    while len(order) < blocks and size:
        rows, places, names = (rng.sample(range(size), size) for _ in range(3))
        order += [[arms[names[(row + place) % size]] for place in places] for row in rows]
    return order[:blocks]


def survivors(
    blocks: Sequence[Mapping[str, float]],
    *,
    default: str,
    first_test: int = 4,
    alpha: float = 0.10,
    keep: int = 2,
) -> tuple[str, ...]:
    """Replay the race; give the arms still in it, the leader first and the default last.

    After `first_test` blocks, and after each further one, every arm is compared with the leader on the
    blocks they share: paired one-sided t with Holm's correction (Scandinavian Journal of Statistics 6, 1979).
    Eliminating only after complete blocks is irace's rule (López-Ibáñez et al., "The irace package",
    Operations Research Perspectives 3, 2016). The default always stays: all is compared with it.

    Args:
        blocks: log goodput by arm, one mapping per finished block; an arm may be missing from one.
        default: name of the default's arm.
        first_test: blocks before the first elimination.
        alpha: error rate of one round of comparisons.
        keep: configurations besides the default that stay in any case.
    """
    arms = list(dict.fromkeys(arm for block in blocks for arm in block))
    alive = [arm for arm in arms if arm != default]
    for count in range(first_test, len(blocks) + 1):
        seen = blocks[:count]
        ranked = _rank(seen, alive)
        lost = _losers(seen, ranked, least=first_test, alpha=alpha)
        room = max(0, len(alive) - keep)
        alive = [arm for arm in ranked if arm not in lost[:room]]
    return (*_rank(blocks, alive), *(arm for arm in arms if arm == default))


def _rank(blocks: Sequence[Mapping[str, float]], arms: Sequence[str]) -> list[str]:
    """Order arms by their mean deviation from the mean of the arms in each block, best first."""
    deviations: dict[str, list[float]] = {arm: [] for arm in arms}
    for block in blocks:
        present = [arm for arm in arms if arm in block]
        for arm in present:
            deviations[arm].append(block[arm] - sum(block[each] for each in present) / len(present))
    means = {arm: sum(values) / len(values) if values else -math.inf for arm, values in deviations.items()}
    return sorted(arms, key=lambda arm: -means[arm])


def _losers(
    blocks: Sequence[Mapping[str, float]], ranked: Sequence[str], *, least: int, alpha: float
) -> list[str]:
    """Return the arms that are worse than the leader, the clearest first."""
    if not ranked:
        return []
    leader, *others = ranked
    tests = []
    for arm in others:
        ahead = [block[leader] - block[arm] for block in blocks if leader in block and arm in block]
        if len(ahead) >= max(least, 2):
            tests.append((_p_not_ahead(ahead), arm))
    lost = []
    for index, (p, arm) in enumerate(sorted(tests)):
        if p > alpha / (len(tests) - index):
            break
        lost.append(arm)
    return lost


def _p_not_ahead(differences: Sequence[float]) -> float:
    """Return the one-sided p of the paired t test that the mean difference is not above 0."""
    mean = float(np.mean(differences))
    error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    if error == 0:
        return 0.0 if mean > 0 else 1.0
    return float(stdtr(len(differences) - 1, -mean / error))
