"""The response of arms in blocks: it is what was put in, with intervals that hold it."""

import numpy as np
import pytest

from tuner.statistics.response_curve import Cell, ResponseCurve

PLACES = list(np.linspace(0, 1, 8))
PEAK = 0.3 * np.exp(-0.5 * ((np.array(PLACES) - 0.6) / 0.2) ** 2)


def cells_of(truth, *, blocks=6, noise=0.04, drift=0.2, seed=1):
    rng = np.random.default_rng(seed)
    return [
        Cell(block=block, arm=arm, log=drift * block + value + noise * rng.normal())
        for block in range(blocks)
        for arm, value in enumerate(truth)
    ]


def test_the_drift_of_the_host_cancels_out():
    steady = ResponseCurve.fit(cells_of(PEAK, drift=0.0), PLACES).against(0)
    drifting = ResponseCurve.fit(cells_of(PEAK, drift=0.7), PLACES).against(0)

    assert [each.ratio for each in drifting] == pytest.approx([each.ratio for each in steady], abs=0.003)


def test_the_baseline_has_the_ratio_one_without_doubt():
    baseline = ResponseCurve.fit(cells_of(PEAK), PLACES).against(3)[3]

    assert (baseline.low, baseline.ratio, baseline.high) == (1, 1, 1)


@pytest.mark.parametrize(
    "truth", [PEAK, np.zeros(8), np.where(np.array(PLACES) > 0.5, 0.25, 0.0)], ids=["peak", "flat", "step"]
)
def test_intervals_hold_the_truth_as_often_as_they_say(truth):
    curves = [ResponseCurve.fit(cells_of(truth, blocks=4, seed=seed), PLACES) for seed in range(12)]
    held = [
        each.low <= np.exp(value - truth[0]) <= each.high
        for curve in curves
        for each, value in zip(curve.against(0)[1:], truth[1:], strict=True)
    ]

    assert 0.88 <= np.mean(held) <= 1


def test_a_single_stalled_trial_does_not_move_the_curve():
    cells = cells_of(PEAK, noise=0.01)
    stalled = [Cell(block=cells[5].block, arm=5, log=cells[5].log - 1.0), *cells[:5], *cells[6:]]

    sound, hit = (ResponseCurve.fit(each, PLACES).against(0)[5].ratio for each in (cells, stalled))

    assert hit == pytest.approx(sound, abs=0.02)


def test_the_best_of_many_equal_arms_is_not_taken_for_better():
    response = ResponseCurve.fit(cells_of(np.zeros(12), blocks=2, noise=0.1), [None] * 12)
    raw = [np.mean([cell.log for cell in cells_of(np.zeros(12), blocks=2, noise=0.1) if cell.arm == arm])
           for arm in range(12)]  # fmt: skip

    spread = response.means - response.means.mean()

    assert max(spread) < 0.5 * (max(raw) - np.mean(raw))


def test_neighbours_on_a_scale_support_each_other():
    few = [cell for cell in cells_of(PEAK, noise=0.05) if cell.arm != 4 or cell.block == 0]

    apart = ResponseCurve.fit(few, [None] * 8).against(0)[4]
    beside = ResponseCurve.fit(few, PLACES).against(0)[4]

    assert beside.half_width < apart.half_width


def test_a_value_beside_a_flat_range_is_not_drawn_into_it():
    truth, places = np.array([0.0, *[0.1] * 7]), [None, *np.linspace(0, 1, 7)]
    curves = [ResponseCurve.fit(cells_of(truth, noise=0.05, seed=seed), places) for seed in range(12)]
    found = [each.against(0)[4] for each in curves]

    assert np.mean([np.log(each.ratio) for each in found]) == pytest.approx(0.1, abs=0.015)
    assert np.mean([each.low <= np.exp(0.1) <= each.high for each in found]) >= 0.75


def test_a_block_that_lacks_arms_counts_for_those_it_has():
    whole = cells_of(PEAK, noise=0.02)
    part = [cell for cell in whole if cell.block < 4 or cell.arm in {0, 5}]

    assert ResponseCurve.fit(part, PLACES).against(0)[5].ratio == pytest.approx(
        np.exp(PEAK[5] - PEAK[0]), abs=0.04
    )


def test_the_chance_of_being_as_good_is_asked_among_those_that_are_named():
    response = ResponseCurve.fit(cells_of(PEAK, noise=0.01), PLACES)

    among_all = response.chances_within(0.03, range(8))
    without_best = response.chances_within(0.03, [0, 1, 7])

    assert max(among_all, key=among_all.__getitem__) == int(np.argmax(PEAK))
    assert set(without_best) == {0, 1, 7}
    assert max(without_best.values()) > 0.99


def test_the_same_cells_give_the_same_numbers():
    first, again = (ResponseCurve.fit(cells_of(PEAK), PLACES, seed=3).against(0) for _ in range(2))

    assert first == again


def test_two_arms_and_two_blocks_do():
    found = ResponseCurve.fit(cells_of([0.0, 0.1], blocks=2), [None, None]).against(0)[1]

    assert found.low < np.exp(0.1) < found.high
