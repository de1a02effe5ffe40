from random import Random

import pytest

from tests.unit.statistics.made_trials import make_window
from tuner.statistics.steady import declines, is_steady


def test_goodput_that_stands_still_is_steady_whatever_came_before():
    assert is_steady([10, 60, 90, 100, 101, 99, 100, 100, 101])


def test_goodput_that_still_rises_is_not_steady():
    assert not is_steady([80, 85, 90, 95, 100, 105])


def test_one_odd_bin_does_not_matter():
    assert is_steady([100, 100, 20, 100, 100, 100])


def test_five_bins_are_too_few_to_say():
    assert not is_steady([100] * 5)


def test_a_server_that_gives_nothing_is_not_steady():
    assert not is_steady([0.0] * 6)


def test_on_a_noisy_host_noise_is_not_taken_for_warming_up():
    rng = Random(1)  # noqa: S311 - no secret
    rows = [[100 * (1 + rng.gauss(0, 0.15)) for _ in range(6)] for _ in range(300)]

    assert sum(map(is_steady, rows)) < 90
    assert sum(is_steady(row, spread=0.15) for row in rows) > 270


def test_a_fall_from_window_to_window_is_a_decline():
    assert declines([make_window(log) for log in (0.0, -0.04, -0.09)])


@pytest.mark.parametrize("logs", [(0.0, -0.01, -0.02), (0.0, -0.2, -0.1), (0.0, -0.2), ()])
def test_small_or_broken_or_short_falls_are_no_decline(logs):
    assert not declines([make_window(log) for log in logs])


def test_a_fall_within_the_noise_is_no_decline():
    windows = [make_window(log) for log in (0.0, -0.1, -0.2)]

    assert declines(windows)
    assert not declines(windows, spread=0.1)


def test_spoiled_windows_do_not_make_a_decline():
    windows = [make_window(0.0), make_window(-0.1), make_window(-0.2, valid=False)]

    assert not declines(windows)
