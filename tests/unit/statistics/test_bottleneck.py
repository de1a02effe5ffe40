from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tests.unit.trials import window
from tuner.statistics.bottleneck import find_bottleneck

SHARES = st.floats(min_value=0.0, max_value=1.0)


def loaded(generator, idle_s=0.4, *, cpus=1.0, cpu_s=0.5):
    counters = {"server_cpus": cpus, "elapsed_s": 1.0, "server_idle_s": idle_s, "server_cpu_s": cpu_s}
    return replace(window(), generator_cpu=generator, counters=counters)


@pytest.mark.parametrize(
    ("generator", "idle_s", "cpus", "is_generator", "server_busy"),
    [
        (0.99, 0.4, 1, True, 0.6),
        (0.96, 0.4, 1, True, 0.6),
        (0.97, 1.5, 3, True, 0.5),
        (0.99, 0.0, 1, True, 1.0),
        # The server is the limit, and the generator as busy as it lets it be.
        (0.96, 0.03, 1, False, 0.97),
        (0.90, 0.03, 1, False, 0.97),
        # Neither is full: something else is the limit, and a better server shows.
        (0.92, 0.4, 1, False, 0.6),
        (0.80, 0.4, 1, False, 0.6),
    ],
)
def test_the_generator_is_the_limit_where_it_is_full_and_the_server_is_not_the_limit_itself(
    generator, idle_s, cpus, is_generator, server_busy
):
    found = find_bottleneck([loaded(generator, idle_s, cpus=cpus)] * 8)

    assert found.is_generator is is_generator
    assert found.server_busy == pytest.approx(server_busy)


def test_a_server_that_its_quota_stops_is_the_limit_though_its_cpus_are_idle():
    windows = [loaded(0.99, 2.4, cpus=4)] * 8
    quota = {"quota_periods": 10.0, "throttled_periods": 10.0}
    stopped = [replace(each, counters={**each.counters, **quota}) for each in windows]

    assert find_bottleneck(windows).is_generator
    assert find_bottleneck(stopped).server_busy == 1.0
    assert find_bottleneck([replace(each, generator_cpu=0.96) for each in windows]).is_generator
    assert not find_bottleneck([replace(each, generator_cpu=0.96) for each in stopped]).is_generator


def test_a_generator_that_grows_busier_with_the_server_is_no_limit_until_it_is_full():
    """A main job's load generator: 88 to 96 % busy beside a server that has nothing left."""
    shares = (0.88, 0.93, 0.91, 0.96, 0.90, 0.94, 0.92, 0.95)

    assert not find_bottleneck([loaded(share, 0.03) for share in shares]).is_generator


@pytest.mark.parametrize("odd", [loaded(0.5), loaded(0.99, 0.0)])
def test_one_odd_window_of_eight_hides_nothing(odd):
    found = find_bottleneck([*[loaded(0.99)] * 7, odd])

    assert found.is_generator


@pytest.mark.parametrize("windows", [[loaded(0.5), loaded(0.99), loaded(0.5)], [loaded(0.99), loaded(0.9)]])
def test_few_windows_have_to_agree(windows):
    assert not find_bottleneck(windows).is_generator


@given(st.lists(SHARES, min_size=1, max_size=30), st.randoms())
def test_the_bound_lies_below_the_median_and_the_order_of_windows_means_nothing(shares, random):
    found = find_bottleneck([loaded(share) for share in shares])
    shuffled = random.sample(shares, len(shares))

    assert found.generator_least <= found.generator_busy
    assert found.server_busy <= found.server_most
    assert find_bottleneck([loaded(share) for share in shuffled]) == found


@given(st.lists(SHARES, min_size=1, max_size=30), SHARES)
def test_a_busier_generator_is_never_less_of_a_limit(shares, floor):
    before = find_bottleneck([loaded(share) for share in shares])
    busier = find_bottleneck([loaded(max(share, floor)) for share in shares])

    assert busier.is_generator or not before.is_generator


@pytest.mark.parametrize("count", range(5, 60))
def test_chance_alone_makes_a_limit_in_at_most_one_of_twenty(count):
    """Were the median at the threshold, each window would lie above it as often as below."""

    def is_limit(above):
        return find_bottleneck([loaded(0.99)] * above + [loaded(0.9)] * (count - above)).is_generator

    needed = next(above for above in range(count + 1) if is_limit(above))

    assert binom.sf(needed - 1, count, 0.5) <= 0.05
    assert binom.sf(needed - 2, count, 0.5) > 0.05


def test_windows_of_an_earlier_tuner_make_no_generator_the_limit():
    assert not find_bottleneck([replace(window(), generator_cpu=1.0)]).is_generator


def test_a_server_whose_cpu_time_cannot_be_read_has_no_cost():
    assert find_bottleneck([loaded(0.97)]).has_cost
    assert not find_bottleneck([loaded(0.97), loaded(0.97, cpu_s=0.0)]).has_cost


def test_nothing_can_be_said_of_no_window():
    with pytest.raises(ValueError, match="Measure the default first"):
        find_bottleneck([])
