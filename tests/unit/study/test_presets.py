"""How long is measured, and what many connections change of that."""

import pytest

from tuner.study.presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(("connections", "least_s"), [(1000, 2.0), (4999, 2.0), (5000, 3.0), (20_000, 3.0)])
def test_many_connections_have_the_time_to_be_opened_and_tried_again(name, connections, least_s):
    plan = PRESETS[name].under(connections)

    assert plan.window_s == max(PRESETS[name].window_s, least_s)
    assert plan.slice_s == least_s
    assert plan.warmup_max_s >= plan.warmup_s >= plan.slice_s
    assert plan.minutes == PRESETS[name].minutes


@pytest.mark.parametrize("name", PRESETS)
def test_few_connections_change_nothing(name):
    assert PRESETS[name].under(999) is PRESETS[name]


@pytest.mark.parametrize(("rate_rps", "window_s"), [(5000, 1.0), (1000, 1.0), (400, 3.0), (10, 4.0)])
def test_few_requests_per_second_need_longer_windows_for_a_p99(rate_rps, window_s):
    assert PRESETS["quick"].for_tail(rate_rps).window_s == window_s
    assert PRESETS["standard"].for_tail(rate_rps).window_s == max(5.0, {10: 60.0}.get(rate_rps, 0.0))
