"""Shapley's split: exact, fair, and only through what can be put in."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.explain.coalitions import EXACT_SETTINGS, weigh_coalitions

NAMES = ("a", "b", "c", "d")


def split(names, give, is_valid=lambda _: True):
    """Return the effect of each name in a game."""
    parts, weights = weigh_coalitions(names, is_valid)
    effects = weights @ [give(part) for part in parts]
    return dict(zip(names, effects.tolist(), strict=True))


def average_over_orders(names, give, is_valid=lambda _: True):
    """Return the same from its definition."""
    totals, count = dict.fromkeys(names, 0.0), 0
    for order in permutations(names):
        prefixes = [frozenset(order[:length]) for length in range(len(order) + 1)]
        if all(is_valid(part) for part in prefixes):
            count += 1
            for name, before in zip(order, prefixes, strict=False):
                totals[name] += give(before | {name}) - give(before)
    return {name: total / count for name, total in totals.items()}


games = st.lists(st.floats(-1, 1), min_size=16, max_size=16).map(
    lambda given: lambda part: given[sum(2 ** NAMES.index(name) for name in part)]
)


@given(games)
def test_effects_are_averages_over_all_orders_and_add_up_to_the_gain(give):
    effects = split(NAMES, give)

    assert effects == pytest.approx(average_over_orders(NAMES, give))
    assert sum(effects.values()) == pytest.approx(give(frozenset(NAMES)) - give(frozenset()))


@given(games, st.permutations(NAMES))
def test_the_order_of_the_names_changes_nothing(give, names):
    assert split(names, give) == pytest.approx(split(NAMES, give))


def test_orders_through_what_no_server_accepts_are_left_out():
    def give(part):
        return len(part) ** 2 + 3.0 * ("c" in part)

    def is_valid(part):
        return "a" in part or "b" not in part

    effects = split(NAMES, give, is_valid)

    assert effects == pytest.approx(average_over_orders(NAMES, give, is_valid))
    assert effects != pytest.approx(split(NAMES, give))


def test_what_is_invalid_is_never_asked_for_unless_there_is_no_other_way():
    def is_valid(part):
        return len(part) in {0, len(NAMES)}

    parts, weights = weigh_coalitions(NAMES, is_valid)
    assert weights.sum(axis=0) @ [len(part) for part in parts] == pytest.approx(len(NAMES))

    parts, _ = weigh_coalitions(NAMES, lambda part: part != {"a"})
    assert frozenset("a") not in parts


def test_many_lines_are_split_from_drawn_orders_that_still_add_up():
    names = [f"setting{number:02}" for number in range(EXACT_SETTINGS + 4)]
    sizes = dict(zip(names, np.linspace(-0.1, 0.5, len(names)), strict=True))

    effects = split(names, lambda part: sum(sizes[name] for name in part))

    assert effects == pytest.approx(sizes)
    assert split(names[::-1], lambda part: len(part) ** 2) == pytest.approx(
        split(names, lambda part: len(part) ** 2)
    )
