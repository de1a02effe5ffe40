import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.stats import norm

from tuner.optimize.acquisition import (
    MOST_PUT_BACK,
    NoisyExpectedImprovement,
    change,
    gradient_of_knowledge,
    maximise,
    put_back,
)
from tuner.optimize.encoding import Columns, Conditions, Encoding
from tuner.optimize.gp import GaussianProcess, Kernel, ObservationNoise

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
        lambda points: -np.abs(points - goal).sum(axis=1), ENCODING, FREE, ENCODING.snap(good), rng,
        reference=np.empty((0, 5)),
    )  # fmt: skip

    assert ENCODING.decode(found) == ENCODING.decode(goal)


def test_what_is_put_back_is_nothing_but_that():
    rng = np.random.default_rng(0)
    points, reference = ENCODING.draw(400, rng), ENCODING.draw(1, rng)[0]
    points[:5] = reference

    back = put_back(points, reference, rng)

    is_changed = back != points
    assert (back[is_changed] == np.broadcast_to(reference, back.shape)[is_changed]).all()
    counts, others = is_changed.sum(axis=1), (points != reference).sum(axis=1)
    assert (counts <= np.minimum(others, MOST_PUT_BACK)).all()
    assert (counts >= np.minimum(others, 1)).all()
    assert {1, 2, 3} <= {*counts}


def test_a_point_that_is_off_where_the_reference_is_not_can_be_put_back():
    rng = np.random.default_rng(0)
    reference = np.zeros(5)
    points = np.array([[0.0, np.nan, 0.0, 0.0, 0.0]] * 20)

    assert np.array_equal(put_back(points, reference, rng), np.zeros((20, 5)))


def test_what_does_not_help_is_put_back_to_the_reference():
    """Only one number counts; the good points carry four changes along."""
    rng = np.random.default_rng(0)
    reference = ENCODING.snap(np.zeros((1, 5)))
    good = ENCODING.snap(np.array([[1.0, 1.0, 1.0, 2.0, 0.0]]))

    found = maximise(
        lambda points: points[:, 0] - 0.01 * (points != reference).sum(axis=1), ENCODING, FREE, good, rng,
        reference=reference,
    )  # fmt: skip

    assert (found != reference[0]).sum() == 1
    assert found[0] > 0.99


def test_of_two_points_that_are_equally_good_the_sparser_is_preferred():
    """Only the first column matters to the process."""
    columns = Columns(np.zeros(3, dtype=bool), np.zeros(3, dtype=bool), np.array([9, 9, 9]))
    kernel = Kernel(columns, np.array([3.0, 1e-9, 1e-9]), 1.0, 1e-9)
    known = np.array([[0.0, 0.0, 0.0], [0.4, 1.0, 1.0], [0.6, 1.0, 0.0]])
    noise = ObservationNoise(own=np.full(3, 1e-4))
    process = GaussianProcess(kernel, 1e-6, known, np.array([0.0, 0.1, 0.2]), noise)
    asked = np.array([[0.7, 0.0, 0.0], [0.7, 1.0, 1.0]])

    def score(price):
        return NoisyExpectedImprovement(
            process, (), np.empty((0, 3)), np.random.default_rng(1),
            lambda points: -price * (points != 0).sum(axis=1),
        )(asked)  # fmt: skip

    free, priced = score(0.0), score(0.02)
    assert free[0] == pytest.approx(free[1], abs=1e-5)
    assert priced[0] > priced[1] + 0.05


@pytest.mark.parametrize(("mean", "moved"), [(0.0, 0.1), (-0.1, 0.1), (-0.3, 0.2), (0.2, 0.1)])
def test_the_knowledge_of_one_among_two_is_the_expected_improvement(mean, moved):
    """E max(0, m + sZ) - max(0, m) has a closed form."""
    told = gradient_of_knowledge(np.array([0.0, mean]), np.array([[0.0], [moved]]))

    exact = mean * norm.cdf(mean / moved) + moved * norm.pdf(mean / moved) - max(mean, 0.0)
    assert told == pytest.approx([exact], abs=0.003)
