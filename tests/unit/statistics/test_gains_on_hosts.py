"""Gains on several hosts, of which the worst counts, or the mean."""

import math
from random import Random

import pytest

from tests.unit.statistics.made_trials import make_trial
from tuner.records import Role
from tuner.records.blend import AcrossHosts
from tuner.statistics.confirmation.paired_gain import judge_hosts


def pairs(gain, *, count=8, seed=1, sd=0.01):
    rng = Random(seed)  # noqa: S311 - no secret

    def trial(log):
        return make_trial([log + rng.gauss(0, sd)] * 2, number=0, at_s=0.0, role=Role.CONFIRM)

    return [(trial(0.0), trial(gain)) for _ in range(count)]


def judge(across, **gains):
    made = {host: pairs(gain, seed=seed) for seed, (host, gain) in enumerate(gains.items())}
    return judge_hosts(made, None, across)


def test_the_worst_host_is_what_is_claimed():
    found = judge(AcrossHosts.WORST, a=0.3, b=0.1, c=0.2)

    assert found.verdict == "improved"
    assert found.ratio == found.by_host["b"].ratio
    assert found.low == min(each.low for each in found.by_host.values())


def test_one_host_without_a_gain_is_enough_to_claim_none():
    assert judge(AcrossHosts.WORST, a=0.3, b=0.0).verdict in {"no worse", "not proven"}
    assert judge(AcrossHosts.WORST, a=0.3, b=-0.1).verdict == "worse"


def test_the_mean_counts_each_host_the_same():
    found = judge(AcrossHosts.MEAN, a=0.3, b=-0.1)

    logs = [math.log(each.ratio) for each in found.by_host.values()]
    assert math.log(found.ratio) == pytest.approx(sum(logs) / 2)
    assert found.verdict == "improved"
    assert found.pairs == 16


def test_that_hosts_differ_is_no_noise_of_their_mean():
    apart, alike = judge(AcrossHosts.MEAN, a=0.5, b=-0.1), judge(AcrossHosts.MEAN, a=0.2, b=0.2)

    assert math.log(apart.high / apart.low) == pytest.approx(math.log(alike.high / alike.low))


def test_the_interval_of_the_mean_holds_the_truth_as_often_as_it_says():
    inside = 0
    for seed in range(400):
        made = {"a": pairs(0.2, count=4, seed=2 * seed), "b": pairs(0.0, count=6, seed=2 * seed + 1, sd=0.03)}
        found = judge_hosts(made, None, AcrossHosts.MEAN)
        inside += found.low <= math.exp(0.1) <= found.high
    assert 0.92 < inside / 400 < 0.985
