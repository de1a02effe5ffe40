import math
from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from tests.unit.trials import trial, window
from tuner.errors import UsageError
from tuner.measure.rounds import join
from tuner.records.blend import Across, Blend
from tuner.statistics.confirmation.paired_gain import (
    judge_pairs,
    judge_trials,
    needs_extension,
    p_sign_flip,
    pair_order,
    pairs_to_decide,
)

LOGS = (0.10, 0.05, 0.12, -0.02, 0.08, 0.09)


def pairs_of(*logs):
    return [(9.0, 9.0 + log) for log in logs]


def test_the_gain_is_the_t_interval_of_the_log_ratios():
    # Worked by hand: mean 0.07, SD 0.0498, t(5, 0.975) = 2.5706.
    gain = judge_pairs(pairs_of(*LOGS))
    reach = 2.5706 * gain.log_sd / math.sqrt(6)

    assert gain.log_sd == pytest.approx(0.0498, abs=5e-5)
    assert gain.ratio == pytest.approx(math.exp(0.07))
    assert (gain.low, gain.high) == pytest.approx((math.exp(0.07 - reach), math.exp(0.07 + reach)), rel=1e-5)
    assert (gain.pairs, gain.verdict, gain.alpha) == (6, "improved", 0.05)


def test_hodges_lehmann_is_the_median_of_all_pairwise_means():
    assert judge_pairs(pairs_of(0.0, 0.1, 0.2, 5.0)).hodges_lehmann == pytest.approx(math.exp(0.175))


def test_a_gain_below_one_percent_is_not_called_an_improvement():
    gain = judge_pairs(pairs_of(*(0.005 + 0.0001 * n for n in range(6))))

    assert gain.low > 1
    assert gain.verdict == "no worse"


def test_an_interval_that_ends_within_one_percent_below_is_no_worse():
    assert judge_pairs(pairs_of(-0.004, 0.006, 0.001, -0.002, 0.003, 0.0)).verdict == "no worse"


def test_a_wide_interval_proves_nothing():
    assert judge_pairs(pairs_of(-0.3, 0.4, 0.2, -0.1)).verdict == "not proven"


def test_an_interval_that_lies_wholly_below_one_is_a_loss():
    gain = judge_pairs(pairs_of(-0.13, -0.15, -0.12, -0.16))

    assert gain.high < 1
    assert gain.verdict == "worse"
    assert not needs_extension(gain)


def test_so_many_more_pairs_would_decide_as_it_seems():
    gain = judge_pairs(pairs_of(0.06, -0.05, 0.09, 0.02, -0.01, 0.07))
    needed = pairs_to_decide(gain)

    assert gain.verdict == "not proven"
    # t(n − 1, 0.975)·SD/√n falls below the mean, 0.03, of an SD of 0.053 from 15 pairs on: 2.145·0.053/√15.
    assert needed == 15
    assert 2.201 * gain.log_sd / math.sqrt(12) > math.log(gain.ratio)


def test_pairs_that_seem_to_lose_are_decided_by_more_as_well():
    ahead, behind = pairs_of(0.06, -0.05, 0.09, 0.02), pairs_of(-0.06, 0.05, -0.09, -0.02)

    assert pairs_to_decide(judge_pairs(ahead)) == pairs_to_decide(judge_pairs(behind))


def test_what_is_worth_less_than_one_percent_is_decided_by_no_number_of_pairs():
    assert pairs_to_decide(judge_pairs(pairs_of(0.3, -0.29, 0.2, -0.19))) is None
    assert pairs_to_decide(judge_pairs(pairs_of(0.9, -0.8, 0.7, -0.72))) is None


def test_with_two_looks_a_claim_takes_more_than_the_interval_above_one():
    once, twice = judge_pairs(pairs_of(*LOGS)), judge_pairs(pairs_of(*LOGS), looks=2)
    # The interval of a second look is wider, so that both looks together hold the truth as often.
    assert (once.level, twice.level) == (0.95, 0.95)

    assert (once.verdict, twice.verdict) == ("improved", "improved")
    assert twice.low < once.low
    assert twice.alpha == 0.025
    narrow = judge_pairs(pairs_of(0.105, 0.013, 0.109, 0.004, 0.024, 0.094), looks=2)
    assert narrow.low > 1
    assert narrow.verdict != "improved"


@pytest.mark.parametrize("pairs", [[], [(9.0, 9.1)]])
def test_fewer_than_two_pairs_are_refused(pairs):
    with pytest.raises(UsageError, match=f"{len(pairs)} pairs give no interval. Measure at least 2"):
        judge_pairs(pairs)


def test_pairs_that_do_not_differ_at_all_give_a_point():
    gain = judge_pairs(pairs_of(0.0, 0.0, 0.0))

    assert (gain.low, gain.ratio, gain.high) == (1.0, 1.0, 1.0)
    assert gain.p_sign_flip == 1.0


def test_undecided_pairs_that_point_upwards_are_extended():
    assert needs_extension(judge_pairs(pairs_of(0.2, -0.1, 0.1, 0.05), looks=2))


def test_what_is_proved_or_hopeless_or_behind_is_not_extended():
    proved = judge_pairs(pairs_of(0.2, 0.21, 0.2, 0.19), looks=2)
    tiny = judge_pairs(pairs_of(0.0011, 0.0012, 0.0009, 0.001), looks=2)
    behind = judge_pairs(pairs_of(-0.2, 0.1, -0.1, 0.05), looks=2)

    assert not any(map(needs_extension, (proved, tiny, behind)))


@pytest.mark.parametrize("logs", [LOGS, (0.1, 0.2, 0.3), (0.1, -0.1), (0.0, 0.2, 0.2, -0.1, 0.3), (0.4,)])
def test_sign_flips_agree_with_plain_enumeration(logs):
    sums = [
        sum(s * log for s, log in zip(signs, logs, strict=True))
        for signs in product((1, -1), repeat=len(logs))
    ]
    expected = sum(abs(each) >= abs(sum(logs)) - 1e-12 for each in sums) / len(sums)

    assert p_sign_flip(logs) == pytest.approx(expected)


def test_twenty_pairs_all_ahead_leave_two_in_a_million():
    assert p_sign_flip([0.1 + 0.001 * n for n in range(20)]) == pytest.approx(2 / 2**20)


def test_beyond_forty_pairs_sign_flips_are_counted_by_the_normal_law():
    logs = [0.03 * math.sin(7 * n) + 0.005 for n in range(41)]

    assert p_sign_flip(logs) == pytest.approx(p_sign_flip(logs[:40]), rel=0.4)


def test_pairs_are_balanced_within_every_two():
    order = pair_order(10, Random(4))  # noqa: S311 - no secret

    for first, second in zip(order[::2], order[1::2], strict=True):
        assert {first, second} == {("default", "winner"), ("winner", "default")}
    assert len(set(order[::2])) == 2


def test_an_odd_number_of_pairs_is_balanced_but_for_one():
    order = pair_order(7, Random(4), sides=("a", "b"))  # noqa: S311 - no secret

    assert sorted(Counter(order).values()) == [3, 4]


WEIGHTED = Blend(across=Across.WEIGHTED, weights={"a": 0.5, "b": 0.5})
WORST = Blend(across=Across.WORST, weights={"a": 0.5, "b": 0.5})
SHAKEN = (-0.02, 0.01, 0.0, 0.015, -0.005, 0.0)


def trials_of(blend, of_a, of_b, *, shaken=SHAKEN):
    """Pair trials of two loads whose winner gains so much on the log scale, give or take."""
    rates = {"a": (1000, math.exp(of_a)), "b": (80, math.exp(of_b))}

    def made(number, *, is_winner, luck=0.0):
        gained = {
            name: window(1e6 * rate * (gain * math.exp(luck) if is_winner else 1))
            for name, (rate, gain) in rates.items()
        }
        return trial(number, windows=(replace(join(gained), blend=blend),))

    return [
        (made(2 * number, is_winner=False), made(2 * number + 1, is_winner=True, luck=luck))
        for number, luck in enumerate(shaken)
    ]


def test_trials_of_one_load_are_judged_as_their_logarithms_are():
    pairs = [(trial(0, 1000.0), trial(1, 1200.0)), (trial(2, 1010.0), trial(3, 1190.0))]

    gain = judge_trials(pairs, None)

    assert gain == judge_pairs([(first.log_value, second.log_value) for first, second in pairs])
    assert gain.by_load == {}


def test_the_weighted_mean_lies_between_the_loads_and_each_has_its_own_interval():
    gain = judge_trials(trials_of(WEIGHTED, 0.3, 0.1), WEIGHTED)

    assert gain.ratio == pytest.approx(math.exp(0.2))
    assert gain.verdict == "improved"
    assert {name: each.ratio for name, each in gain.by_load.items()} == pytest.approx(
        {"a": math.exp(0.3), "b": math.exp(0.1)}
    )
    assert all(each.low < each.ratio < each.high for each in gain.by_load.values())


def test_the_worst_ratio_claims_no_more_than_the_weakest_of_all_loads():
    strong, weak = (judge_trials(trials_of(WORST, 0.3, of_b), WORST) for of_b in (0.1, 0.0))

    assert (strong.ratio, strong.verdict) == (strong.by_load["b"].ratio, "improved")
    assert strong.low == min(each.low for each in strong.by_load.values())
    assert weak.by_load["a"].verdict == "improved"
    assert weak.verdict == weak.by_load["b"].verdict != "improved"


@pytest.mark.parametrize("blend", [WEIGHTED, WORST])
def test_a_gain_under_one_load_and_a_loss_under_another_is_overfitted(blend):
    gain = judge_trials(trials_of(blend, 0.5, -0.1), blend)

    assert gain.verdict == "overfitted"
    assert not needs_extension(gain)


def test_a_loss_within_the_noise_overfits_nothing():
    gain = judge_trials(trials_of(WEIGHTED, 0.5, -0.005), WEIGHTED)

    assert gain.verdict == "improved"
