from itertools import count

import pytest

from tests.unit.trials import config_of, trial, window
from tuner.campaign.blocks import MAX_FAILURES, MAX_SPOILED, measure_blocks
from tuner.errors import TargetError
from tuner.records import Failure, Role, State

ARMS = ("a", "b", "c", "d")


class Bench:
    """Makes trials as told."""

    def __init__(self):
        self.made = []
        self.ends = {}
        """Arm → how its trials end instead of well."""

    def make(self, arm, block):
        number = len(self.made)
        self.made.append((arm, block))
        ended = self.ends.get(arm, {})
        return trial(number, 1000, config=config_of(), role=Role.SWEEP, arm=arm, block=block, **ended)

    def run(self, blocks, *, arms=ARMS, seed="1", **more):
        left = iter(range(blocks))
        return measure_blocks(
            lambda failed: [arm for arm in arms if arm not in failed] if next(left, None) is not None else (),
            self.make, seed=seed, **more,
        )  # fmt: skip

    def block(self, number):
        return [arm for arm, block in self.made if block == number]


CRASHED = {"state": State.FAILED, "failure": Failure(kind="crashed", reason="it crashed")}
SPOILED = {"state": State.INVALID, "windows": (window(spoiled=True),)}


def test_each_block_has_every_arm_once_in_an_order_of_its_own():
    bench = Bench()

    bench.run(12)

    orders = [tuple(bench.block(number)) for number in range(12)]
    assert all(sorted(order) == list(ARMS) for order in orders)
    assert len(set(orders)) > 6


def test_the_order_of_a_block_is_the_same_whenever_it_is_measured():
    whole, rest, other = Bench(), Bench(), Bench()
    whole.run(5)
    rest.run(2, first=3)
    other.run(5, seed="2")

    assert rest.made == [each for each in whole.made if each[1] >= 3]
    assert other.made != whole.made


def test_what_is_chosen_for_a_block_may_shrink():
    bench = Bench()
    chosen = iter([("a", "b"), ("b",), ()])

    measure_blocks(lambda _: next(chosen), bench.make, seed="1")

    assert sorted(bench.block(0)) == ["a", "b"]
    assert bench.block(1) == ["b"]
    assert len(bench.made) == 3


def test_the_end_of_the_time_cuts_a_block_off():
    bench = Bench()
    asked = count(1)

    bench.run(9, has_time=lambda: next(asked) <= 6)

    assert len(bench.made) == 6
    assert len(bench.block(1)) == 2


def test_an_arm_that_fails_twice_in_a_row_is_told_and_left_out():
    bench = Bench()
    bench.ends["c"] = CRASHED

    failed = bench.run(3)

    assert failed == {"c": "it crashed"}
    assert [arm for arm, _ in bench.made].count("c") == MAX_FAILURES
    assert sorted(bench.block(2)) == ["a", "b", "d"]


def test_an_environment_that_spoils_every_trial_ends_it():
    bench = Bench()
    bench.ends["a"] = SPOILED

    with pytest.raises(TargetError, match="a could not be measured 5 times in a row"):
        bench.run(3, arms=("a",))

    assert len(bench.made) == MAX_SPOILED


def test_after_a_pause_that_helps_an_arm_is_measured_on():
    bench = Bench()
    bench.ends["a"] = SPOILED
    rests = []

    def rest():
        rests.append(len(bench.made))
        del bench.ends["a"]
        return True

    assert bench.run(3, arms=("a",), wait_until_quiet=rest) == {}
    assert rests == [MAX_SPOILED]
    assert len(bench.made) == MAX_SPOILED + 3


def test_there_is_one_pause_for_each_trial():
    bench = Bench()
    bench.ends["a"] = SPOILED

    with pytest.raises(TargetError, match="a could not be measured 5 times in a row"):
        bench.run(3, arms=("a",), wait_until_quiet=lambda: True)

    assert len(bench.made) == 2 * MAX_SPOILED
