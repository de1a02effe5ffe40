import pytest

from tuner.ports import Latency
from tuner.records.latency import Quantile, merge, quantile


def window(histogram, **changed):
    asked = {
        "quantiles_ms": {0.5: 1.0, 0.99: 9.0},
        "samples": sum(histogram.values()),
        "histogram": histogram,
        "mean_ms": 2.0,
        "max_ms": max(histogram, default=4.0),
    }
    return Latency(**(asked | changed))


def test_merged_quantiles_come_from_all_requests_not_from_a_mean_of_quantiles():
    # 99 % of the quick window and the whole slow one: averaging their p50 would say 50.5.
    merged = merge([window({1.0: 9_900, 2.0: 100}), window({100.0: 100})])

    assert merged.quantiles_ms[0.5] == 1.0
    assert merged.quantiles_ms[0.99] == 2.0
    assert merged.histogram == {1.0: 9_900, 2.0: 100, 100.0: 100}
    assert (merged.samples, merged.max_ms) == (10_100, 100.0)


def test_the_mean_is_weighted_by_requests():
    assert merge([window({1.0: 300}, mean_ms=1.0), window({5.0: 100}, mean_ms=5.0)]).mean_ms == 2.0
    assert merge([window({1.0: 300}, mean_ms=None), window({5.0: 100})]).mean_ms is None


def test_without_histograms_only_a_single_window_has_quantiles():
    bare = window({}, samples=20_000)

    assert merge([bare]) == bare
    assert merge([bare, bare]).quantiles_ms == {}
    assert merge([bare, bare]).samples == 40_000


def test_one_window_without_a_histogram_leaves_the_quantiles_of_all_unknown():
    merged = merge([window({1.0: 100}), window({}, samples=100)])

    assert merged.quantiles_ms == {}
    assert merged.histogram == {}


def test_windows_with_synthetic_samples_are_marked_after_merging_too():
    assert merge([window({1.0: 1}, corrected=True), window({1.0: 1})]).corrected


def test_merging_nothing_gives_nothing():
    assert merge([]) == Latency(quantiles_ms={}, samples=0)


@pytest.mark.parametrize(
    ("q", "requests", "known"),
    [
        (0.99, 9_999, False),
        (0.99, 10_000, True),
        (0.999, 99_999, False),
        (0.999, 100_000, True),
        (0.5, 200, True),
    ],
)
def test_a_quantile_takes_a_hundred_requests_beyond_it(q, requests, known):
    assert (quantile(window({1.0: requests}), q) is not None) == known


def test_the_interval_of_a_quantile_is_one_of_ranks():
    each = window({float(n): 1 for n in range(1, 10_001)})

    # Ranks 9900 ± 1.96·√(10 000 · 0.99 · 0.01) = 9900 ± 19.5.
    assert quantile(each, 0.99) == Quantile(value_ms=9900.0, low_ms=9880.0, high_ms=9920.0)


def test_without_raw_data_a_quantile_has_no_interval():
    assert quantile(window({}, samples=50_000), 0.99) == Quantile(value_ms=9.0, low_ms=None, high_ms=None)


def test_a_quantile_that_was_not_recorded_is_unknown():
    assert quantile(window({}, samples=500_000), 0.95) is None
