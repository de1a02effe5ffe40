"""Labels beside the axes of figures: round, human, and never over one another."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.report.figures.axes import (
    GAP_PX,
    TICKS_AT_MOST,
    Axis,
    Label,
    arrange_labels,
    choose_ratio_ticks,
    measure_text,
    number_labels,
    ratio_axis,
    ratio_labels,
)

UNITS = ("", "bytes", "KiB", "MiB", "ms", "s", "µs", "%", "pages", "requests")


def extent(label: Label, width_px: float) -> tuple[float, float]:
    """Return where a label begins and ends, in pixels."""
    at, size = width_px * label.at / 100, measure_text(label.text)
    low = at - {"start": 0.0, "middle": size / 2, "end": size}[label.anchor]
    return low, low + size


def overlapping(labels: tuple[Label, ...], width_px: float) -> list[tuple[str, str]]:
    placed = [(label, *extent(label, width_px)) for label in labels]
    return [
        (one.text, other.text)
        for index, (one, low, high) in enumerate(placed)
        for other, first, last in placed[index + 1 :]
        if one.row == other.row and low < last and first < high
    ]


texts = st.text(st.characters(categories=["L", "N", "P", "Cc"]), min_size=1, max_size=60)


@given(
    wanted=st.lists(st.tuples(st.floats(0, 1), texts), max_size=12),
    width_px=st.floats(100, 1000),
    rows=st.integers(1, 4),
)
def test_no_two_labels_of_a_row_overlap_and_the_first_is_always_there(wanted, width_px, rows):
    labels = arrange_labels(wanted, width_px=width_px, rows=rows)

    assert overlapping(labels, width_px) == []
    assert not any("\n" in label.text for label in labels)
    assert bool(labels) == bool(wanted)
    for label in labels:
        low, high = extent(label, width_px)
        assert low >= -GAP_PX - 1 or high <= width_px + GAP_PX + 1


@given(
    ends=st.tuples(st.floats(1e-3, 1e12), st.floats(1e-3, 1e12)),
    unit=st.sampled_from(UNITS),
    is_log=st.booleans(),
    width_px=st.floats(150, 900),
)
def test_numbers_of_any_range_are_labelled_without_an_overlap(ends, unit, is_log, width_px):
    axis = Axis(low=min(ends), high=max(ends), is_log=is_log)

    labels = number_labels(axis, unit=unit, width_px=width_px)

    assert 1 <= len(labels) <= TICKS_AT_MOST
    assert overlapping(labels, width_px) == []


@given(st.lists(st.floats(1e-4, 1e4), max_size=20), st.floats(100, 600))
def test_an_axis_of_ratios_has_no_change_on_it_and_labels_it(ratios, length_px):
    axis = ratio_axis(ratios)

    labels = ratio_labels(axis, length_px=length_px)

    assert axis.low < 1 < axis.high
    assert "1×" in {label.text for label in labels}
    assert overlapping(labels, length_px) == []


@pytest.mark.parametrize(
    ("width_px", "expected"),
    [(230, ["unlimited", "133 KiB", "2.2 MiB"]), (300, ["unlimited", "256 KiB", "1 MiB"])],
)
def test_a_special_value_beside_the_range_keeps_its_label(width_px, expected):
    axis = Axis(low=133 * 1024, high=2306881, is_log=True)

    labels = number_labels(
        axis, unit="bytes", width_px=width_px, taken=[(0.05, "unlimited")],
        place=lambda number: 0.25 + 0.7 * axis.share(number),
    )  # fmt: skip

    assert [label.text for label in labels] == expected
    assert overlapping(labels, width_px) == []


@pytest.mark.parametrize(
    ("axis", "unit", "whole", "expected"),
    [
        (Axis(low=1, high=4, is_log=True), "", True, ["1", "2", "3", "4"]),
        (Axis(low=100, high=1_000_000, is_log=True), "", True, ["100", "1000", "10k", "100k", "1M"]),
        (Axis(low=5, high=300), "s", True, ["50 s", "100 s", "150 s", "200 s", "250 s", "300 s"]),
        (Axis(low=7, high=7), "", True, ["7"]),
        (Axis(low=2, high=3), "", True, ["2", "3"]),
    ],
)
def test_labels_are_round(axis, unit, whole, expected):
    labels = number_labels(axis, unit=unit, width_px=400, is_whole=whole)

    assert [label.text for label in labels] == expected


def test_labels_are_read_from_left_to_right_and_stay_within_the_figure():
    labels = arrange_labels([(1.0, "worker_processes"), (0.0, "aio"), (0.5, "sendfile")], width_px=300)

    assert [(label.text, label.anchor) for label in labels] == [
        ("aio", "start"), ("sendfile", "middle"), ("worker_processes", "end"),
    ]  # fmt: skip


def test_one_trial_that_stood_still_does_not_squeeze_the_others():
    axis = ratio_axis([0.02, 0.9, 1.4])

    assert axis.low == pytest.approx(0.5, rel=0.1)
    assert axis.share(0.02) == 0


@given(st.floats(0.01, 0.99), st.floats(1.01, 100))
def test_ticks_lie_on_the_axis(low, high):
    ticks = choose_ratio_ticks(low, high)

    assert 1 in ticks
    assert all(low <= tick <= high * (1 + 1e-9) and math.isfinite(tick) for tick in ticks)
    assert all(re.fullmatch(r"\d+(\.\d{1,2})?|0\.00\d+|\de[+-]\d+", f"{tick:g}") for tick in ticks)
