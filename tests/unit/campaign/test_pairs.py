from dataclasses import replace
from random import Random

import pytest

from tests.unit.trials import DEFAULT, config_of, failed, trial, window
from tuner.campaign.blocks import MAX_FAILURES, MAX_SPOILED
from tuner.campaign.pairs import Pairing, find_pair, measure_pairs, read_pairs
from tuner.errors import TargetError
from tuner.records import Failure, Role, State

WINNER = config_of(open_file_cache=1000)


def pairing(pairs=4, *, first_block=0, seed=1):
    return Pairing(
        role=Role.CONFIRM, sides={"default": DEFAULT, "winner": WINNER}, pairs=pairs,
        rng=Random(seed), first_block=first_block,  # noqa: S311 - no secret
    )  # fmt: skip


class Bench:
    """Makes trials as told, in one session after the other."""

    def __init__(self, session="one"):
        self.session = session
        self.trials = []
        self.openings = []
        self.told = []
        self.ends = {}
        """Number of a trial → how it ends instead of well."""

    def make(self, opening):
        number = len(self.trials)
        self.openings.append(opening)
        rate = 1000 + number if opening.arm == "default" else 1200 + number
        given = {"role": opening.role, "arm": opening.arm, "block": opening.block, "session": self.session}
        made = self.ends.get(number, lambda n, **g: trial(n, rate, **g))(
            number, config=opening.config, **given
        )
        self.trials.append(made)
        return made

    def run(self, what):
        self.told = []
        failed = measure_pairs(what, self.trials, self.make, lambda *told: self.told.append(told))
        return failed, [tuple(each.log_value for each in pair) for pair in read_pairs(self.trials, what)]


def crashes(number, *, config, **given):
    failure = Failure(kind="crashed", reason="it crashed")
    return trial(number, config=config, state=State.FAILED, failure=failure, **given)


def is_spoiled(number, *, config, **given):
    failure = Failure(kind="environment", reason="every window was spoiled")
    windows = (window(spoiled=True),)
    return trial(number, config=config, state=State.INVALID, failure=failure, **given | {"windows": windows})


def test_every_pair_has_both_sides_and_tells_their_logarithms():
    bench = Bench()

    failure, logs = bench.run(pairing())

    assert failure is None
    assert len(logs) == 4
    assert all(default < winner for default, winner in logs)
    assert [(opening.block, opening.role) for opening in bench.openings] == [
        (block, Role.CONFIRM) for block in (0, 0, 1, 1, 2, 2, 3, 3)
    ]
    assert bench.told == [(0, 4), (1, 4), (2, 4), (3, 4)]


@pytest.mark.parametrize("seed", range(5))
def test_each_side_comes_first_equally_often(seed):
    bench = Bench()

    bench.run(pairing(10, seed=seed))

    first = [opening.arm for opening in bench.openings[::2]]
    assert first.count("default") == 5


def test_the_order_is_the_same_in_every_session():
    first, second = Bench(), Bench("two")

    first.run(pairing())
    second.run(pairing())

    assert [opening.arm for opening in first.openings] == [opening.arm for opening in second.openings]


def test_a_longer_comparison_begins_with_the_order_of_the_shorter():
    short, long = Bench(), Bench()

    short.run(pairing(4))
    long.run(pairing(8))

    assert [opening.arm for opening in long.openings[:8]] == [opening.arm for opening in short.openings]


def test_what_is_finished_is_not_measured_again():
    bench = Bench()
    bench.run(pairing(2))
    bench.session = "two"

    _failure, logs = bench.run(pairing(4))

    assert len(bench.trials) == 8
    assert len(logs) == 4


def test_sides_of_different_sessions_are_no_pair():
    what = pairing(1)
    apart = [
        trial(0, 1000, role=Role.CONFIRM, arm="default", block=0, session="one"),
        trial(1, 1200, config=WINNER, role=Role.CONFIRM, arm="winner", block=0, session="two"),
    ]

    assert find_pair(apart, what, 0) is None
    assert read_pairs(apart, what) == []


def test_half_a_pair_is_measured_whole_in_the_next_session():
    bench = Bench()
    bench.ends[1] = interrupted
    with pytest.raises(KeyboardInterrupt):
        bench.run(pairing(2))
    bench.session = "two"
    bench.ends = {}

    _failure, logs = bench.run(pairing(2))

    assert len(logs) == 2
    assert [each.session for each in bench.trials] == ["one"] + ["two"] * 4


def interrupted(_number, **_given):
    raise KeyboardInterrupt


def test_pairs_of_another_role_or_block_do_not_count():
    what = pairing(2, first_block=10)
    bench = Bench()
    bench.run(pairing(2))

    assert read_pairs(bench.trials, what) == []
    bench.run(what)
    assert [opening.block for opening in bench.openings[4:]] == [10, 10, 11, 11]


@pytest.mark.parametrize("end", [crashes, is_spoiled])
def test_a_trial_that_fails_once_is_made_again(end):
    bench = Bench()
    bench.ends[2] = end

    failure, logs = bench.run(pairing(2))

    assert failure is None
    assert len(logs) == 2
    assert len(bench.trials) == 5
    assert bench.openings[2] == bench.openings[3]


def test_a_side_that_fails_twice_in_a_row_ends_the_comparison_with_the_reason():
    bench = Bench()
    bench.ends |= {2: crashes, 3: crashes}

    failure, logs = bench.run(pairing(4))

    assert MAX_FAILURES == 2
    assert failure == f"{bench.openings[2].arm}: it crashed"
    assert len(logs) == 1
    assert len(bench.trials) == 4


def test_a_side_that_the_environment_spoils_again_and_again_has_not_failed():
    bench = Bench()
    bench.ends |= dict.fromkeys(range(2, 2 + MAX_SPOILED - 1), is_spoiled)

    failure, logs = bench.run(pairing(4))

    assert failure is None
    assert len(logs) == 4


def test_where_nothing_can_be_measured_the_comparison_stops_and_can_go_on_later():
    bench = Bench()
    bench.ends |= dict.fromkeys(range(2, 2 + MAX_SPOILED), is_spoiled)

    with pytest.raises(TargetError, match=r"could not be measured 5 times in a row: every window"):
        bench.run(pairing(4))
    _failure, logs = bench.run(pairing(4))

    assert len(logs) == 4


def test_a_side_that_fails_once_in_every_pair_does_not_end_the_comparison():
    bench = Bench()
    bench.ends |= dict.fromkeys((0, 3, 6, 9), crashes)

    failure, logs = bench.run(pairing(4))

    assert failure is None
    assert len(logs) == 4


def test_a_failed_trial_is_no_side_of_a_pair():
    what = pairing(1)
    given = {"role": Role.CONFIRM, "block": 0, "session": "one"}
    trials = [trial(0, 1000, arm="default", **given), crashes(1, config=WINNER, arm="winner", **given)]

    assert find_pair(trials, what, 0) is None
    assert failed(2, config=WINNER).log_goodput is None


def test_the_default_of_an_earlier_space_is_a_side_of_a_pair():
    bench = Bench()
    bench.run(replace(pairing(1), sides={"default": {"sendfile": True}, "winner": WINNER}))

    assert find_pair(bench.trials, pairing(1), 0) is not None


def test_a_side_of_another_configuration_is_no_side_of_a_pair():
    bench = Bench()
    bench.run(replace(pairing(1), sides={"default": DEFAULT, "winner": config_of(sendfile=False)}))

    assert find_pair(bench.trials, pairing(1), 0) is None
    assert bench.run(pairing(1))[0] is None
    assert find_pair(bench.trials, pairing(1), 0) is not None
    assert len(bench.trials) == 4
