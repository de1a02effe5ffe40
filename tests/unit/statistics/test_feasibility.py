from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from numpy.random import Generator

from tests.unit.trials import DEFAULT, baseline, config_of, failed, trial, window
from tuner.measure.rounds import join
from tuner.ports import Config
from tuner.records import Role, State, Trial
from tuner.records.blend import AcrossHosts, Hosts
from tuner.statistics.feasibility import EVERY_TRIAL, Feasibility, judge_feasibility
from tuner.study.objective import Constraint

FEW_FAILURES = Constraint(metric="failure_rate", limit=0.001)
NO_MORE_FAILURES = Constraint(metric="failure_rate", limit=None)
QUICK = Constraint(metric="latency_p99_ms", limit=20.0)
CACHED = config_of(open_file_cache=1000)
EAGER = config_of(multi_accept=True)
NUMBERS = count()
REQUESTS = 8000


def measured(config: Config, *failures: int, p99_ms: float | None = None, **given: object) -> Trial:
    """Write down a trial with as many windows of 8000 requests as numbers of failed ones."""
    windows = tuple(window(REQUESTS - each, failed=each, p99_ms=p99_ms) for each in failures)
    return trial(next(NUMBERS), config=config, windows=windows, **given)


def drawn(rng: Generator, config: Config, rate: float, trials: int) -> list[Trial]:
    """Draw trials of two windows whose rates differ by a third between trials."""
    rates = rate * rng.gamma(9, 1 / 9, trials)
    return [measured(config, *rng.binomial(REQUESTS, each, 2)) for each in rates]


def feasibility(trials: Sequence[Trial], *constraints: Constraint) -> Feasibility:
    return Feasibility(trials, constraints, DEFAULT)


def share_of_studies(holds: Callable[[Feasibility], bool], *constraints: Constraint, rate: float) -> float:
    """Return how often something holds where the default fails 0.29 % and a candidate at this rate."""
    rng = np.random.default_rng(11)
    return float(
        np.mean(
            [
                holds(
                    feasibility(drawn(rng, DEFAULT, 0.0029, 12) + drawn(rng, CACHED, rate, 10), *constraints)
                )
                for _ in range(40)
            ]
        )
    )


def test_where_the_default_itself_fails_a_candidate_alike_is_feasible_by_what_it_has_alone():
    """0.29 % and 0.28 % against a bound of 0.1 %: out by the number, good enough by the default."""
    rate = 0.0028

    assert share_of_studies(lambda known: known.is_ruled_out(CACHED), FEW_FAILURES, rate=rate) == 1.0
    assert share_of_studies(lambda known: known.may_ship(CACHED), NO_MORE_FAILURES, rate=rate) > 0.4
    assert share_of_studies(lambda known: known.is_ruled_out(CACHED), NO_MORE_FAILURES, rate=rate) == 0.0


def test_what_fails_twice_as_often_as_the_default_does_not_ship():
    assert share_of_studies(lambda known: known.may_ship(CACHED), NO_MORE_FAILURES, rate=0.0058) == 0.0
    assert share_of_studies(lambda known: known.is_ruled_out(CACHED), NO_MORE_FAILURES, rate=0.0058) > 0.6


def test_two_windows_without_a_failure_may_ship():
    assert feasibility([measured(DEFAULT, 0, 0), measured(CACHED, 0, 0)], FEW_FAILURES).may_ship(CACHED)


def test_a_rate_near_the_bound_neither_ships_nor_is_ruled_out():
    known = feasibility(
        [measured(DEFAULT, 0, 0), measured(CACHED, 7, 6), measured(CACHED, 8, 9)], FEW_FAILURES
    )

    assert not known.may_ship(CACHED)
    assert not known.is_ruled_out(CACHED)


@pytest.mark.parametrize("bad", [measured(CACHED, 4000, 4000), failed(next(NUMBERS), config=CACHED)])
def test_one_bad_trial_rules_nobody_out(bad):
    alone = feasibility([measured(DEFAULT, 0, 0), bad], FEW_FAILURES)
    among = feasibility([bad, *(measured(CACHED, 0, 0) for _ in range(11))], FEW_FAILURES)

    assert not alone.is_ruled_out(CACHED)
    assert not alone.may_ship(CACHED)
    assert alone.probability(CACHED) < 0.2
    assert among.may_ship(CACHED)


def test_two_failed_trials_of_two_rule_a_configuration_out_under_any_constraint():
    twice = [failed(next(NUMBERS), config=CACHED) for _ in range(2)]

    for constraints in ((), (FEW_FAILURES,), (QUICK,)):
        known = feasibility([measured(DEFAULT, 0, p99_ms=2.0), *twice], *constraints)
        assert known.is_ruled_out(CACHED)
        assert not known.is_ruled_out(EAGER)


def test_that_a_configuration_starts_counts_once_however_many_bounds_there_are():
    trials = [measured(CACHED, 0, 0), failed(next(NUMBERS), config=CACHED)]

    none, one = feasibility(trials), feasibility(trials, FEW_FAILURES, NO_MORE_FAILURES)

    assert none.probability(CACHED) == pytest.approx(none.failure_rate(CACHED).p_sound)
    assert one.probability(CACHED) > 0.8 * none.probability(CACHED)


def test_what_cannot_be_shown_in_a_study_may_ship_when_nothing_ever_failed():
    strict = Constraint(metric="failure_rate", limit=1e-5)
    clean = [measured(CACHED, 0, 0), measured(CACHED, 0, 0)]

    assert feasibility(clean, strict).probability(CACHED) < 0.9
    assert feasibility(clean, strict).may_ship(CACHED)
    assert not feasibility([measured(CACHED, 0)], QUICK, strict).may_ship(CACHED)
    assert not feasibility([*clean, measured(CACHED, 1, 0)], strict).may_ship(CACHED)


def test_trials_that_are_no_test_of_the_load_do_not_count():
    at_fixed_rate = measured(CACHED, 4000, role=Role.LATENCY, arm="winner", block=0)
    elsewhere = measured(CACHED, 4000, role=Role.ROBUSTNESS, arm="candidate", block=0)
    lost = measured(CACHED, 4000, state=State.INVALID)
    running = measured(CACHED, 4000, state=State.RUNNING)

    known = feasibility([measured(CACHED, 0), at_fixed_rate, elsewhere, lost, running], FEW_FAILURES)

    assert known.failure_rate(CACHED).trials == 1
    assert known.failure_rate(CACHED).failed == 0


def test_a_window_that_the_environment_spoiled_is_not_counted():
    spoiled = trial(
        next(NUMBERS), config=CACHED, windows=(window(8000), window(10, failed=7990, spoiled=True))
    )

    assert feasibility([spoiled], FEW_FAILURES).failure_rate(CACHED).requests == 8000


def test_a_configuration_is_the_same_after_its_numbers_went_through_a_file():
    known = feasibility([measured({"a": 1.0, "b": True}, 0)], FEW_FAILURES)

    assert known.failure_rate({"b": True, "a": 1}).trials == 1


def test_other_metrics_are_means_over_trials():
    trials = [measured(config, 0, p99_ms=p99) for config, p99 in ((CACHED, 15), (CACHED, 17), (EAGER, 30))]
    trials += [measured(EAGER, 0, p99_ms=29), *(measured(DEFAULT, 0, p99_ms=19 + n % 3) for n in range(9))]

    known = feasibility(trials, QUICK)

    assert known.may_ship(CACHED)
    assert known.is_ruled_out(EAGER)
    assert 0.1 < known.probability(DEFAULT) < 0.6


def test_another_metric_may_be_bounded_by_the_defaults():
    no_slower = Constraint(metric="latency_p99_ms", limit=None)
    trials = [measured(DEFAULT, 0, p99_ms=20 + 0.2 * (n % 3)) for n in range(9)]
    trials += [measured(CACHED, 0, p99_ms=20.1) for _ in range(4)]
    trials += [measured(EAGER, 0, p99_ms=30) for _ in range(4)]

    known = feasibility(trials, no_slower)

    assert known.may_ship(CACHED)
    assert known.is_ruled_out(EAGER)
    assert known.may_ship(DEFAULT)


def test_the_default_keeps_every_bound_by_itself():
    trials = [measured(DEFAULT, 200, 300) for _ in range(4)]

    assert feasibility(trials, NO_MORE_FAILURES).may_ship(DEFAULT)
    assert feasibility(trials, FEW_FAILURES).is_ruled_out(DEFAULT)


def test_two_configurations_are_compared_by_how_often_they_fail():
    trials = [measured(CACHED, 20, 25) for _ in range(6)] + [measured(EAGER, 60, 50) for _ in range(6)]

    known = feasibility(trials, FEW_FAILURES)

    assert known.is_no_worse(EAGER, than=CACHED) < 0.05
    assert known.is_no_worse(CACHED, than=EAGER) > 0.9
    assert feasibility(trials).is_no_worse(EAGER, than=CACHED) == 1.0


def test_an_assessment_names_each_constraint_with_what_was_seen():
    trials = [baseline(0, REQUESTS), *(measured(CACHED, 23, 25, p99_ms=5.0) for _ in range(3))]

    started, failures, p99 = feasibility(trials, FEW_FAILURES, QUICK).assess(CACHED)

    assert (started.constraint, started.metric, started.seen) == ("every trial works", "started", None)
    assert started.probability > 0.9
    assert (failures.constraint, failures.limit) == ("failure_rate <= 0.001", 0.001)
    assert failures.seen.value == pytest.approx(0.003)
    assert failures.seen.low < 0.003 < failures.seen.high
    assert failures.of_default.value == 0.0
    assert failures.probability < 0.05
    assert p99.seen.value == pytest.approx(5.0)
    assert p99.of_default is None


def test_what_keeps_a_configuration_from_shipping_is_named_the_worst_first():
    failing = feasibility(
        [measured(DEFAULT, 0), *(measured(CACHED, 400, p99_ms=30) for _ in range(4))], QUICK, FEW_FAILURES
    )
    crashing = feasibility(
        [measured(CACHED, 0), *(failed(next(NUMBERS), config=CACHED) for _ in range(3))], FEW_FAILURES
    )

    assert [each.metric for each in failing.doubts(CACHED)] == ["failure_rate", "latency_p99_ms"]
    assert [each.metric for each in crashing.doubts(CACHED)] == ["started"]
    assert crashing.doubts(CACHED)[0].finding == "fails to start or to serve the load 3 times in 4"
    assert feasibility([measured(CACHED, 0)], FEW_FAILURES).doubts(CACHED) == ()


def measured_in_two(config: Config, in_many: int, in_few: int) -> Trial:
    """Write down a trial with one round of a load of many requests, and of one of few."""
    parts = {
        "many": window(100 * REQUESTS - in_many, failed=in_many),
        "few": window(REQUESTS - in_few, failed=in_few),
    }
    return trial(next(NUMBERS), config=config, windows=(join(parts),))


def test_failures_under_a_load_of_few_requests_are_not_lost_among_the_many():
    trials = [measured_in_two(each, 0, failed) for each, failed in ((DEFAULT, 0), (CACHED, 80)) * 4]

    known = judge_feasibility(trials, [FEW_FAILURES], DEFAULT)
    found = {each.constraint: each.probability for each in known.assess(CACHED)}

    assert Feasibility(trials, [FEW_FAILURES], DEFAULT).may_ship(CACHED)
    assert not known.may_ship(CACHED)
    assert known.is_ruled_out(CACHED)
    assert known.may_ship(DEFAULT)
    assert list(found) == [EVERY_TRIAL, f"{FEW_FAILURES} (many)", f"{FEW_FAILURES} (few)"]
    assert found[f"{FEW_FAILURES} (few)"] < 0.05
    assert found[f"{FEW_FAILURES} (many)"] > 0.9
    assert known.doubts(CACHED)[0].constraint == f"{FEW_FAILURES} (few)"


def test_one_load_is_judged_as_before():
    trials = [measured(CACHED, 1), measured(DEFAULT, 0)]

    assert type(judge_feasibility(trials, [FEW_FAILURES], DEFAULT)) is Feasibility


class TestOnSeveralHosts:
    HOSTS = Hosts(names=tuple(f"web{number}" for number in range(8)), across=AcrossHosts.WORST)

    def share(self, holds: Callable[[Feasibility], bool], *rates: float) -> float:
        """Return how often it holds where the default fails 0.29 % and a candidate as given on each host."""
        rng = np.random.default_rng(11)
        found = []
        for _ in range(20):
            trials = [
                replace(each, host=name)
                for name, rate in zip(self.HOSTS.names, np.resize(rates, 8), strict=True)
                for each in drawn(rng, DEFAULT, 0.0029, 8) + drawn(rng, CACHED, rate, 6)
            ]
            found.append(holds(judge_feasibility(trials, (NO_MORE_FAILURES,), DEFAULT, self.HOSTS)))
        return float(np.mean(found))

    def test_what_is_as_the_default_on_each_may_ship_as_often_as_on_one(self):
        assert self.share(lambda known: known.may_ship(CACHED), 0.0028) > 0.4
        assert self.share(lambda known: known.is_ruled_out(CACHED), 0.0028) < 0.1
        assert self.share(lambda known: known.probability(CACHED) >= 0.5, 0.0028) > 0.7

    def test_what_is_worse_on_each_by_what_one_alone_could_not_show_may_not_ship(self):
        assert self.share(lambda known: known.may_ship(CACHED), 0.0048) < 0.1

    def test_what_fails_on_one_of_them_may_not_ship(self):
        assert self.share(lambda known: known.may_ship(CACHED), *[0.0028] * 7, 0.012) < 0.1
