"""Shapley's split of a gain over the settings that make it, as weights of the coalitions.

A setting's effect is what it adds to those before it, averaged over all orders of adding the settings
(Shapley 1953, "A value for n-person games"). An order that passes through what no server accepts is left out
(Faigle & Kern 1992, "The Shapley value for cooperative games under precedence constraints",
doi 10.1007/BF01258278). Effects are linear in what the coalitions give, so weights say everything.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random

import numpy as np
from numpy.typing import NDArray

Coalition = frozenset[str]
EXACT_SETTINGS = 8
"""Up to so many settings all coalitions are looked at: 256."""
ORDERS = 32
"""Beyond, so many orders and their reverses are drawn (antithetic permutations: Mitchell et al. 2022,
"Sampling permutations for Shapley value estimation", JMLR 23)."""


def weigh_coalitions(
    names: Sequence[str], is_valid: Callable[[Coalition], bool]
) -> tuple[list[Coalition], NDArray[np.float64]]:
    """Return coalitions and the weight of each in each setting's effect, shape (settings, coalitions).

    The rows add up to 1 for all settings together and −1 for none. Where no order is valid, all are taken.

    Args:
        names: of the settings; their order changes nothing.
        is_valid: whether a coalition can be put in; asked of proper parts alone.
    """
    every = frozenset(names)
    known: dict[Coalition, bool] = {frozenset(): True, every: True}

    def is_known_valid(part: Coalition) -> bool:
        if part not in known:
            known[part] = is_valid(part)
        return known[part]

    steps = _weigh_all if len(names) <= EXACT_SETTINGS else _weigh_drawn
    weighed = [*steps(sorted(names), is_known_valid)] or [*steps(sorted(names), lambda _: True)]
    coalitions = [*dict.fromkeys(part for before, name, _ in weighed for part in (before, before | {name}))]
    column = {part: number for number, part in enumerate(coalitions)}
    row = {name: number for number, name in enumerate(names)}
    weights = np.zeros((len(names), len(coalitions)))
    for before, name, weight in weighed:
        weights[row[name], column[before | {name}]] += weight
        weights[row[name], column[before]] -= weight
    return coalitions, weights


Step = tuple[Coalition, str, float]
"""The settings before, the setting that is added, and the share of orders with this step."""


def _weigh_all(names: Sequence[str], is_valid: Callable[[Coalition], bool]) -> Iterator[Step]:
    """Yield all steps of valid orders, by counting the orders before and after each."""
    full = 2 ** len(names) - 1
    members = [
        frozenset(name for bit, name in enumerate(names) if mask >> bit & 1) for mask in range(full + 1)
    ]
    valid = [is_valid(part) for part in members]
    bits = [1 << bit for bit in range(len(names))]
    before, after = [0] * (full + 1), [0] * (full + 1)
    before[0], after[full] = 1, 1
    for mask in range(1, full + 1):
        before[mask] = valid[mask] * sum(before[mask ^ bit] for bit in bits if mask & bit)
    for mask in range(full - 1, -1, -1):
        after[mask] = valid[mask] * sum(after[mask | bit] for bit in bits if not mask & bit)
    for mask in range(full):
        for bit, name in zip(bits, names, strict=True):
            orders = 0 if mask & bit else before[mask] * after[mask | bit]
            if orders:
                yield members[mask], name, orders / before[full]


def _weigh_drawn(names: Sequence[str], is_valid: Callable[[Coalition], bool]) -> Iterator[Step]:
    """Yield the steps of drawn orders that are valid, and of their reverses."""
    rng = Random("/".join(names))  # noqa: S311 - no secret
    drawn = [rng.sample(names, len(names)) for _ in range(ORDERS)]
    paths = [_path(order) for each in drawn for order in (each, each[::-1])]
    valid = [path for path in paths if all(is_valid(part) for part in path)]
    for path in valid:
        for before, then in pairwise(path):
            (name,) = then - before
            yield before, name, 1 / len(valid)


def _path(order: Sequence[str]) -> list[Coalition]:
    return [frozenset(order[:length]) for length in range(len(order) + 1)]
