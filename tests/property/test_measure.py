import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.more import examples
from tests.unit.statistics.made_trials import BASE, make_trial, make_window
from tuner.ports import Latency
from tuner.records import Role
from tuner.records.latency import merge, quantile
from tuner.statistics.baseline_level import BaselineLevel, Speedup, combine, speedups
from tuner.statistics.confirmation.paired_gain import judge_pairs, p_sign_flip, pair_order
from tuner.statistics.noise import Noise, estimate_noise
from tuner.statistics.pruning import should_prune

logs = st.floats(-3, 3)
small_logs = st.floats(-0.3, 0.3)
seeds = st.integers(0, 2**16)
noises = st.builds(
    replace,
    st.just(Noise.PRIOR),
    sigma_window=st.floats(0.001, 0.3),
    sigma_trial=st.floats(0.001, 0.3),
    drift_per_s=st.floats(0, 1e-3),
)
found = st.builds(Speedup, log_ratio=logs, variance=st.floats(1e-6, 1.0))


@st.composite
def baselines(draw, least=1):
    """Baseline trials at irregular times with any levels."""
    gaps = draw(st.lists(st.floats(1, 3600), min_size=least, max_size=12))
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    return [
        make_trial(draw(st.lists(small_logs, min_size=1, max_size=3)), number=n, at_s=time_s)
        for n, time_s in enumerate(times)
    ]


@given(baselines(), noises, st.floats(-1e4, 1e5))
def test_the_level_is_finite_with_positive_variance_at_any_time(trials, noise, time_s):
    level, variance = BaselineLevel.fit(trials, noise).at(time_s)

    assert math.isfinite(level)
    assert 0 < variance < math.inf


@given(baselines(least=2), noises, st.floats(-0.5, 0.5))
def test_a_host_that_is_faster_as_a_whole_has_the_same_speedups(trials, noise, shift):
    def shifted(trial, by):
        moved = tuple(make_window(w.log_goodput - BASE + by, started_s=w.started_s) for w in trial.windows)
        return replace(trial, windows=moved)

    candidate = make_trial([0.2, 0.1], number=99, role=Role.SEARCH, at_s=trials[1].started_s + 0.25)
    here = speedups([*trials, candidate], noise)
    there = speedups([shifted(trial, shift) for trial in (*trials, candidate)], noise)

    for number, speedup in here.items():
        assert there[number].log_ratio == pytest.approx(speedup.log_ratio, abs=1e-6)
        assert there[number].variance == pytest.approx(speedup.variance, rel=1e-4)


@given(baselines(), st.lists(st.lists(logs, min_size=1, max_size=4), max_size=8))
def test_noise_is_positive_and_finite_whatever_was_measured(trials, others):
    search = [make_trial(each, number=100 + n, role=Role.SEARCH) for n, each in enumerate(others)]
    noise = estimate_noise([*trials, *search])

    assert 0 < noise.sigma_window < math.inf
    assert 0 < noise.sigma_trial < math.inf
    assert 0 <= noise.drift_per_s < math.inf


@given(st.lists(found, min_size=1, max_size=6))
def test_repeats_combine_to_something_between_them(repeats):
    together = combine(repeats)
    ratios = [each.log_ratio for each in repeats]

    assert min(ratios) - 1e-9 <= together.log_ratio <= max(ratios) + 1e-9
    assert together.variance >= 1 / sum(1 / each.variance for each in repeats) * (1 - 1e-9)


@given(st.lists(st.tuples(logs, logs), min_size=2, max_size=15))
def test_a_gain_is_ordered_and_turning_the_pairs_round_inverts_it(pairs):
    gain = judge_pairs(pairs)
    turned = judge_pairs([(winner, default) for default, winner in pairs])

    assert gain.low <= gain.ratio <= gain.high
    assert turned.ratio == pytest.approx(1 / gain.ratio)
    assert turned.low == pytest.approx(1 / gain.high)
    assert turned.hodges_lehmann == pytest.approx(1 / gain.hodges_lehmann)
    assert turned.p_sign_flip == pytest.approx(gain.p_sign_flip)
    assert not (gain.verdict == "improved" == turned.verdict)


@given(st.lists(st.tuples(logs, logs), min_size=2, max_size=15), st.floats(0.001, 0.04))
def test_a_stricter_error_rate_never_claims_more(pairs, alpha):
    if judge_pairs(pairs, total_alpha=alpha).verdict == "improved":
        assert judge_pairs(pairs).verdict == "improved"


@given(st.lists(small_logs, min_size=1, max_size=12))
def test_a_sign_flip_p_is_a_share_of_all_assignments(differences):
    p = p_sign_flip(differences)

    assert 2 / 2 ** len(differences) <= p + 1e-12
    assert p <= 1
    assert p * 2 ** len(differences) == pytest.approx(round(p * 2 ** len(differences)))


@given(st.integers(0, 30), seeds)
def test_any_even_number_of_first_pairs_is_balanced(pairs, seed):
    order = pair_order(pairs, Random(seed))  # noqa: S311 - no secret

    assert len(order) == pairs
    for count in range(0, pairs + 1, 2):
        assert sum(first == "default" for first, _ in order[:count]) == count // 2


@given(st.lists(small_logs, max_size=6), small_logs, found, noises, st.integers(2, 8))
def test_a_better_window_never_turns_going_on_into_pruning(values, level, incumbent, noise, most):
    asked = {
        "level": level,
        "level_variance": 0.001,
        "incumbent": incumbent,
        "noise": noise,
        "max_windows": most,
    }
    before = should_prune([make_window(value) for value in values], **asked)
    better = should_prune([make_window(value + 0.1) for value in values], **asked)

    assert better.z <= before.z
    assert before.prune or not better.prune


histograms = st.dictionaries(st.floats(0.01, 1e4), st.integers(1, 5_000), min_size=1, max_size=8)


@settings(max_examples=examples(60))
@given(st.lists(histograms, min_size=1, max_size=4), st.sampled_from([0.5, 0.9, 0.99]))
def test_a_merged_quantile_is_that_of_all_requests_together(several, q):
    merged = merge([Latency(quantiles_ms={q: 0.0}, samples=sum(h.values()), histogram=h) for h in several])
    seen = quantile(merged, q)
    every = sorted(value for h in several for value, count in h.items() for _ in range(count))

    if seen is None:
        assert len(every) * (1 - q) < 100
        return
    assert seen.value_ms == every[math.ceil(round(len(every) * q, 6)) - 1]
    assert seen.low_ms is not None
    assert seen.high_ms is not None
    assert seen.low_ms <= seen.value_ms <= seen.high_ms
