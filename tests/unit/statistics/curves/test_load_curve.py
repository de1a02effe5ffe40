"""What is said of configurations under more and more connections: goodput, failures, where each collapses."""

import math
from dataclasses import replace
from random import Random

import pytest

from tests.unit.trials import DEFAULT, trial
from tuner.ports import Failures
from tuner.records import Failure, Role, State
from tuner.statistics.curves.load_curve import MOST_BLOCKS, WHOLE_BLOCKS, judge_curve
from tuner.study.facts import CurvePlan

PLAN = CurvePlan(
    names=("default", "winner"), configs=(DEFAULT, DEFAULT), connections=(100, 1000, 10_000),
    failure_limit=0.001,
)  # fmt: skip
STALLED = {"state": State.FAILED, "failure": Failure(kind="stalled", reason="no correct response in 2.0 s")}
SERVED = {
    "default at 100": 20_000, "default at 1000": 18_000, "default at 10000": 5000,
    "winner at 100": 24_000, "winner at 1000": 23_000, "winner at 10000": 20_000,
}  # fmt: skip


def measured(*, blocks=3, failing=None, stalled=(), noise=0.02, seed=1):
    """Measure every cell in blocks on a host that drifts; `failing` is a share of the requests by arm."""
    rng, trials = Random(seed), []  # noqa: S311 - no secret
    for block in range(blocks):
        for arm, rate in SERVED.items():
            level = math.exp(0.3 * block + rng.gauss(0.0, noise))
            given = {"role": Role.CURVE, "arm": arm, "block": block, **(STALLED if arm in stalled else {})}
            made = trial(len(trials), *(() if arm in stalled else (rate * level,) * 2), **given)
            share = (failing or {}).get(arm, 0.0)
            windows = tuple(
                replace(each, failures=Failures(timeout=round(share * each.correct))) for each in made.windows
            )
            trials.append(replace(made, windows=windows))
    return trials


def by_arm(curve):
    return dict(zip(curve.plan.arms, curve.spots, strict=True))


def test_ratios_are_to_the_first_configuration_under_as_many_connections():
    curve = judge_curve(PLAN, measured())

    spots = by_arm(curve)
    assert spots["default at 100"].ratio is None
    for count in (100, 1000, 10_000):
        truth = SERVED[f"winner at {count}"] / SERVED[f"default at {count}"]
        ratio = spots[f"winner at {count}"].ratio
        assert ratio.low < truth < ratio.high
        assert ratio.half_width < 0.1


def test_goodput_is_that_of_the_middle_of_the_blocks():
    curve = judge_curve(PLAN, measured(blocks=3))

    # Blocks are apart by a factor of e^0.3, and the one in the middle is the second.
    for arm, spot in by_arm(curve).items():
        assert spot.goodput.low <= spot.goodput.ratio <= spot.goodput.high
        assert spot.goodput.ratio == pytest.approx(SERVED[arm] * math.exp(0.3), rel=0.05)


def test_without_failures_nothing_collapses():
    curve = judge_curve(PLAN, measured())

    for config in (0, 1):
        collapse = curve.find_collapse(config)
        assert collapse.first is None
        assert collapse.last.connections == 10_000


def test_the_first_number_of_connections_with_failures_is_the_collapse():
    failing = {"default at 1000": 0.03, "default at 10000": 0.4, "winner at 10000": 0.0001}
    curve = judge_curve(PLAN, measured(failing=failing))

    default, winner = curve.find_collapse(0), curve.find_collapse(1)
    assert (default.last.connections, default.first.connections) == (100, 1000)
    assert default.first.failures.low < 0.03 / 1.03 < default.first.failures.high
    assert winner.first is None


def test_what_stalls_twice_in_a_row_is_a_collapse_and_measured_no_more():
    curve = judge_curve(PLAN, measured(blocks=2, stalled=("default at 10000",)))

    spot = by_arm(curve)["default at 10000"]
    assert spot.fault == "no correct response in 2.0 s"
    assert (spot.trials, spot.failed_trials, spot.goodput) == (0, 2, None)
    assert curve.find_collapse(0).first is spot
    assert "default at 10000" not in curve.wanted()
    assert by_arm(curve)["winner at 10000"].ratio is None


def test_a_single_stall_among_good_trials_is_no_end_but_a_doubt():
    trials = measured(blocks=3)
    stalled = [
        replace(each, windows=(), **STALLED) if each.arm == "default at 1000" and each.block == 1 else each
        for each in trials
    ]
    before, after = (by_arm(judge_curve(PLAN, each))["default at 1000"] for each in (trials, stalled))

    assert not after.fault
    assert after.failed_trials == 1
    assert after.chance < before.chance


def test_it_fails_under_the_fewest():
    curve = judge_curve(PLAN, measured(failing={"default at 100": 0.5}))

    assert curve.find_collapse(0).last is None
    assert curve.find_collapse(0).first.connections == 100


def test_whole_blocks_come_first_and_then_what_is_not_settled():
    early = judge_curve(PLAN, measured(blocks=WHOLE_BLOCKS - 1))
    # Failures at the bound itself are not settled by a few trials; all else is.
    doubtful = judge_curve(PLAN, measured(blocks=WHOLE_BLOCKS, failing={"winner at 1000": 0.001}))
    late = judge_curve(PLAN, measured(blocks=MOST_BLOCKS, failing={"winner at 1000": 0.001}))

    assert early.wanted() == PLAN.arms
    assert "winner at 1000" in doubtful.wanted()
    assert "default at 100" not in doubtful.wanted()
    assert late.wanted() == ()


def test_before_the_first_trial_nothing_is_known_and_all_is_wanted():
    curve = judge_curve(PLAN, [])

    assert curve.wanted() == PLAN.arms
    assert all(spot.goodput is None and not spot.bears for spot in curve.spots)
    assert curve.find_collapse(0) == replace(curve.find_collapse(1))
    assert curve.find_collapse(0).first is None
