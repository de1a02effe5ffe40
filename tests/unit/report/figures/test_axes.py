"""Numbers on the axes of figures are round, and ratios that are far off stand at the edge."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.report.figures.axes import TICKS_AT_MOST, choose_ratio_ticks, choose_ticks
from tuner.report.figures.theme import RatioAxis

UNITS = ("", "bytes", "KiB", "MiB", "ms", "s", "µs", "%", "pages", "requests")


@given(
    ends=st.tuples(st.floats(1e-3, 1e12), st.floats(1e-3, 1e12)),
    unit=st.sampled_from(UNITS),
    is_log=st.booleans(),
)
def test_numbers_of_any_range_have_a_few_ticks_on_it(ends, unit, is_log):
    low, high = min(ends), max(ends)

    ticks = choose_ticks(low, high, unit=unit, is_log=is_log)

    assert 1 <= len(ticks) <= TICKS_AT_MOST
    assert all(low - 1e-6 * high <= tick <= high * (1 + 1e-6) for tick in ticks)
    assert ticks == sorted(set(ticks))


@pytest.mark.parametrize(
    ("low", "high", "unit", "is_log", "expected"),
    [
        (1, 4, "", True, [1, 2, 3, 4]),
        (100, 1_000_000, "", True, [100, 1000, 10_000, 100_000, 1_000_000]),
        (5, 300, "s", False, [50, 100, 150, 200, 250, 300]),
        (7, 7, "", False, [7]),
        (2, 3, "", False, [2, 3]),
        (65536, 4 * 2**20, "bytes", True, [65536, 262144, 1048576, 4194304]),
    ],
)
def test_ticks_are_round(low, high, unit, is_log, expected):
    assert choose_ticks(low, high, unit=unit, is_log=is_log, is_whole=True) == expected


@given(st.lists(st.floats(1e-4, 1e4), max_size=20))
def test_an_axis_of_ratios_has_no_change_on_it_and_labels_it(ratios):
    axis = RatioAxis.fit(ratios)
    shown = axis.describe()

    assert axis.low < 1 < axis.high
    assert "1×" in shown["ticktext"]
    assert all(axis.low <= axis.clamp(ratio) * (1 + 1e-4) for ratio in ratios)
    assert all(axis.clamp(ratio) <= axis.high * (1 + 1e-4) for ratio in ratios)


def test_one_trial_that_stood_still_does_not_squeeze_the_others():
    axis = RatioAxis.fit([0.02, 0.9, 1.4])

    assert axis.low == pytest.approx(0.5, rel=0.1)
    assert axis.clamp(0.02) == pytest.approx(axis.low, abs=1e-4)


@given(st.floats(0.01, 0.99), st.floats(1.01, 100))
def test_ratio_ticks_lie_on_the_axis(low, high):
    ticks = choose_ratio_ticks(low, high)

    assert 1 in ticks
    assert all(low <= tick <= high * (1 + 1e-9) and math.isfinite(tick) for tick in ticks)
    assert all(re.fullmatch(r"\d+(\.\d{1,2})?|0\.00\d+|\de[+-]\d+", f"{tick:g}") for tick in ticks)
