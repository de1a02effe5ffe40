from dataclasses import replace

import pytest

from tests.unit.starts import window
from tuner.statistics.bottleneck import find_bottleneck


def loaded(generator, idle_s, *, cpus=1.0, cpu_s=0.5):
    counters = {"server_cpus": cpus, "elapsed_s": 1.0, "server_idle_s": idle_s, "server_cpu_s": cpu_s}
    return replace(window(), generator_cpu=generator, counters=counters)


@pytest.mark.parametrize(
    ("generator", "idle_s", "cpus", "is_generator", "server_busy"),
    [
        (0.97, 0.4, 1, True, 0.6),
        (0.97, 0.0, 1, True, 1.0),
        (0.80, 0.4, 1, False, 0.6),
        (0.97, 1.5, 3, True, 0.5),
    ],
)
def test_the_generator_is_the_limit_when_it_is_busy_whatever_the_server_does(
    generator, idle_s, cpus, is_generator, server_busy
):
    found = find_bottleneck([loaded(generator, idle_s, cpus=cpus)] * 3)

    assert found.is_generator is is_generator
    assert found.server_busy == pytest.approx(server_busy)


def test_one_odd_window_decides_nothing():
    windows = [loaded(0.5, 0.0), loaded(0.99, 0.5), loaded(0.5, 0.0)]

    assert not find_bottleneck(windows).is_generator


def test_windows_of_an_earlier_tuner_make_no_generator_the_limit():
    assert not find_bottleneck([replace(window(), generator_cpu=1.0)]).is_generator


def test_a_server_whose_cpu_time_cannot_be_read_has_no_cost():
    assert find_bottleneck([loaded(0.97, 0.4)]).has_cost
    assert not find_bottleneck([loaded(0.97, 0.4), loaded(0.97, 0.4, cpu_s=0.0)]).has_cost


def test_nothing_can_be_said_of_no_window():
    with pytest.raises(ValueError, match="Measure the default first"):
        find_bottleneck([])
