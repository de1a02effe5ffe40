import math
import re

import pytest

from tests.unit.trials import DEFAULT, failed, trial, window
from tuner.errors import UsageError
from tuner.measure.rounds import join
from tuner.records import Metric, State
from tuner.study.objective import (
    STARTED,
    Constraint,
    Objective,
    failure_rate,
    parse_constraint,
    parse_objective,
    slacks,
    unmeasured,
)

FEW_FAILURES = Constraint(metric="failure_rate", limit=0.001)
SOUGHT = Constraint(metric="failure_rate", limit=0.001, default_may_fail=True)
QUICK = Constraint(metric="latency_p99_ms", limit=5.0)
WHERE = "study.yaml:9: constraints[0]"


def with_windows(*windows, **given):
    return trial(0, windows=windows, **given)


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("failure_rate <= 0.001", FEW_FAILURES),
        ("  failure_rate<=1e-3 ", FEW_FAILURES),
        ("latency_p99_ms <= 5", QUICK),
        ("latency_p50_ms <= +.5", Constraint(metric="latency_p50_ms", limit=0.5)),
        ("failure_rate <= 0.1%", FEW_FAILURES),
        ("failure_rate <= 0.7 %", Constraint(metric="failure_rate", limit=0.007)),
        ("latency_p99_ms <= 5ms", QUICK),
        ("latency_p99_ms <= .005 s", QUICK),
        ("latency_p99_ms <= 5000us", QUICK),
        ("latency_p50_ms <= 700 µs", Constraint(metric="latency_p50_ms", limit=0.7)),
        ("cpu_us_per_request <= 1.5ms", Constraint(metric="cpu_us_per_request", limit=1500.0)),
        ("latency_p99_ms <= 1234567.25", Constraint(metric="latency_p99_ms", limit=1234567.25)),
        ("memory_mib <= 1 GiB", Constraint(metric="memory_mib", limit=1024.0)),
        ("memory_mib<=default", Constraint(metric="memory_mib", limit=None)),
        ("failure_rate <= 0", Constraint(metric="failure_rate", limit=0.0)),
        ("failure_rate <= default", Constraint(metric="failure_rate", limit=None)),
        ("latency_p99_ms<=default", Constraint(metric="latency_p99_ms", limit=None)),
        ("failure_rate <= 0.001  unlike default", SOUGHT),
    ],
)
def test_a_bound_on_a_known_metric_is_read(text, constraint):
    assert parse_constraint(text, WHERE) == constraint
    assert parse_constraint(str(constraint), WHERE) == constraint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("failure_rate", "'failure_rate' is not a constraint"),
        ("failure_rate < 0.001", "is not a constraint. Write METRIC <= NUMBER"),
        ("failure_rate >= 0.001", "is not a constraint"),
        ("failure_rate < default", "METRIC <= default for no worse than the baseline"),
        ("failure_rate <= winner", "METRIC <= default for no worse than the baseline"),
        ("failure_rate <= ", "is not a constraint"),
        ("failure_rate <= 20ms", "'ms' is no unit of failure_rate. Write % or nothing after the number"),
        ("latency_p99_ms <= 1 %", "'%' is no unit of latency_p99_ms. Write ms, us, µs, s or nothing"),
        ("memory_mib <= 80 %", "'%' is no unit of memory_mib. Write MiB, GiB, KiB or nothing after"),
        ("latency_p99_ms <= 5 minutes", "'minutes' is no unit of latency_p99_ms"),
        ("failure_rate <= default%", "'default' is not a number"),
        ("failure_rate <= 0.1 % of all", "is not a constraint"),
        ("failure_rate <= nan", "is not a constraint"),
        ("failure_rate <= 1e", "'1e' is not a number"),
        ("failure_rate <= 1.2.3", "'1.2.3' is not a number"),
        ("failure_rate <= -1", "is -1. Give a number of at least 0"),
        ("failure_rate <= 1e999", "is inf. Give a number of at least 0"),
        (
            "failure_rate <= 250 %",
            "2.5 is no limit for failure_rate, a share of all requests. Give at",
        ),
        ("failures <= 1", "no metric has the name 'failures'. Did you mean failure_rate?"),
        (
            "latency_p90_ms <= 1",
            "Did you mean latency_p99_ms? Known metrics: failure_rate, cpu_us_per_request",
        ),
        ("failure_rate <= default unlike default", "contradicts itself. Give a number"),
        ("failure_rate <= 0.001 unlike winner", "is not a constraint"),
        ("failure_rate <= 0.001unlike default", "is not a constraint"),
        ("", "is not a constraint"),
    ],
)
def test_what_is_no_bound_is_refused_with_the_place_the_value_and_the_form(text, said):
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        parse_constraint(text, WHERE)
    assert str(refused.value).startswith(f"{WHERE}: ")


def test_a_bound_is_written_with_all_its_digits():
    assert str(parse_constraint("latency_p99_ms <= 20000 s", WHERE)) == "latency_p99_ms <= 20000000"


def test_an_objective_is_read_whatever_its_blanks():
    assert str(parse_objective([" maximize   goodput_rps "], WHERE)) == "maximize goodput_rps"


def test_an_objective_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(UsageError, match=r"no objective has the name 'minimize cost'.*maximize goodput_rps"):
        parse_objective(["minimize cost"], WHERE)


def test_goodput_may_be_weighed_against_one_cost():
    objective = parse_objective(["minimize latency_p99_ms", "maximize goodput_rps"], WHERE)

    assert objective.cost == "latency_p99_ms"
    assert str(objective) == "maximize goodput_rps, minimize latency_p99_ms"


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["minimize latency_p50_ms"],
        ["maximize goodput_rps", "maximize goodput_rps"],
        ["maximize goodput_rps", "minimize latency_p99_ms", "minimize cpu_us_per_request"],
    ],
)
def test_what_cannot_be_optimized_together_is_refused(texts):
    with pytest.raises(
        UsageError, match=r"cannot be the objective. Write maximize goodput_rps, alone or with"
    ):
        parse_objective(texts, WHERE)


def test_at_a_rate_a_metric_is_minimized_by_itself():
    objective = parse_objective([" minimize  latency_p99_ms"], WHERE)

    assert objective == Objective(metric=Metric.LATENCY_P99)
    assert str(objective) == "minimize latency_p99_ms"
    assert unmeasured(with_windows(window(100)), (), objective) == ("objective minimize latency_p99_ms",)


def test_a_cost_that_does_not_exist_names_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'minimize latency_p99_ms'"):
        parse_objective(["maximize goodput_rps", "minimize latency_p98_ms"], WHERE)


@pytest.mark.parametrize(("failures", "slack"), [(0, -1.0), (1, -0.0004), (10, 0.9957), (1000, 2.699)])
def test_the_slack_of_failures_is_positive_above_the_bound_on_a_log_scale(failures, slack):
    assert FEW_FAILURES.slack(with_windows(window(1000, failed=failures)), ()) == pytest.approx(
        slack, abs=1e-4
    )


def test_exactly_the_bound_is_feasible():
    assert FEW_FAILURES.slack(with_windows(window(999, failed=1)), ()) == 0.0


def test_a_bound_of_zero_is_broken_by_a_single_failure():
    none_at_all = Constraint(metric="failure_rate", limit=0.0)

    assert none_at_all.slack(with_windows(window(1000)), ()) <= 0
    assert none_at_all.slack(with_windows(window(1_000_000, failed=1)), ()) > 0


def test_a_bound_by_what_the_default_has_allows_a_quarter_more_failures():
    baselines = [with_windows(window(997, failed=3)), with_windows(window(996, failed=4))]
    relative = Constraint(metric="failure_rate", limit=None)

    assert relative.slack(with_windows(window(996, failed=4)), baselines) < 0
    assert relative.slack(with_windows(window(990, failed=10)), baselines) == pytest.approx(
        math.log10(0.01 / (1.25 * 0.0035))
    )


def test_a_bound_by_what_the_default_has_allows_a_few_failures_where_it_has_none():
    relative = Constraint(metric="failure_rate", limit=None)

    assert relative.slack(with_windows(window(9999, failed=1)), [with_windows(window(1000))]) < 0
    assert relative.slack(with_windows(window(9980, failed=20)), [with_windows(window(1000))]) > 0


def test_a_bound_by_what_the_default_has_is_kept_until_that_is_known():
    relative = Constraint(metric="failure_rate", limit=None)

    assert relative.slack(with_windows(window(0)), ()) < 0
    assert relative.slack(with_windows(window(0)), [failed(0, config=DEFAULT)]) < 0


def test_a_response_time_may_be_a_little_above_the_defaults():
    relative, baselines = Constraint(metric="latency_p99_ms", limit=None), [with_windows(window(p99_ms=20.0))]

    assert relative.slack(with_windows(window(p99_ms=20.9)), baselines) < 0
    assert relative.slack(with_windows(window(p99_ms=21.1)), baselines) > 0


def test_failures_are_counted_over_all_windows_of_a_trial():
    assert failure_rate(with_windows(window(980), window(1000, failed=20))) == 0.01


def test_failures_in_a_window_that_the_environment_spoiled_are_not_the_configurations():
    begun = with_windows(window(1000), window(500, failed=500, spoiled=True))

    assert failure_rate(begun) == 0.0
    assert FEW_FAILURES.slack(begun, ()) <= 0


def test_a_trial_in_which_nothing_was_answered_fails_completely():
    assert failure_rate(with_windows(window(0))) == 1.0
    assert FEW_FAILURES.slack(with_windows(window(0)), ()) == 3.0


def test_the_latency_of_a_trial_comes_from_the_added_histograms():
    quick = window(1000, p99_ms=1.0, histogram={1.0: 1000})
    slow = window(1000, p99_ms=9.0, histogram={1.0: 985, 9.0: 15})

    assert QUICK.slack(with_windows(quick, slow), ()) == pytest.approx(math.log10(1.0 / 5))


def test_without_histograms_the_slowest_window_speaks():
    begun = with_windows(window(p99_ms=1.0), window(p99_ms=9.0))

    assert QUICK.slack(begun, ()) == pytest.approx(math.log10(9 / 5))


def test_a_trial_without_response_times_breaks_no_bound_on_them():
    assert QUICK.slack(with_windows(window()), ()) <= 0


def test_a_failed_trial_breaks_only_the_bound_that_it_must_start():
    found = slacks(failed(0, config=DEFAULT), (FEW_FAILURES, QUICK), ())

    assert found == {STARTED: 1.0, "failure_rate <= 0.001": 0.0, "latency_p99_ms <= 5": 0.0}


def test_a_trial_that_fails_after_its_first_window_breaks_the_same_bound():
    begun = with_windows(window(1000), state=State.FAILED)

    assert slacks(begun, (FEW_FAILURES,), ()) == {STARTED: 1.0, "failure_rate <= 0.001": 0.0}


@pytest.mark.parametrize("state", [State.COMPLETE, State.PRUNED])
def test_a_measured_trial_has_the_slack_of_every_bound(state):
    found = slacks(with_windows(window(900, failed=100), state=state), (FEW_FAILURES,), ())

    assert found == {STARTED: -1.0, "failure_rate <= 0.001": pytest.approx(2.0)}


def test_without_any_bounds_every_measured_trial_is_feasible():
    assert slacks(with_windows(window(1, failed=999)), (), ()) == {STARTED: -1.0}


def test_a_bound_is_broken_that_is_broken_under_one_of_several_loads():
    bound = parse_constraint("failure_rate <= 0.01", "here")
    fine, failing = window(1_000_000), window(900, failed=100)
    made = trial(1, windows=(join({"many": fine, "few": failing}),))

    told = slacks(made, (bound,), ())

    assert told[str(bound)] == pytest.approx(1.0)  # a decade above
    assert bound.slack(made, ()) < 0
