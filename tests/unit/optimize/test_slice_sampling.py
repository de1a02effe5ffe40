"""The chain has the distribution that it should have."""

import math
from itertools import islice

import numpy as np
import pytest

from tuner.optimize.slice_sampling import sample_slices


def chain(log_likelihood, middle, spread, count=4000, seed=1):
    middle, spread = np.array(middle), np.array(spread)
    states = sample_slices(log_likelihood, middle, middle, spread, np.random.default_rng(seed))
    return np.array(list(islice(states, count)))


def test_without_any_observation_it_is_the_prior():
    drawn = chain(lambda _: 0.0, [1.0, -2.0], [0.5, 2.0])

    assert drawn.mean(axis=0) == pytest.approx([1.0, -2.0], abs=0.15)
    assert drawn.std(axis=0) == pytest.approx([0.5, 2.0], rel=0.1)


def test_with_a_normal_observation_it_is_the_normal_posterior():
    drawn = chain(lambda state: -0.5 * float((state[0] - 3.0) ** 2), [1.0], [1.0])

    assert drawn.mean() == pytest.approx(2.0, abs=0.1)
    assert drawn.std() == pytest.approx(math.sqrt(0.5), rel=0.1)


def test_what_cannot_be_is_never_drawn():
    drawn = chain(lambda state: 0.0 if state[0] > 0 else -math.inf, [0.5], [1.0], count=500)

    assert drawn.min() > 0
