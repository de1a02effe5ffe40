"""What the model is told of the values."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tuner.optimize.history import compress, scalarise


def test_a_search_that_has_converged_still_tells_what_the_other_settings_cost():
    near_best = np.linspace(-0.1, 0.0, 40)
    explored = np.array([-0.1, -0.2, -0.3, -0.4])

    kept = compress(np.concatenate([near_best, explored]))

    assert kept[-4:].tolist() == explored.tolist()


def test_a_catastrophe_does_not_set_the_scale():
    ordinary = np.linspace(-0.4, 0.0, 9)

    kept = compress(np.append(ordinary, -5.5))

    assert np.array_equal(kept[:-1], ordinary)
    assert -2.5 < kept[-1] < -0.4


def test_where_most_values_are_the_best_the_others_are_still_seen():
    kept = compress(np.array([1.0, 1.0, 1.0, 0.5, 0.0]))

    assert kept.tolist() == [1.0, 1.0, 1.0, 0.5, 0.0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_compression_keeps_the_order_and_the_best(values):
    kept = compress(np.array(values))

    assert kept.max() == max(values)
    assert np.all(np.diff(kept[np.argsort(values, kind="stable")]) >= 0)
    assert np.all(kept >= values)


def test_two_objectives_weigh_alike_whatever_their_units():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 2))
    variances = np.full((20, 2), 0.01)

    one, _ = scalarise(values, variances, np.random.default_rng(1))
    other, _ = scalarise(values * [1.0, 1e6], variances * [1.0, 1e12], np.random.default_rng(1))

    assert np.allclose(one, other)


def test_an_objective_that_is_mostly_at_its_best_does_not_outweigh_the_other():
    values = np.column_stack([np.linspace(0.0, 1.0, 9), [0.0, *[1.0] * 8]])

    mixed, variances = scalarise(values, np.full((9, 2), 0.01), np.random.default_rng(1))

    assert np.ptp(mixed) < 10
    assert np.all(variances < 10)
