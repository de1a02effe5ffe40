"""How long is measured, and what many connections change of that."""

import pytest

from tuner.study.presets import MANY_CONNECTIONS, MANY_WINDOW_S, PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_many_connections_have_the_time_to_be_tried_again(name):
    plan = PRESETS[name].under(MANY_CONNECTIONS)

    assert plan.window_s >= MANY_WINDOW_S
    assert plan.slice_s >= MANY_WINDOW_S
    assert plan.warmup_max_s >= plan.warmup_s >= plan.slice_s
    assert plan.minutes == PRESETS[name].minutes


@pytest.mark.parametrize("name", PRESETS)
def test_few_connections_change_nothing(name):
    assert PRESETS[name].under(MANY_CONNECTIONS - 1) is PRESETS[name]
