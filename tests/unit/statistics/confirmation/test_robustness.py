import math
from random import Random

import numpy as np
import pytest

from tests.unit.trials import window
from tuner.records import CheckLoad
from tuner.statistics.confirmation.robustness import (
    OUTAGE_SHARE,
    CheckedPairs,
    Robustness,
    judge_check_loads,
)

MANY = CheckLoad(name="400 connections", changes="connections", connections=400, keepalive=True)


def judge_all(*check_loads, pair_sd=0.03, failure_limit=OUTAGE_SHARE):
    measured = [CheckedPairs(check_load=MANY, pairs=pairs) for pairs in check_loads]
    return judge_check_loads(measured, count=4, pair_sd=pair_sd, failure_limit=failure_limit)


def judge(pairs, **how):
    (checked,) = judge_all(pairs, **how)
    return checked


def sides(default, candidate, **of_candidate):
    return (window(default),), (window(candidate, **of_candidate),)


def robustness(*checked, failure=None):
    return Robustness(config={}, checked=checked, left_out={}, pairs=2, failure=failure)


def test_the_ratio_is_that_of_pairs_and_goodput_the_geometric_mean():
    checked = judge([sides(1000, 900), sides(4000, 3600)])

    assert checked.ratio == pytest.approx(0.9)
    assert checked.default.goodput_rps == pytest.approx(2000)
    assert checked.candidate.goodput_rps == pytest.approx(1800)


@pytest.mark.parametrize(
    ("winner", "pair_sd", "finding"),
    [
        (300, 0.05, "loses"),
        (300, 0.50, "slower"),
        (700, 0.05, "slower"),
        (700, 0.30, "undecided"),
        (960, 0.005, "slower"),
        (960, 0.05, "holds"),
        (1200, 0.05, "holds"),
    ],
)
def test_only_half_the_goodput_beyond_the_noise_rejects_and_every_lesser_loss_is_told(
    winner, pair_sd, finding
):
    checked = judge([sides(1000, winner)] * 2, pair_sd=pair_sd)

    assert checked.finding == finding
    assert checked.is_rejected == (finding == "loses")


def test_half_the_goodput_within_the_noise_is_worth_another_pair():
    assert judge([sides(1000, 300)] * 2, pair_sd=0.5).is_open
    assert not judge([sides(1000, 700)] * 2, pair_sd=0.5).is_open


def test_it_is_no_loss_to_serve_less_where_the_default_fails_and_the_candidate_does_not():
    failing = (window(9000, failed=1000),)

    assert judge([(failing, (window(3000),))] * 2).finding == "holds"
    assert judge([(failing, (window(3000, failed=300),))] * 2).finding == "loses"


def test_noise_that_the_study_did_not_have_widens_the_interval():
    calm = judge([sides(1000, 1000), sides(1000, 1000), sides(1000, 1000)])
    wild = judge([sides(1000, 600), sides(1000, 1000), sides(1000, 1700)])

    assert math.log(wild.high / wild.low) > 5 * math.log(calm.high / calm.low)


def test_an_outage_in_every_trial_fails():
    assert judge([sides(9000, 7000, failed=2000)] * 2).finding == "fails"


def test_failures_above_a_bound_that_the_study_names_fail():
    few = [sides(9900, 9900, failed=100)] * 3

    assert judge(few).finding == "fails more"
    assert judge(few, failure_limit=0.001).finding == "fails"


def test_one_pair_rejects_nothing_and_asks_for_another():
    checked = judge([sides(9000, 5000, failed=4000)])

    assert checked.finding == "fails more"
    assert checked.is_open


def test_one_bad_trial_of_two_is_no_outage_yet():
    checked = judge([sides(9900, 5000, failed=5000), sides(9900, 9900)])

    assert not checked.is_rejected
    assert checked.is_open


def test_the_counts_that_once_rejected_a_gain_of_1_4_are_a_warning():
    # Counts of a real study: keep-alive, one second each, two pairs.
    default, candidate = ((14879, 21), (14867, 33)), ((21284, 168), (17931, 53))
    pairs = [
        ((window(good, failed=bad),), (window(of_candidate, failed=failed),))
        for (good, bad), (of_candidate, failed) in zip(default, candidate, strict=True)
    ]
    checked = judge(pairs)

    assert not checked.is_rejected
    assert not checked.is_open
    assert checked.p_more_failures == pytest.approx(0.7, abs=0.15)


def test_serving_nothing_in_every_trial_where_the_default_serves_fails():
    checked = judge([sides(1000, 0)] * 2)

    assert (checked.finding, checked.candidate.goodput_rps) == ("fails", 0.0)
    assert checked.low < checked.high < math.inf


def test_serving_nothing_in_one_trial_of_two_is_worth_another_pair():
    checked = judge([sides(1000, 0), sides(1000, 1000)])

    assert not checked.is_rejected
    assert checked.is_open


def test_the_worst_finding_is_the_verdict():
    holds, loses, fails, slower = (
        judge([sides(10_000, rate, failed=failed)] * 2)
        for rate, failed in ((10_000, 0), (2000, 0), (7000, 3000), (8000, 0))
    )

    assert robustness().verdict == robustness(holds).verdict == robustness(slower).verdict == "holds"
    assert robustness(holds, slower).warnings == (slower,)
    assert robustness(holds, loses).verdict == "loses"
    assert robustness(fails, loses).verdict == robustness(holds, failure="crashed").verdict == "fails"


def drawn(rng, rate, scatter, requests=8000):
    """Draw the windows of one trial, whose own rate of failures scatters around that of its configuration."""
    own = min(1.0, rate * math.exp(rng.normal(0, scatter) - scatter**2 / 2))
    failed = int(rng.binomial(requests, own))
    return (window(requests - failed, failed=failed),)


def count(how, *, rates, scatter, checks=40, pairs=2, seed=7):
    """Return the share of robustness checks in which something is found; the candidate fails in one load."""
    rng, found = np.random.default_rng(seed), 0
    of_default, of_candidate = rates
    for _ in range(checks):
        loads = [
            [(drawn(rng, of_default, scatter), drawn(rng, rate, scatter)) for _ in range(pairs)]
            for rate in (of_candidate, of_default, of_default, of_default)
        ]
        found += how(robustness(*judge_all(*loads)))
    return found / checks


@pytest.mark.parametrize("scatter", [0.4, 1.0])
@pytest.mark.parametrize("rate", [0.0018, 0.003])
def test_equal_failure_rates_reject_nothing_however_much_trials_differ(rate, scatter):
    assert not count(lambda each: each.is_rejected, rates=(rate, rate), scatter=scatter)


@pytest.mark.parametrize("scatter", [0.4, 1.0])
def test_an_outage_does_not_pass_unseen(scatter):
    """What two pairs do not reject is worth another pair, or told."""
    assert not count(
        lambda each: not (each.is_rejected or each.is_open or each.warnings),
        rates=(0.002, 0.2),
        scatter=scatter,
    )


def test_ten_times_the_failures_are_rarely_passed_over_in_silence():
    def is_silent(each):
        return not (each.is_rejected or each.is_open or each.is_unclear or each.warnings)

    assert count(is_silent, rates=(0.002, 0.02), scatter=0.4) == 0.0
    assert count(is_silent, rates=(0.002, 0.02), scatter=1.0) <= 0.1


def test_equal_configurations_are_rejected_for_a_loss_in_next_to_no_check():
    rng, lost = Random(5), 0  # noqa: S311 - no secret

    def pair(sd):
        return sides(1e6 * math.exp(rng.gauss(0, sd)), 1e6 * math.exp(rng.gauss(0, sd)))

    for _ in range(200):
        checked = judge_all(*([pair(0.14), pair(0.14)] for _ in range(4)), pair_sd=0.14 * math.sqrt(2))
        lost += robustness(*checked).is_rejected

    assert lost <= 1
