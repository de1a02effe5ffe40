"""What a window is worth by either metric."""

import math
from dataclasses import replace

import pytest

from tests.unit.trials import trial, window
from tuner.records import SERVER_MEMORY, Metric, Window, measured_by
from tuner.records.as_json import window_from_json, window_to_json


def loaded(*, correct=1000, cpu_s=0.5, interrupts_s=0.0, generator=1.0, cpus=1.0) -> Window:
    counters = {"server_cpu_s": cpu_s, "server_interrupts_s": interrupts_s, "server_cpus": cpus}
    of_load = replace(window(correct), generator_cpu=generator, counters=counters)
    return replace(of_load, metric=Metric.PER_CPU)


def per_cpu(each):
    return math.exp(each.log_value)


def test_under_a_busy_generator_it_is_requests_per_cpu_second_interrupts_included():
    assert per_cpu(loaded()) == pytest.approx(2000)
    assert per_cpu(loaded(interrupts_s=0.3)) == pytest.approx(1250)


@pytest.mark.parametrize("cpus", [1.0, 3.0])
def test_a_server_that_sleeps_while_the_generator_waits_is_charged_for_it(cpus):
    values = [per_cpu(loaded(generator=busy, cpus=cpus)) for busy in (1.0, 0.9, 0.8, 0.5, 0.0)]

    assert values == sorted(values, reverse=True)
    assert values[0] == values[1] == pytest.approx(2000)
    assert values[2] == pytest.approx(1000 / (0.5 + 0.1 * cpus))
    # Never more than all that it could have used.
    assert values[-1] >= 1000 / cpus - 1e-6


def test_a_window_without_a_response_or_without_a_cost_is_worth_next_to_nothing():
    assert per_cpu(loaded(correct=0)) == pytest.approx(0.01)
    assert per_cpu(loaded(cpu_s=0.0)) == pytest.approx(0.01)


def test_goodput_is_what_it_was():
    each = replace(loaded(), metric=Metric.GOODPUT)

    assert each.log_value == each.log_goodput == loaded().log_goodput


def test_the_metric_is_the_studys_and_not_kept_with_the_window():
    kept = window_to_json(loaded())

    assert "metric" not in kept
    assert window_from_json(kept).metric is Metric.GOODPUT
    assert window_from_json(kept) == loaded()


def test_a_trial_is_worth_what_its_windows_are():
    made = replace(trial(1), windows=(loaded(), loaded(cpu_s=0.25)))

    assert made.log_value == pytest.approx((math.log(2000) + math.log(4000)) / 2)
    assert measured_by(made, Metric.GOODPUT).log_value == made.log_goodput


def test_at_a_rate_a_shorter_p99_is_worth_more():
    slow, quick = (replace(window(1000, p99_ms=each), metric=Metric.LATENCY_P99) for each in (8.0, 4.0))

    assert math.exp(quick.log_value - slow.log_value) == pytest.approx(2.0)
    assert math.exp(replace(slow, latency=None).log_value) == pytest.approx(0.01)


def test_at_a_rate_a_smaller_server_is_worth_more():
    large, small = (
        replace(window(1000), metric=Metric.MEMORY, counters={SERVER_MEMORY: mib * 2**20})
        for mib in (512, 128)
    )

    assert math.exp(small.log_value - large.log_value) == pytest.approx(4.0)
    assert small.memory_mib == 128
    assert replace(small, counters={}).memory_mib is None


def test_at_a_rate_a_server_is_not_charged_for_what_it_leaves_idle():
    waiting = replace(loaded(generator=0.1), metric=Metric.CPU)

    assert per_cpu(waiting) == pytest.approx(2000)
