"""The slowest responses of two configurations, from the pairs of their gain."""

from dataclasses import replace

import pytest

from tests.unit.statistics.made_trials import make_trial
from tuner.ports import Latency
from tuner.records import Trial
from tuner.statistics.confirmation.paired_gain import compare_tails


def at_p99(p99_ms: float | None) -> Trial:
    latency = None if p99_ms is None else Latency(quantiles_ms={0.99: p99_ms}, samples=100)
    trial = make_trial(0.0)
    return replace(trial, windows=tuple(replace(window, latency=latency) for window in trial.windows))


def test_the_ratio_is_that_of_each_pair():
    """What both sides of a pair had, as a phase in which all was slow, does not show."""
    default = [at_p99(20.0), at_p99(80.0), at_p99(10.0)]
    winner = [at_p99(38.0), at_p99(160.0), at_p99(21.0)]

    found = compare_tails(default, winner)

    assert found is not None
    assert found.ratio == pytest.approx(2.0, rel=0.01)
    assert 1.7 < found.low < found.ratio < found.high < 2.3
    assert found.pairs == 3


def test_a_trial_without_response_times_leaves_it_unknown():
    assert compare_tails([at_p99(20.0)] * 3, [at_p99(20.0), at_p99(None), at_p99(20.0)]) is None


def test_one_pair_tells_nothing():
    assert compare_tails([at_p99(20.0)], [at_p99(38.0)]) is None
    assert compare_tails([], []) is None


def test_of_several_loads_there_is_no_one_p99():
    def of_two(trial: Trial) -> Trial:
        parts = {"small": trial.windows[0], "large": trial.windows[0]}
        return replace(trial, windows=tuple(replace(window, parts=parts) for window in trial.windows))

    assert compare_tails([of_two(at_p99(20.0))] * 3, [of_two(at_p99(38.0))] * 3) is None
