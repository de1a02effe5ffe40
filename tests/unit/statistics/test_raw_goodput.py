"""What was searched by its cost has to serve as much as the default."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.trials import DEFAULT, baseline, config_of, trial
from tuner.records import Metric, measured_by
from tuner.statistics.feasibility import GOODPUT_RPS, MAY_SHIP_AS_BEFORE, SERVES_AS_MUCH, Feasibility
from tuner.study.objective import Constraint

CHEAP = config_of(open_file_cache=1000)
NO_MORE_FAILURES = Constraint(metric="failure_rate", limit=None)
FEW_FAILURES = Constraint(metric="failure_rate", limit=0.001)
RPS = 16_000.0
PAIRS = 8


def pairs_of(rng, ratio, *, sigma=0.01, drift=0.0, pairs=PAIRS, windows=3):
    """Draw pairs of default and configuration on a host that grows slower by a share in all."""
    trials = []
    for number in range(2 * pairs):
        level = RPS * math.exp(-drift * number / (2 * pairs))
        rates = level * np.exp(sigma * rng.standard_normal(windows))
        if number % 2:
            trials.append(trial(number, *(ratio * rates), config=CHEAP))
        else:
            trials.append(baseline(number, *rates))
    return trials


def by_cost(trials, *constraints):
    return Feasibility([measured_by(each, Metric.PER_CPU) for each in trials], constraints, DEFAULT)


@pytest.mark.parametrize(
    ("ratio", "least", "most"), [(1.0, 0.9, 1.0), (1.05, 1.0, 1.0), (0.98, 0.1, 0.7), (0.95, 0.0, 0.0)]
)
def test_what_serves_less_beyond_noise_ships_in_no_study_and_what_serves_as_much_in_most(ratio, least, most):
    rng = np.random.default_rng(3)

    shipped = np.mean([by_cost(pairs_of(rng, ratio)).may_ship(CHEAP) for _ in range(40)])

    assert least <= shipped <= most


def test_what_serves_five_percent_less_is_ruled_out():
    rng = np.random.default_rng(4)

    assert all(by_cost(pairs_of(rng, 0.95)).is_ruled_out(CHEAP) for _ in range(10))
    assert not any(by_cost(pairs_of(rng, 1.0)).is_ruled_out(CHEAP) for _ in range(10))


def test_a_host_that_grows_slower_is_not_held_against_what_was_measured_late():
    rng = np.random.default_rng(5)
    early = [baseline(number - 40, *(RPS * np.exp(0.01 * rng.standard_normal(3)))) for number in range(20)]
    late = pairs_of(rng, 0.9, drift=0.0)
    slower = [
        replace(each, windows=tuple(replace(w, correct=round(0.9 * w.correct)) for w in each.windows))
        for each in pairs_of(rng, 1.0)
    ]

    assert by_cost([*early, *slower]).may_ship(CHEAP)
    assert by_cost([*early, *late]).is_ruled_out(CHEAP)


def test_the_figures_of_both_are_told():
    rng = np.random.default_rng(6)

    (_, found) = by_cost(pairs_of(rng, 0.9)).assess(CHEAP)

    assert (found.constraint, found.metric) == (SERVES_AS_MUCH, GOODPUT_RPS)
    assert found.needed == MAY_SHIP_AS_BEFORE
    assert found.seen.low < 0.9 * RPS < found.seen.high
    assert found.of_default.low < RPS < found.of_default.high
    assert found.finding.startswith("serves 14,")


def test_a_study_of_goodput_has_no_such_bound():
    rng = np.random.default_rng(7)
    known = Feasibility(pairs_of(rng, 0.5), (), DEFAULT)

    assert known.may_ship(CHEAP)
    assert [each.metric for each in known.assess(CHEAP)] == ["started"]


def test_what_nobody_measured_may_serve_as_much_or_less():
    rng = np.random.default_rng(8)
    known, unknown = by_cost(pairs_of(rng, 1.0)), config_of(multi_accept=True)

    assert known.probability(unknown) == pytest.approx(0.5 * known.probability(DEFAULT), rel=0.2)
    assert not known.may_ship(unknown)
    assert by_cost([trial(1, RPS, config=CHEAP)]).probability(CHEAP) > 0


def test_a_bound_by_number_is_no_looser_for_it():
    """Nearly 1 of 1,000 fail: not shown to be below that, by whatever metric."""
    rng = np.random.default_rng(9)
    trials = [
        replace(
            each, windows=tuple(replace(w, failures=replace(w.failures, status=15)) for w in each.windows)
        )
        for each in pairs_of(rng, 1.0)
    ]

    assert 0.6 < by_cost(trials, FEW_FAILURES).assess(CHEAP)[1].probability < 0.9
    assert not Feasibility(trials, (FEW_FAILURES,), DEFAULT).may_ship(CHEAP)
    assert not by_cost(trials, FEW_FAILURES).may_ship(CHEAP)
    assert by_cost(trials, NO_MORE_FAILURES).may_ship(CHEAP)
