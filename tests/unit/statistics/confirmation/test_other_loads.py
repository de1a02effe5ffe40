import math
from random import Random

import pytest

from tests.unit.starts import window
from tuner.records import Situation
from tuner.statistics.confirmation.other_loads import OtherLoads, judge_situation

MANY = Situation(name="400 connections", changes="connections", connections=400, keepalive=True)


def judge(pairs, *, situations=4, pair_sd=0.03, failure_limit=0.001):
    return judge_situation(MANY, pairs, situations=situations, pair_sd=pair_sd, failure_limit=failure_limit)


def sides(default, candidate, **of_candidate):
    return (window(default),), (window(candidate, **of_candidate),)


def test_the_ratio_is_that_of_pairs_and_goodput_the_geometric_mean():
    faced = judge([sides(1000, 900), sides(4000, 3600)])

    assert faced.ratio == pytest.approx(0.9)
    assert faced.default.goodput_rps == pytest.approx(2000)
    assert faced.candidate.goodput_rps == pytest.approx(1800)


@pytest.mark.parametrize(
    ("winner", "pair_sd", "finding", "slower"),
    [
        (700, 0.05, "loses", True),
        (700, 0.30, "holds", False),
        (960, 0.005, "holds", True),
        (1200, 0.05, "holds", False),
    ],
)
def test_a_loss_has_to_be_beyond_the_noise_and_above_five_percent(winner, pair_sd, finding, slower):
    faced = judge([sides(1000, winner)] * 2, pair_sd=pair_sd)

    assert (faced.finding, faced.is_slower) == (finding, slower)


def test_it_is_no_loss_to_serve_less_where_the_default_fails_and_the_candidate_does_not():
    failing = (window(900, failed=100),)

    assert judge([(failing, (window(700),))] * 2).finding == "holds"
    assert judge([(failing, (window(700, failed=90),))] * 2).finding == "loses"


def test_equal_configurations_lose_anywhere_in_at_most_one_meeting_of_twenty():
    rng, lost, meetings = Random(5), 0, 1000  # noqa: S311 - no secret

    def pair(sd):
        return sides(1e6 * math.exp(rng.gauss(0, sd)), 1e6 * math.exp(rng.gauss(0, sd)))

    for _ in range(meetings):
        faced = [judge([pair(0.14), pair(0.14)], pair_sd=0.14 * math.sqrt(2)) for _ in range(4)]
        lost += any(each.finding == "loses" for each in faced)

    # One side of 10 % for all four together: 50 of 1000 are expected, 72 come with a probability of 0.001.
    assert lost <= 71


def test_noise_that_the_study_did_not_have_widens_the_interval():
    calm = judge([sides(1000, 1000), sides(1000, 1000), sides(1000, 1000)])
    wild = judge([sides(1000, 600), sides(1000, 1000), sides(1000, 1700)])

    assert math.log(wild.high / wild.low) > 5 * math.log(calm.high / calm.low)


def test_failures_above_the_bound_in_every_start_fail():
    assert judge([sides(9900, 9900, failed=100)] * 2).finding == "fails"


def test_one_bad_start_of_two_is_no_failure():
    assert judge([sides(9900, 9900, failed=100), sides(9900, 9900)]).finding == "holds"


def test_a_rate_that_may_be_below_the_bound_is_no_failure():
    # Two of 1000 where one is allowed.
    assert judge([sides(499, 499, failed=1)] * 2).finding == "holds"


def test_serving_nothing_where_the_default_serves_fails_and_has_no_goodput():
    faced = judge([sides(1000, 0), sides(1000, 1000)])

    assert (faced.finding, faced.candidate.goodput_rps) == ("fails", 0.0)
    assert faced.low < faced.high < math.inf


def test_the_worst_finding_is_the_verdict():
    holds, loses, fails = (
        judge([sides(1000, rate, failed=failed)] * 2) for rate, failed in ((1000, 0), (500, 0), (1000, 100))
    )

    def verdict(*faced, failure=None):
        return OtherLoads(config={}, faced=faced, left_out={}, pairs=2, failure=failure).verdict

    assert verdict() == verdict(holds) == "holds"
    assert verdict(holds, loses) == "loses"
    assert verdict(fails, loses) == verdict(holds, failure="crashed") == "fails"
