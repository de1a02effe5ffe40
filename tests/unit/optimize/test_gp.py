import math
import warnings

import numpy as np
import pytest
from scipy.optimize import check_grad

from tuner.optimize.encoding import Columns
from tuner.optimize.gp import GaussianProcess, ObservationNoise, _Evidence, _factorise

RNG = np.random.default_rng(7)
COLUMNS = Columns(
    np.array([False, False, True, True, True]),
    np.array([False, True, False, True, False]),
    np.array([9, 9, 3, 3, 2]),
)


def points(count, rng=RNG):
    """Draw points with two numbers and three choices, one of each sometimes off."""
    choices = rng.integers((3, 3, 2), size=(count, 3))
    drawn = np.column_stack([rng.random((count, 2)), choices])
    off = drawn[:, 2] == 0
    drawn[off, 1] = drawn[off, 3] = np.nan
    return drawn


def test_the_gradient_is_that_of_the_evidence():
    at = np.repeat(points(12), 2, axis=0)
    walk = 0.1 * np.minimum.outer(np.arange(24.0), np.arange(24.0))
    noise = ObservationNoise(own=RNG.uniform(0.01, 0.3, 24), shared=walk, degrees=6)
    evidence = _Evidence(COLUMNS, at, RNG.standard_normal(24), noise)
    for _ in range(5):
        theta = RNG.normal(0, 1, 9)
        scale = np.linalg.norm(evidence(theta)[1])
        assert check_grad(lambda t: evidence(t)[0], lambda t: evidence(t)[1], theta) < 1e-4 * max(scale, 1)


def test_covariances_are_positive_definite_whatever_is_off():
    at = points(60)
    for _ in range(5):
        evidence = _Evidence(COLUMNS, at, np.zeros(60), ObservationNoise(own=np.ones(60)))
        kernel, *_ = evidence.unpack(evidence.maximise())
        assert np.linalg.eigvalsh(kernel(at, at)).min() > -1e-9


def test_without_noise_the_process_goes_through_what_was_observed():
    at = RNG.random((15, 2))
    columns = Columns(np.zeros(2, dtype=bool), np.zeros(2, dtype=bool), np.full(2, 9))
    values = 3 + np.sin(3 * at[:, 0]) + at[:, 1]
    process = GaussianProcess.fit(columns, at, values, ObservationNoise(own=np.full(15, 1e-10)))
    means, variances = process.predict(at)

    assert means == pytest.approx(values, abs=0.02)
    assert np.all(np.sqrt(variances) < 0.1)


def test_a_singular_kernel_still_gives_a_factor_and_says_so_once(recwarn):
    """Numbers so large that no jitter makes them a covariance."""
    bad = np.array([[1.0, 2.0], [2.0, -3.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        factors = [_factorise(bad, np.zeros(2)) for _ in range(3)]

    assert all(np.isfinite(factor).all() for factor in factors)
    assert [str(each.message) for each in recwarn] == [
        "the covariance matrix of the model is singular, so its predictions are rough"
    ]


def test_a_noisy_observation_is_believed_less_than_a_sure_one():
    at = np.array([[0.2], [0.8]])
    columns = Columns(np.array([False]), np.array([False]), np.array([9]))
    process = GaussianProcess.fit(
        columns, at, np.array([1.0, -1.0]), ObservationNoise(own=np.array([1e-6, 1.0]))
    )
    means, variances = process.predict(at)

    assert abs(means[0] - 1) < abs(means[1] + 1)
    assert variances[0] < variances[1]


def test_the_prediction_is_that_of_the_textbook():
    """Rasmussen & Williams, equations 2.25 and 2.26, solved without a factor."""
    at, new = points(10), points(5)
    values, noise = RNG.standard_normal(10), RNG.uniform(0.1, 0.5, 10)
    process = GaussianProcess.fit(COLUMNS, at, values, ObservationNoise(own=noise))
    kernel, scale = process.kernel, process._scale
    nugget = process.nugget
    inverse = np.linalg.inv(kernel(at, at) + np.diag(noise / scale.spread**2 + nugget + 1e-8))
    across = kernel(new, at)
    means, variances = process.predict(new)

    assert means == pytest.approx(scale.middle + across @ inverse @ (values - scale.middle))
    expected = kernel.variance - np.einsum("ij,jk,ik->i", across, inverse, across)
    assert variances == pytest.approx(expected * scale.spread**2)


def test_draws_have_the_mean_and_the_spread_of_the_prediction():
    at, new = points(10), points(4)
    process = GaussianProcess.fit(
        COLUMNS, at, RNG.standard_normal(10), ObservationNoise(own=np.full(10, 0.1))
    )
    drawn = process.draw(new, RNG.standard_normal((20_000, 4)))
    means, variances = process.predict(new)

    assert drawn.mean(axis=1) == pytest.approx(means, abs=0.03)
    assert drawn.var(axis=1) == pytest.approx(variances, rel=0.05)


def test_values_that_are_all_alike_give_a_flat_process():
    process = GaussianProcess.fit(COLUMNS, points(8), np.full(8, 2.5), ObservationNoise(own=np.full(8, 0.01)))
    means, variances = process.predict(points(3))

    assert means == pytest.approx([2.5] * 3, abs=0.01)
    assert np.isfinite(variances).all()
    assert math.isfinite(process.kernel.amplitude)


def test_choices_are_one_apart_and_off_is_one_from_everything():
    at = np.array([[0.0, 0.0, 1, 0, 0], [1.0, 1.0, 2, 2, 1], [0.0, np.nan, 0, np.nan, 0]])
    parts = np.split(COLUMNS.embed(at), np.cumsum(COLUMNS.widths)[:-1], axis=1)
    distances = [np.abs(part[:, None] - part).sum(axis=2) for part in parts]

    assert distances[0][0, 1] == pytest.approx(1.0)
    assert distances[1][0, 1] == pytest.approx(1.0)
    assert distances[1][0, 2] == distances[1][1, 2] == pytest.approx(1.0)
    assert [each[0, 1] for each in distances[2:]] == pytest.approx([1.0] * 3)
    assert distances[3][0, 2] == distances[3][1, 2] == pytest.approx(1.0)


def test_a_conditional_number_is_as_far_from_another_as_they_differ():
    at = np.array([[0.5, number, 1, 0, 0] for number in (0.1, 0.35, 0.8)])
    embedded = COLUMNS.embed(at)

    assert np.abs(embedded[0] - embedded[1]).sum() == pytest.approx(0.25)
    assert np.abs(embedded[1] - embedded[2]).sum() == pytest.approx(0.45)


def test_what_is_not_noise_is_shared_by_the_neighbours():
    """A step that is seen clearly is roughness of the function; only with unknown noise it may be noise."""
    at = np.linspace(0, 1, 24)[:, None]
    columns = Columns(np.array([False]), np.array([False]), np.array([9]))
    values = np.where(np.arange(24) % 6 < 3, 1.0, -1.0)
    known = GaussianProcess.fit(
        columns, at, values, ObservationNoise(own=np.full(24, 1e-4)), is_noise_known=True
    )
    means, _ = known.predict(at)

    assert known.nugget <= math.exp(-5) * (1 + 1e-9)
    assert means == pytest.approx(values, abs=0.2)
