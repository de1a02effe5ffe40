import dataclasses

import pytest

from tests.unit.measure.golden import GoldenWindow
from tuner.measure.validity import BaselineFacts, Thresholds, WindowFacts, judge
from tuner.ports import Failures, LoadResult
from tuner.records import Blame, Check, Window, is_censored

QUIET = {
    "elapsed_s": 5.0,
    "cpus": 2.0,
    "steal_share": 0.003,
    "foreign_cpu_share": 0.02,
    "foreign_cpu_error_s": 0.012,
    "clock_step_s": 0.00002,
    "memory_total_bytes": 4e9,
    "memory_available_bytes": 3e9,
    "server_rss_bytes": 2e7,
    "time_wait": 120.0,
}
GOOD = LoadResult(duration_s=5.01, correct=100_000, failures=Failures())


def window(result=GOOD, counters=None, **facts):
    return WindowFacts(asked_s=5.0, result=result, counters={**QUIET, **(counters or {})}, **facts)


def failing(**failures):
    return dataclasses.replace(GOOD, failures=Failures(**failures))


def only(facts):
    (verdict,) = judge(facts)
    return verdict


def test_a_quiet_window_has_no_verdict():
    assert judge(window()) == ()


def test_missing_counters_blame_nobody():
    assert judge(WindowFacts(asked_s=5.0, result=GOOD, counters={})) == ()


@pytest.mark.parametrize(
    ("counter", "limit", "check", "blame"),
    [
        ("steal_share", 0.02, Check.STEAL, Blame.WARNING),
        ("steal_share", 0.05, Check.STEAL, Blame.ENVIRONMENT),
        # Two standard errors of 0.012 s in 5 s.
        ("foreign_cpu_share", 0.20 + 0.0048, Check.FOREIGN, Blame.WARNING),
        ("foreign_cpu_share", 0.30 + 0.0048, Check.FOREIGN, Blame.ENVIRONMENT),
        ("clock_step_s", 0.010, Check.CLOCK, Blame.ENVIRONMENT),
    ],
)
def test_a_check_speaks_from_its_limit_on(counter, limit, check, blame):
    below = judge(window(counters={counter: limit * 0.999}))
    above = only(window(counters={counter: limit * 1.001}))

    assert blame not in {verdict.blame for verdict in below}
    assert (above.check, above.blame) == (check, blame)


@pytest.mark.parametrize("in_row", [1, 2, 5])
def test_a_load_host_that_is_lost_is_never_the_configurations_fault(in_row):
    facts = window(result=None, lost="load host b: the connection was closed.", problems_in_row=in_row)

    verdict = only(facts)

    assert (verdict.check, verdict.blame) == (Check.GENERATOR, Blame.ENVIRONMENT)
    assert verdict.reason == "load host b: the connection was closed; tuner measures the window again."


def test_a_load_of_so_many_requests_may_take_any_time_within_its_limit():
    slow, quick = (
        window(dataclasses.replace(GOOD, duration_s=lasts), requests_total=1000) for lasts in (4, 0.5)
    )

    assert judge(slow) == judge(quick) == ()


def test_a_number_of_requests_that_is_over_at_once_asks_for_more():
    verdict = only(window(dataclasses.replace(GOOD, duration_s=0.1), requests_total=1000))

    assert (verdict.check, verdict.blame) == (Check.DURATION, Blame.WARNING)
    assert verdict.reason.startswith("1,000 requests took 0.10 s")
    assert "`load.requests_total:` to 5,000 or more" in verdict.reason


def test_requests_that_were_never_sent_have_failed_and_the_reason_is_told():
    gave_up = LoadResult(
        duration_s=3, correct=99_064, failures=Failures(read=936), aborted="apr_socket_recv: reset (104)"
    )

    verdict = only(window(gave_up, requests_total=100_000))

    assert (verdict.check, verdict.blame) == (Check.ERRORS, Blame.WARNING)
    assert "936 of 100,000 requests failed" in verdict.reason
    assert "the generator gave up: apr_socket_recv: reset (104)" in verdict.reason


def test_a_generator_that_ran_out_of_sockets_is_to_blame_for_what_it_never_sent():
    gave_up = LoadResult(
        duration_s=3, correct=10, failures=Failures(connect=90), aborted="a", generator_fault="no port"
    )

    verdict = only(window(gave_up, requests_total=100))

    assert (verdict.check, verdict.blame) == (Check.GENERATOR, Blame.ENVIRONMENT)


def test_a_clock_set_back_is_seen_as_well():
    assert only(window(counters={"clock_step_s": -2.0})).check == Check.CLOCK


def test_foreign_cpu_within_the_rounding_of_many_processes_is_not_sure():
    # 100 busy processes: 200 numbers rounded down to 10 ms.
    counters = {"elapsed_s": 1.0, "foreign_cpu_share": 0.14, "foreign_cpu_error_s": 0.01 * (200 / 6) ** 0.5}

    assert judge(window(counters=counters)) == ()


def test_stolen_cpu_of_a_real_machine_spoils_the_window():
    verdicts = judge(window(counters=GoldenWindow("stolen").counters()))

    assert [verdict.check for verdict in verdicts] == [Check.STEAL, Check.FOREIGN]
    assert {verdict.blame for verdict in verdicts} == {Blame.ENVIRONMENT}
    assert "6.8 %" in verdicts[0].reason
    assert "129 % of one CPU" in verdicts[1].reason


def test_a_real_machine_with_little_else_to_do_passes_every_gate():
    counters = GoldenWindow("loaded").counters()

    assert 0.05 < counters["foreign_cpu_share"] < 0.15, "what waking halted CPUs costs, and nobody's work"
    assert judge(window(counters=counters)) == ()


def test_a_generator_that_is_too_busy_for_a_rate_is_never_the_configurations_fault():
    verdict = only(window(rate_rps=20_000, generator_cpu=0.97))

    assert (verdict.check, verdict.blame) == (Check.SCHEDULE, Blame.ENVIRONMENT)
    assert "97 % of its CPUs" in verdict.reason
    assert "20,000 requests/s" in verdict.reason


def test_a_generator_that_has_time_keeps_a_rate():
    assert judge(window(rate_rps=20_000, generator_cpu=0.85)) == ()


def test_a_saturated_generator_is_a_warning():
    verdict = only(window(generator_cpu=0.93))

    assert (verdict.check, verdict.blame) == (Check.SATURATED, Blame.WARNING)
    assert "93 %" in verdict.reason


@pytest.mark.parametrize(
    ("generator", "server_idle", "is_limit"),
    [(0.93, 0.03, False), (0.97, 0.03, False), (0.99, 0.03, True), (0.96, 0.3, True), (0.93, 0.3, False)],
)
def test_a_generator_that_is_busy_beside_a_full_server_is_no_limit(generator, server_idle, is_limit):
    counters = {"server_cpus": 1.0, "elapsed_s": 5.0, "server_idle_s": 5.0 * server_idle}

    verdicts = judge(window(generator_cpu=generator, counters=counters))

    assert [each.check for each in verdicts] == [Check.SATURATED] * is_limit


@pytest.mark.parametrize(
    ("cpus", "censored"),
    [((), False), ((0.89, 0.5), False), ((0.95, 0.89), False), ((0.95, 0.89, 1.0), True)],
)
def test_goodput_is_a_lower_bound_where_the_generator_was_saturated_in_most_windows(cpus, censored):
    windows = [
        Window(
            started_s=0.0, duration_s=5.0, correct=1, failures=Failures(),
            verdicts=judge(window(generator_cpu=cpu)),
        )
        for cpu in cpus
    ]  # fmt: skip

    assert is_censored(windows) is censored


@pytest.mark.parametrize("duration_s", [4.44, 5.56])
def test_a_window_of_the_wrong_length_is_measured_again(duration_s):
    verdict = only(window(dataclasses.replace(GOOD, duration_s=duration_s)))

    assert (verdict.check, verdict.blame) == (Check.DURATION, Blame.ENVIRONMENT)
    assert f"{duration_s} s" in verdict.reason


@pytest.mark.parametrize("duration_s", [4.46, 5.54])
def test_a_window_may_be_a_little_longer_or_shorter(duration_s):
    assert judge(window(dataclasses.replace(GOOD, duration_s=duration_s))) == ()


def test_a_generator_that_failed_once_is_the_environments_fault():
    verdict = only(window(None, problem="wrk: no summary in 12 bytes of output."))

    assert (verdict.check, verdict.blame) == (Check.GENERATOR, Blame.ENVIRONMENT)
    assert "no summary in 12 bytes of output" in verdict.reason


def test_a_generator_that_fails_again_for_one_configuration_alone_counts_against_it():
    verdict = only(window(None, problem="killed at its deadline", problems_in_row=2))

    assert (verdict.check, verdict.blame) == (Check.GENERATOR, Blame.CONFIGURATION)


def test_a_generator_that_fails_with_the_default_too_is_never_the_configurations_fault():
    verdict = only(
        window(None, problem="crashed", problems_in_row=5, baseline=BaselineFacts(is_healthy=False))
    )

    assert verdict.blame is Blame.ENVIRONMENT


def test_a_generator_that_gave_up_is_asked_why_and_not_how_long_it_ran():
    said = "apr_socket_recv: Connection reset by peer (104)"
    gave_up = dataclasses.replace(GOOD, duration_s=0.2, aborted=said)

    verdict = only(window(gave_up))

    assert verdict.check == Check.GENERATOR
    assert "Connection reset by peer (104)" in verdict.reason


def test_a_generator_without_ports_or_files_is_not_the_servers_failure():
    fault = "Cannot assign requested address"
    out_of_ports = dataclasses.replace(failing(connect=50_000), generator_fault=fault)

    verdict = only(window(out_of_ports))

    assert (verdict.check, verdict.blame) == (Check.GENERATOR, Blame.ENVIRONMENT)
    assert "Cannot assign requested address" in verdict.reason


@pytest.mark.parametrize(
    ("failures", "blame"),
    [(99, None), (101, Blame.WARNING), (1_009, Blame.WARNING), (1_011, Blame.CONFIGURATION)],
)
def test_failed_requests_warn_above_one_in_a_thousand_and_are_blamed_above_one_in_a_hundred(failures, blame):
    verdicts = judge(window(failing(timeout=failures)))

    assert [verdict.blame for verdict in verdicts] == ([] if blame is None else [blame])
    assert all(f"({failures:,} not answered in time)" in verdict.reason for verdict in verdicts)


def test_a_server_that_answers_503_is_blamed_however_fast_it_is():
    verdict = only(window(LoadResult(duration_s=5.0, correct=10, failures=Failures(status=500_000))))

    assert verdict.blame is Blame.CONFIGURATION
    assert "100.00 %" in verdict.reason


def test_a_server_that_answers_nothing_is_blamed():
    verdict = only(window(LoadResult(duration_s=5.0, correct=0, failures=Failures())))

    assert (verdict.check, verdict.blame) == (Check.ERRORS, Blame.CONFIGURATION)


def test_responses_of_a_wrong_length_are_blamed_on_the_configuration():
    verdicts = judge(window(failing(length=600)))

    assert [verdict.check for verdict in verdicts] == [Check.BODY, Check.ERRORS]
    assert verdicts[0].blame is Blame.CONFIGURATION
    assert "600 of 100,600" in verdicts[0].reason


def test_half_of_all_ports_waiting_is_how_close_settles_and_nothing_is_wrong():
    assert judge(window(counters={"time_wait": 14_110.0})) == ()


def test_most_ports_waiting_is_a_warning_while_connections_are_made():
    verdict = only(window(counters={"time_wait": 20_000.0}))

    assert (verdict.check, verdict.blame) == (Check.PORTS, Blame.WARNING)
    assert "20,000 sockets in TIME_WAIT hold 71 % of the local ports" in verdict.reason


def test_connections_that_fail_for_want_of_ports_are_the_environments_fault():
    verdict = only(window(failing(connect=40_000), counters={"time_wait": 28_000.0}))

    assert (verdict.check, verdict.blame) == (Check.PORTS, Blame.ENVIRONMENT)


def test_a_wider_range_of_ports_bears_more():
    assert judge(window(counters={"time_wait": 20_000.0}, local_ports=64_000)) == ()


def test_a_full_time_wait_table_is_only_a_warning():
    assert only(window(counters={"time_wait_overflows": 12.0})).blame is Blame.WARNING


@pytest.mark.parametrize(
    "sign",
    [
        {"oom_kills": 1.0},
        {"pressure_memory_full_s": 0.06},
        {"swap_ins": 400.0},
        {"server_faults_major": 150.0},
    ],
)
def test_want_of_memory_is_blamed_on_the_server_only_if_it_holds_most_of_it(sign):
    small = only(window(counters=sign))
    large = only(window(counters={**sign, "server_rss_bytes": 6e8}))

    assert (small.check, small.blame) == (Check.MEMORY, Blame.ENVIRONMENT)
    assert (large.check, large.blame) == (Check.MEMORY, Blame.CONFIGURATION)
    assert "572 MiB" in large.reason


def test_a_server_that_the_kernel_killed_needed_too_much():
    killed = {"oom_kills": 1.0, "server_exits": 1.0, "server_rss_bytes": 0.0}

    assert only(window(counters=killed)).blame is Blame.CONFIGURATION


def test_major_faults_that_the_default_has_too_are_nothing_new():
    assert (
        judge(
            window(counters={"server_faults_major": 150.0}, baseline=BaselineFacts(major_faults_per_s=25.0))
        )
        == ()
    )


def test_settings_that_are_not_in_force_are_blamed_and_named():
    verdict = only(window(not_effective=("backlog is 128, 4096 was asked",)))

    assert (verdict.check, verdict.blame) == (Check.EFFECTIVE, Blame.CONFIGURATION)
    assert "backlog is 128, 4096 was asked" in verdict.reason


def test_a_cpu_quota_is_a_warning():
    verdict = only(window(counters={"throttled_periods": 12.0}))

    assert (verdict.check, verdict.blame) == (Check.QUOTA, Blame.WARNING)


def test_a_check_may_be_set_differently():
    strict = Thresholds(steal_fault=0.001)

    assert only(window(limits=strict)).check == Check.STEAL


def test_every_reason_is_one_sentence():
    bad = window(
        failing(timeout=9_000, length=3_000),
        counters={"steal_share": 0.3, "foreign_cpu_share": 1.4, "clock_step_s": 1.0, "oom_kills": 2.0},
        generator_cpu=0.99,
        not_effective=("a is 1, 2 was asked",),
    )

    for verdict in judge(bad):
        assert verdict.reason.endswith(".")
        assert ". " not in verdict.reason
        assert any(sign in verdict.reason for sign in "0123456789")
