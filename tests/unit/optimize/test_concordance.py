"""An earlier study counts as long as the new study's own trials bear out its ranking."""

import numpy as np
import pytest

from tuner.optimize.catalogue import make_optimizer
from tuner.optimize.concordance import bear_out, weigh
from tuner.optimize.optimizer import Earlier, Observation
from tuner.space import Dimension

DIMENSIONS = (Dimension(name="x", parameter="x", kind="float", low=0.0, high=1.0),)
RISING = np.linspace(0.0, 1.0, 8)


def observe(values, deviation=0.05):
    return [
        Observation(point={"x": float(x)}, log_ratio=float(value), variance=deviation**2, constraints={})
        for x, value in zip(np.linspace(0.0, 1.0, len(values)), values, strict=True)
    ]


def rising(points):
    return np.array([point["x"] for point in points])


EARLIER = Earlier(good=({"x": 1.0}, {"x": 0.9}), likeness=0.8, predict=rising)


def test_a_ranking_that_is_borne_out_counts_whatever_its_heights():
    assert bear_out(10 * RISING + 3, RISING, np.full(8, 0.05), seed=1) == 1.0


def test_a_ranking_that_is_the_wrong_way_round_counts_nothing():
    assert bear_out(-RISING, RISING, np.full(8, 0.05), seed=1) == 0.0


def test_noise_that_hides_everything_is_held_against_nobody():
    assert bear_out(-RISING, RISING, np.full(8, 50.0), seed=1) > 0.5


def test_one_contradiction_is_forgiven():
    assert bear_out(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.full(2, 0.01), seed=1) == 1.0


def test_what_is_ranked_alike_is_no_claim():
    assert bear_out(np.full(8, 0.3), RISING, np.full(8, 0.01), seed=1) == 1.0


def test_before_anything_was_measured_the_likeness_alone_counts():
    assert weigh(EARLIER, [], seed=1) == 0.8
    assert weigh(EARLIER, observe([0.0]), seed=1) == 0.8


def test_what_failed_or_is_under_way_says_nothing():
    pending = Observation(point={"x": 1.0}, log_ratio=9.0, variance=1.0, constraints={}, is_pending=True)
    failed = Observation(point={"x": 1.0}, log_ratio=None, variance=1.0, constraints={})

    assert weigh(EARLIER, [*observe(-RISING), pending, failed], seed=1) == 0.0


@pytest.mark.parametrize("optimizer", ["noisy-gp", "tpe"])
def test_the_best_of_a_liar_is_not_even_tried(optimizer):
    default = {"x": 0.0}
    made = make_optimizer(optimizer, default, earlier=[EARLIER])
    true, lies = observe(RISING[:-1] * 0.5), observe(-RISING[:-1])
    beside = [{**each.point, "x": 0.9 * each.point["x"]} for each in true]

    def first(seen):
        seen = [
            Observation(point=point, log_ratio=each.log_ratio, variance=each.variance, constraints={})
            for point, each in zip(beside, seen, strict=True)
        ]
        return made.suggest(DIMENSIONS, seen, seed=1).point

    assert first(true) == {"x": 1.0}
    assert first(lies) != {"x": 1.0}
