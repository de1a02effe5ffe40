import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from tuner.optimize.acquisition import change, maximise
from tuner.optimize.encoding import Conditions, Encoding

ENCODING = Encoding(
    {
        "workers": IntDistribution(1, 1024, log=True),
        "delay": FloatDistribution(0.0, 1.0),
        "cache": CategoricalDistribution(("off", "on")),
        "log": CategoricalDistribution(("off", "buffer", "on")),
        "only": CategoricalDistribution(("this",)),
    }
)
FREE = Conditions(conditional=np.zeros(5, dtype=bool), parents={})


@pytest.mark.parametrize(("least", "most"), [(1, 1), (1, 3), (0, 2), (5, 7)])
def test_no_more_changes_than_asked_and_within_the_space(least, most):
    rng = np.random.default_rng(0)
    points = ENCODING.draw(400, rng)
    changed = change(points, least, most, ENCODING, rng)

    assert (changed != points).sum(axis=1).max() <= most
    assert np.array_equal(
        ENCODING.encode([ENCODING.decode(each) for each in changed]), ENCODING.snap(changed)
    )


def test_a_choice_that_changes_is_another_one():
    rng = np.random.default_rng(0)
    points = ENCODING.draw(400, rng)
    changed = change(points, 5, 5, ENCODING, rng)

    assert (changed[:, 2] != points[:, 2]).all()
    assert (changed[:, 3] != points[:, 3]).all()
    assert set(changed[:, 3]) == {0.0, 1.0, 2.0}
    assert set(changed[:, 4]) == {0.0}, "there is no other"


def test_what_is_off_gets_a_value():
    rng = np.random.default_rng(0)
    points = np.full((50, 5), np.nan)

    assert not np.isnan(change(points, 0, 0, ENCODING, rng)).any()


def test_the_best_of_two_good_points_is_put_together():
    """One has the right numbers, the other the right choices."""
    rng = np.random.default_rng(0)
    goal = np.array([1.0, 0.0, 1.0, 2.0, 0.0])
    good = np.array([[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 2.0, 0.0]])

    found = maximise(
        lambda points: -np.abs(points - goal).sum(axis=1), ENCODING, FREE, ENCODING.snap(good), rng
    )

    assert ENCODING.decode(found) == ENCODING.decode(goal)
