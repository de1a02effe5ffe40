import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from tuner.optimize.encoding import Conditions, Encoding

SPACE = {
    "whole": IntDistribution(3, 9, step=2),
    "log": IntDistribution(1, 4096, log=True),
    "float": FloatDistribution(-1.0, 2.5),
    "tiny": FloatDistribution(1e-7, 1.0, log=True),
    "stepped": FloatDistribution(0.0, 0.9, step=0.3),
    "choice": CategoricalDistribution((None, True, 1, "on")),
}
ENCODING = Encoding(SPACE)

points = st.fixed_dictionaries(
    {
        "whole": st.sampled_from((3, 5, 7, 9)),
        "log": st.integers(1, 4096),
        "float": st.floats(-1.0, 2.5),
        "tiny": st.floats(1e-7, 1.0),
        "stepped": st.sampled_from((0.0, 0.3, 0.6, 0.9)),
        "choice": st.sampled_from((None, True, 1, "on")),
    }
)


@given(points)
def test_a_point_decodes_to_the_parameters_it_encodes(params):
    (point,) = ENCODING.encode([params])
    decoded = ENCODING.decode(point)

    assert decoded.keys() == params.keys()
    for name, value in params.items():
        if isinstance(value, float):
            assert decoded[name] == pytest.approx(value, rel=1e-9, abs=1e-12)
        else:
            assert decoded[name] == value
            assert type(decoded[name]) is type(value)


def test_what_is_drawn_lies_within_the_bounds_and_every_value_has_its_share():
    drawn = [ENCODING.decode(point) for point in ENCODING.draw(4000, np.random.default_rng(1))]

    for name, distribution in SPACE.items():
        assert all(distribution._contains(distribution.to_internal_repr(each[name])) for each in drawn)
    shares = [sum(each["whole"] == value for each in drawn) / len(drawn) for value in (3, 5, 7, 9)]
    assert shares == pytest.approx([0.25] * 4, abs=0.03)


def test_a_missing_parameter_is_nan_and_stays_away():
    (point,) = ENCODING.encode([{"whole": 5, "choice": "on"}])

    assert np.isnan(point).tolist() == [False, True, True, True, True, False]
    assert ENCODING.decode(point) == {"whole": 5, "choice": "on"}


def test_a_number_beyond_todays_bounds_is_put_on_them():
    (point,) = ENCODING.encode([{"float": 7.0, "log": 100_000}])

    assert ENCODING.decode(point) == {"float": 2.5, "log": 4096}


def rows(*modes_and_sizes):
    """Make points of a choice with three values, a number, and a number that only value 2 has."""
    return np.array([[mode, 0.5, size] for mode, size in modes_and_sizes], dtype=float)


def test_a_choice_that_explains_every_gap_is_the_parent():
    seen = rows((0, math.nan), (1, math.nan), (2, 0.1), (2, 0.9))
    conditions = Conditions.learn(seen, np.array([True, False, False]))

    assert conditions.parents == {2: (0, frozenset({0.0, 1.0}))}
    applied = conditions.apply(rows((0, 0.3), (1, 0.3), (2, 0.3)))
    assert np.isnan(applied[:, 2]).tolist() == [True, True, False]


def test_gaps_that_nothing_explains_switch_nothing_off():
    seen = rows((0, math.nan), (0, 0.2), (2, 0.1))
    conditions = Conditions.learn(seen, np.array([True, False, False]))

    assert conditions.parents == {}
    assert not np.isnan(conditions.apply(rows((0, 0.3)))).any()


def test_what_a_switched_off_choice_switches_off_is_off():
    seen = np.array([[0, math.nan, math.nan], [1, 0, math.nan], [1, 1, 0.4]], dtype=float)
    conditions = Conditions.learn(seen, np.array([True, True, False]))
    applied = conditions.apply(np.array([[0, 1, 0.7]], dtype=float))

    assert np.isnan(applied).tolist() == [[False, True, True]]
