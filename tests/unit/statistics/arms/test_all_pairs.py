"""Every two arms of a contest, with intervals that hold together."""

import math
from itertools import permutations
from random import Random

import pytest

from tests.unit.statistics.made_trials import make_trial
from tuner.records import Failure, Role, State
from tuner.statistics.arms.all_pairs import judge_all_pairs
from tuner.statistics.arms.faults import find_failure
from tuner.statistics.confirmation.paired_gain import judge_pairs

ARMS = ("a", "b", "c")


def in_block(arm, block, log, *, session="one", **others):
    return make_trial(log, role=Role.CONTEST, arm=arm, block=block, session=session, **others)


def draw(seed, *, truth, spread, blocks):
    """Draw blocks with a level of their own, in which every arm has a spread of its own."""
    rng = Random(seed)  # noqa: S311 - no secret
    levels = [rng.gauss(0, 0.3) for _ in range(blocks)]
    return [
        in_block(arm, block, level + truth[arm] + rng.gauss(0, spread[arm]))
        for block, level in enumerate(levels)
        for arm in truth
    ]


def test_the_drift_of_the_host_cancels_out_within_the_blocks():
    trials = [
        in_block(arm, block, 5 * block + log + 0.001 * ((block * 7 + index) % 3))
        for block in range(6)
        for index, (arm, log) in enumerate((("a", 0.0), ("b", math.log(2)), ("c", math.log(1.5))))
    ]

    found = judge_all_pairs(trials, ARMS)

    assert found.estimates[1, 0].ratio == pytest.approx(2, rel=0.01)
    assert found.estimates[2, 0].ratio == pytest.approx(1.5, rel=0.01)
    assert found.estimates[1, 2].ratio == pytest.approx(4 / 3, rel=0.01)
    assert found.leaders(range(3)) == (1,)
    assert found.leaders((0, 2)) == (2,)


def test_a_ratio_is_the_same_from_both_sides():
    found = judge_all_pairs(
        draw(1, truth=dict.fromkeys(ARMS, 0.0), spread=dict.fromkeys(ARMS, 0.1), blocks=5), ARMS
    )

    for over, under in permutations(range(3), 2):
        one, other = found.estimates[over, under], found.estimates[under, over]
        assert one.ratio == pytest.approx(1 / other.ratio)
        assert (one.low, one.high) == (pytest.approx(1 / other.high), pytest.approx(1 / other.low))


def test_two_arms_have_the_interval_of_a_paired_comparison_and_more_arms_wider_ones():
    trials = draw(2, truth={"a": 0.0, "b": 0.1}, spread={"a": 0.02, "b": 0.02}, blocks=8)
    logs = [
        tuple(
            next(each.log_value for each in trials if (each.arm, each.block) == (arm, block)) for arm in "ab"
        )
        for block in range(8)
    ]

    alone = judge_all_pairs(trials, ("a", "b")).estimates[1, 0]
    among_three = judge_all_pairs(trials, ARMS).estimates[1, 0]

    gain = judge_pairs(logs)
    assert (alone.ratio, alone.low, alone.high) == (gain.ratio, gain.low, gain.high)
    assert among_three.ratio == alone.ratio
    assert among_three.low < alone.low < alone.high < among_three.high


def test_all_intervals_hold_at_once_though_some_servers_are_steadier_than_others():
    truth = {"a": 0.0, "b": 0.05, "c": -0.4, "d": 0.3}
    spread = {"a": 0.005, "b": 0.01, "c": 0.2, "d": 0.02}
    rounds = 120
    whole = 0
    for seed in range(rounds):
        found = judge_all_pairs(draw(seed, truth=truth, spread=spread, blocks=6), tuple(truth))
        logs = tuple(truth.values())
        whole += all(
            each.low <= math.exp(logs[over] - logs[under]) <= each.high
            for (over, under), each in found.estimates.items()
        )

    assert whole >= 0.91 * rounds  # 0.95, less two standard errors


def test_the_pair_of_two_steady_servers_is_narrow_beside_a_restless_one():
    trials = draw(4, truth=dict.fromkeys(ARMS, 0.0), spread={"a": 0.002, "b": 0.002, "c": 0.3}, blocks=8)

    found = judge_all_pairs(trials, ARMS)

    assert found.estimates[1, 0].half_width < 0.01
    assert found.estimates[2, 0].half_width > 0.1


def test_a_pair_needs_three_blocks_that_hold_both():
    trials = [in_block("a", block, 0.01 * block) for block in range(5)]
    trials += [in_block("b", block, 0.02) for block in (0, 1)]
    trials += [in_block("c", block, 0.02, session="two") for block in range(5)]

    found = judge_all_pairs(trials, ARMS)

    assert found.estimates == {}
    assert found.blocks[1, 0] == 2
    assert found.blocks[2, 0] == 0  # blocks of another session are others
    assert found.leaders(range(3)) == ()


def test_what_is_not_told_apart_leads_together():
    trials = draw(5, truth={"a": 0.0, "b": 0.0, "c": -1.0}, spread=dict.fromkeys(ARMS, 0.05), blocks=8)

    assert judge_all_pairs(trials, ARMS).leaders(range(3)) == (0, 1)


def test_an_arm_is_out_after_two_failures_in_a_row_and_not_for_what_the_host_spoils():
    crashed = {"state": State.FAILED, "failure": Failure(kind="crashed", reason="it crashed")}
    spoiled = {"state": State.INVALID}

    def of(*ends):
        return [in_block("a", block, 0.0, **end) for block, end in enumerate(ends)]

    assert find_failure("a", of(crashed, spoiled, crashed)) == "it crashed"
    assert find_failure("a", of(crashed, {}, crashed)) is None
    assert find_failure("a", of(crashed)) is None
    assert find_failure("b", of(crashed, crashed)) is None
