import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator

from tuner.statistics.failure_rate import EDGES, Counts, FailureRate, FailureRates

Draw = Callable[[Generator, float, int], list[Counts]]
"""Counts of so many trials of a configuration with this rate."""
REQUESTS = 8000
CLEAN = Counts(requests=REQUESTS)
FAILED = Counts()
BAD = Counts(failed=REQUESTS // 2, requests=REQUESTS)


def rate_of(*trials: Counts) -> FailureRate:
    """Return what is known of a configuration that is alone in its study."""
    return FailureRates({"it": trials}).of("it")


def beta_binomial(correlation: float) -> Draw:
    """Draw a rate for each trial, around the configuration's."""
    size = (1 - correlation) / correlation

    def draw(rng: Generator, rate: float, trials: int) -> list[Counts]:
        failed = rng.binomial(REQUESTS, rng.beta(rate * size, (1 - rate) * size, trials))
        return [Counts(failed=int(each), requests=REQUESTS) for each in failed]

    return draw


def bursts(length: int) -> Draw:
    """Let requests fail so many at a time, as when connections are reset together."""

    def draw(rng: Generator, rate: float, trials: int) -> list[Counts]:
        failed = length * rng.poisson(REQUESTS * rate / length, trials)
        return [Counts(failed=min(int(each), REQUESTS), requests=REQUESTS) for each in failed]

    return draw


def spread(relative: float) -> Draw:
    """Let the rates of trials differ by so much of the configuration's, whatever that is."""

    def draw(rng: Generator, rate: float, trials: int) -> list[Counts]:
        rates = np.minimum(rate * rng.gamma(relative**-2, relative**2, trials), 0.9)
        return [Counts(failed=int(each), requests=REQUESTS) for each in rng.binomial(REQUESTS, rates)]

    return draw


@pytest.mark.parametrize("trials", [3, 10])
@pytest.mark.parametrize(
    "draw", [beta_binomial(3e-4), beta_binomial(3e-3), bursts(10), bursts(64), spread(0.5)]
)
def test_intervals_hold_the_rate_however_trials_differ(draw, trials):
    """In six studies of ten configurations; by simulation at length in 75 to 96 % of such ones."""
    rng = np.random.default_rng(7)
    held = []
    for _ in range(6):
        true = np.exp(rng.uniform(math.log(3e-4), math.log(2e-2), 10))
        rates = FailureRates({key: draw(rng, rate, trials) for key, rate in enumerate(true)})
        found = [rates.of(key).interval() for key in range(10)]
        held += [each.low <= rate <= each.high for each, rate in zip(found, true, strict=True)]

    assert np.mean(held) >= 0.75


def test_probabilities_of_a_bound_are_what_they_say():
    """Of the configurations for which a bound holds with 10 to 50 % (50 to 90 %) it does hold for so many."""
    rng = np.random.default_rng(5)
    draw = beta_binomial(1e-3)
    said, true = [], []
    for _ in range(50):
        rates = np.exp(rng.uniform(EDGES[0], EDGES[-1], 10))
        found = FailureRates({key: draw(rng, rate, 1) for key, rate in enumerate(rates)})
        said += [found.of(key).at_most(1e-3) for key in range(10)]
        true += [rate <= 1e-3 for rate in rates]
    probabilities, holds = np.asarray(said), np.asarray(true)

    for low, high in ((0.1, 0.5), (0.5, 0.9)):
        among = (probabilities > low) & (probabilities < high)
        assert np.count_nonzero(among) > 10
        assert holds[among].mean() == pytest.approx(probabilities[among].mean(), abs=0.2)
    assert holds[probabilities < 0.05].mean() < 0.05
    assert holds[probabilities > 0.95].mean() > 0.95


def test_two_windows_without_a_failure_are_enough_for_the_usual_bound():
    assert rate_of(Counts(requests=16_000)).at_most(0.001) > 0.9
    assert rate_of(CLEAN, CLEAN).at_most(0.001) > 0.9
    assert rate_of(Counts(requests=200)).at_most(0.001) < 0.9


@pytest.mark.parametrize("bad", [BAD, FAILED])
def test_one_trial_that_went_wrong_is_no_verdict_and_two_are(bad):
    assert 0.01 < rate_of(bad).at_most(0.001) < 0.2
    assert rate_of(bad, bad).at_most(0.001) < 0.02


@pytest.mark.parametrize("bad", [BAD, FAILED])
def test_a_trial_that_went_wrong_weighs_less_among_more_that_did_not(bad):
    after = [rate_of(bad, *[CLEAN] * clean).at_most(0.001) for clean in (0, 1, 3, 10)]

    assert after == sorted(after)
    assert 0.3 < after[1] < 0.8
    assert after[-1] > 0.9
    assert rate_of(bad, bad, *[CLEAN] * 8).at_most(0.001) < 0.9
    assert rate_of(*[bad] * 4, *[CLEAN] * 4).at_most(0.001) < 0.05


def test_a_rate_just_below_the_bound_is_not_shown_by_two_lucky_windows():
    lucky = Counts(failed=5, requests=8000)

    assert 0.2 < rate_of(lucky).at_most(0.001) < 0.9
    assert rate_of(lucky).at_most(0.001) < rate_of(*[lucky] * 12).at_most(0.001)


def test_how_much_trials_differ_is_learned_from_all_configurations():
    """12 of 8000 may be a rate of 0.1 % where the default's trials have 1 to 40, not where all have 8."""
    doubtful = [Counts(failed=12, requests=8000)] * 3
    alike = [Counts(failed=8, requests=8000)] * 12
    unlike = [Counts(failed=failed, requests=8000) for failed in (2, 40, 1, 22, 4, 30, 2, 9, 1, 25, 3, 12)]

    among_alike = FailureRates({"default": alike, "it": doubtful}).of("it").at_most(0.001)
    among_unlike = FailureRates({"default": unlike, "it": doubtful}).of("it").at_most(0.001)

    assert 2 * among_alike < among_unlike


def test_rates_are_compared_with_each_other():
    draw, rng = beta_binomial(1e-3), np.random.default_rng(2)
    rates = FailureRates(
        {"a": draw(rng, 0.003, 12), "same": draw(rng, 0.003, 12), "twice": draw(rng, 0.006, 12)}
    )
    default = rates.of("a")

    assert rates.of("same").at_most_that_of(default, factor=1.5, least=0.0) > 0.8
    assert rates.of("twice").at_most_that_of(default, factor=1.5, least=0.0) < 0.1
    assert default.at_most_that_of(rates.of("twice"), factor=1.0, least=0.0) > 0.95


def test_what_was_never_measured_has_the_prior():
    unknown = FailureRates({"default": [CLEAN]}).of("it")

    assert unknown.trials == unknown.requests == 0
    assert unknown.p_sound == pytest.approx(0.9)
    assert unknown.at_most(0.001) == pytest.approx(0.45)
    assert (unknown.interval().value, unknown.interval().low) == (0.0, 0.0)
    assert unknown.interval().high > 0.5


def test_a_bound_of_nothing_is_kept_until_a_request_fails():
    assert rate_of(CLEAN).at_most(0.0) > 0.9
    assert rate_of(CLEAN, Counts(failed=1, requests=10**7)).at_most(0.0) == 0.0


def test_the_interval_holds_what_was_seen_and_starts_at_nothing_where_nothing_failed():
    found = rate_of(Counts(failed=23, requests=8000), Counts(failed=25, requests=8000)).interval()

    assert found.value == pytest.approx(0.003)
    assert 0.001 < found.low < 0.0025
    assert 0.0035 < found.high < 0.01
    assert rate_of(CLEAN).interval().low == 0.0


def test_counts_in_the_millions_and_of_a_single_request_are_understood():
    for trials in ([Counts(failed=1, requests=1)], [Counts(failed=3000, requests=3_000_000)] * 40):
        found = rate_of(*trials)
        assert np.isfinite(found.shares).all()
        assert found.shares.sum() == pytest.approx(1.0)
    assert rate_of(*[Counts(failed=3000, requests=3_000_000)] * 40).interval().high < 0.0012
