import numpy as np
import pytest

from tuner.corpus.pooling import USUAL_SPREAD, pool


def pool_of(effects, deviation=0.02, likenesses=None):
    ones = np.ones(len(effects))
    return pool(
        np.array(effects, dtype=float), deviation**2 * ones, ones if likenesses is None else likenesses
    )


def test_studies_that_agree_make_each_other_surer():
    few, many = pool_of([0.1] * 2), pool_of([0.1] * 20)

    assert few.mean == pytest.approx(many.mean) == pytest.approx(0.1)
    assert many.error < few.error
    assert many.chance_above(0.0) > few.chance_above(0.0) > 0.5


def test_one_study_leaves_open_how_far_hosts_are_apart():
    alone = pool_of([0.1])

    assert alone.spread == pytest.approx(USUAL_SPREAD)
    assert alone.chance_above(0.0) < 0.97


def test_studies_that_contradict_each_other_promise_nothing():
    torn = pool_of([0.4, -0.4] * 5)

    assert torn.spread > 0.3
    assert 0.4 < torn.chance_above(0.0) < 0.6


def test_what_is_less_alike_counts_less():
    near_first = pool_of([0.2, 0.0], deviation=0.3, likenesses=np.array([1.0, 0.1]))

    assert near_first.mean > 0.15


def test_the_interval_holds_the_mean():
    pooled = pool_of([0.1, 0.2, 0.05])

    assert pooled.interval[0] < pooled.mean < pooled.interval[1]
