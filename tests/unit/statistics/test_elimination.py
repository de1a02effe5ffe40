from collections import Counter
from random import Random

import pytest

from tuner.statistics.elimination import race_order, survivors

ARMS = ("default", "a", "b", "c", "d")


def blocks_of(count, **levels):
    noise = Random(3)  # noqa: S311 - no secret
    return [{arm: level + noise.gauss(0, 0.01) for arm, level in levels.items()} for _ in range(count)]


@pytest.mark.parametrize("blocks", [1, 5, 8, 10])
def test_every_block_holds_every_arm_once(blocks):
    order = race_order(ARMS, blocks, Random(1))  # noqa: S311 - no secret

    assert [sorted(block) for block in order] == [sorted(ARMS)] * blocks


def test_each_arm_is_in_each_place_equally_often():
    order = race_order(ARMS, 10, Random(1))  # noqa: S311 - no secret
    places = Counter((arm, place) for block in order for place, arm in enumerate(block))

    assert set(places.values()) == {2}


def test_the_order_is_random_and_the_seed_repeats_it():
    orders = [race_order(ARMS, 8, Random(seed)) for seed in (1, 1, 2)]  # noqa: S311 - no secret

    assert orders[0] == orders[1] != orders[2]


def test_without_arms_there_is_no_order():
    assert race_order((), 3, Random(1)) == []  # noqa: S311 - no secret


def test_before_the_first_test_all_arms_are_alive_the_leader_first():
    alive = survivors(blocks_of(3, default=0.0, a=-1.0, b=0.5, c=0.1), default="default")

    assert alive == ("b", "c", "a", "default")


def test_arms_that_are_clearly_worse_than_the_leader_are_out():
    alive = survivors(blocks_of(4, default=0.0, a=0.1, b=0.4, c=0.395, d=0.2), default="default")

    assert set(alive) == {"b", "c", "default"}


def test_at_least_two_configurations_stay_unless_asked_otherwise():
    blocks = blocks_of(8, default=0.0, a=0.1, b=0.4, c=0.2)

    assert survivors(blocks, default="default") == ("b", "c", "default")
    assert survivors(blocks, default="default", keep=1) == ("b", "default")


def test_the_default_stays_even_when_it_is_worst():
    assert "default" in survivors(blocks_of(8, default=-3.0, a=0.1, b=0.4, c=0.2), default="default")


def test_an_arm_that_is_out_stays_out_when_later_blocks_lack_it():
    blocks = blocks_of(4, default=0.0, a=0.1, b=0.4, c=0.395) + blocks_of(3, default=0.0, b=0.4, c=0.395)

    assert "a" not in survivors(blocks, default="default")


def test_an_arm_with_too_few_shared_blocks_is_not_judged():
    blocks = [
        {key: value for key, value in block.items() if key != "a"} for block in blocks_of(4, a=0, b=1, c=1)
    ]
    blocks[0]["a"] = -1.0

    assert "a" in survivors(blocks, default="default", keep=1)


def test_arms_that_are_equal_to_the_last_digit_are_all_kept():
    blocks = [{"a": 0.1, "b": 0.1, "c": 0.1, "default": 0.0}] * 6

    assert set(survivors(blocks, default="default")) == {"a", "b", "c", "default"}


def test_a_race_without_blocks_has_nobody_in_it():
    assert survivors([], default="default") == ()
