import re
from dataclasses import replace

import pytest

from tests.unit.bench import Bench, Happening, scripted
from tests.unit.simulation import SMALL_PLAN
from tests.unit.trials import window
from tuner.errors import Crashed, LoadFailed, Stalled
from tuner.hosts.connection_room import SPARE_FILES
from tuner.measure import counters, trial
from tuner.measure import window as load_module
from tuner.measure.sending import GRACE_S
from tuner.measure.trial import NO_JUDGES, Judges, measure_trial, warm_up
from tuner.measure.validity import BaselineFacts, RetryBudget
from tuner.measure.window import run_window
from tuner.records import Blame, Check

PLAN = replace(SMALL_PLAN, windows=(2, 3))
"""One second of warm-up, then at the most three windows of one second."""
FINE = Happening()
STOLEN = Happening(stolen=0.2)
GARBAGE = Happening(garbage=True)
NOTHING = Happening(rate=0)
ALL_503 = Happening(rate=0, failures={"status": 9000})


@pytest.fixture
def bench(monkeypatch):
    """Give a bench whose windows take no time."""
    made = Bench()
    for module in (counters, load_module, trial):
        monkeypatch.setattr(module, "time", made.clock)
    return made


class Measured:
    """What one trial gave."""

    def __init__(self, bench, *, plan=PLAN, judges=NO_JUDGES, load=None):
        self.windows = []
        with bench.deployed() as deployment:
            self.outcome = measure_trial(
                deployment, load or bench.load, plan, judges, RetryBudget(), self.windows.append
            )


def checks(window):
    return {verdict.check for verdict in window.verdicts}


def said(window):
    return " ".join(verdict.reason for verdict in window.verdicts)


@pytest.mark.parametrize(
    ("pool", "growth_s", "slices", "steady"),
    [
        ([2, 3, 5, 9, 17, 33, 33], 20.0, 6, True),  # 33 at the end of the fifth, and of the sixth as well
        ([2, 2], 20.0, 1, True),
        (range(2, 40), 8.0, 8, False),
        ([2, 3, 5, 9], 0.0, 1, True),
    ],
)
def test_a_pool_that_grows_is_waited_for(pool, growth_s, slices, steady):
    sizes = [*pool]
    made = []

    def measure(duration_s, **_):
        counters = {"server_processes_before": sizes[len(made)], "server_processes": sizes[len(made) + 1]}
        made.append(replace(window(1000), duration_s=duration_s, counters=counters))
        return made[-1]

    seen, is_steady = warm_up(measure, replace(PLAN, growth_s=growth_s), spread=0.01)

    assert (len(seen), is_steady) == (slices, steady)


def test_a_trial_has_its_warm_up_and_all_its_windows(bench):
    measured = Measured(bench)

    assert measured.outcome.steady
    assert measured.outcome.pruned is None
    assert [window.correct for window in measured.windows] == [1000, 1000, 1000]
    assert [window.verdicts for window in measured.windows] == [(), (), ()]
    assert [float(argv[1]) for argv in bench.asked] == [1, 1, 1, 1]


def test_a_window_knows_when_it_was_how_long_and_how_busy_the_generator(bench):
    bench.script = scripted(FINE, Happening(generator_busy=0.97, lasts=1.02))

    first = Measured(bench).windows[0]

    assert first.started_s == bench.began_s + 1.0
    assert first.duration_s == pytest.approx(1.02)
    assert first.generator_cpu == pytest.approx(0.97)
    assert checks(first) == {Check.SATURATED}
    assert first.counters["elapsed_s"] == pytest.approx(1.02)


def test_a_server_from_which_nothing_comes_is_stalled(bench):
    bench.script = scripted(NOTHING)

    with pytest.raises(Stalled, match=r"no correct response in 1\.0 s of load"):
        Measured(bench)
    assert len(bench.asked) == 1


def test_a_server_that_stops_answering_in_its_second_window_is_stalled_and_the_first_is_kept(bench):
    bench.script = scripted(FINE, FINE, NOTHING)
    kept = []

    with bench.deployed() as deployment, pytest.raises(Stalled, match="the server answered no request"):
        measure_trial(deployment, bench.load, PLAN, NO_JUDGES, RetryBudget(), kept.append)
    assert [window.correct for window in kept] == [1000]


def test_a_server_that_answers_only_503_is_stalled_with_what_it_said(bench):
    bench.script = scripted(ALL_503)

    said = r"9,000 of 9,000 requests failed, 100.00 % \(9,000 answered with another status\)"
    with pytest.raises(Stalled, match=said):
        Measured(bench)


def test_a_server_that_dies_under_load_has_crashed(bench):
    bench.script = scripted(FINE, FINE, Happening(kills_server=True))

    with pytest.raises(Crashed, match="it was killed by signal 11"):
        Measured(bench)
    assert len(bench.asked) == 3


def test_a_server_that_dies_with_the_generator_has_crashed_too(bench):
    bench.script = scripted(Happening(kills_server=True, garbage=True))

    with pytest.raises(Crashed):
        Measured(bench)


def test_output_that_is_not_understood_twice_in_a_row_is_a_failed_load(bench):
    bench.script = scripted(FINE, GARBAGE)

    with pytest.raises(
        LoadFailed,
        match=re.escape("failed 2 times in a row with this configuration, but not with the default"),
    ):
        Measured(bench)
    assert len(bench.asked) == 3


def test_output_that_is_not_understood_once_is_measured_again_and_kept(bench):
    bench.script = scripted(FINE, FINE, GARBAGE, FINE)

    measured = Measured(bench)

    assert [window.correct for window in measured.windows] == [1000, 0, 1000, 1000]
    assert [window.is_valid for window in measured.windows] == [True, False, True, True]
    assert "Segmentation" in measured.windows[1].verdicts[0].reason


def test_a_generator_that_fails_once_when_no_retry_is_left_is_not_the_configurations_fault(bench):
    bench.script = scripted(FINE, STOLEN, STOLEN, FINE, STOLEN, FINE, GARBAGE)

    measured = Measured(bench)

    assert [window.is_valid for window in measured.windows] == [False, False, True, False, True, False]


def test_a_generator_that_runs_out_of_ports_again_and_again_is_no_fault_of_the_configuration(bench):
    bench.script = scripted(FINE, Happening(rate=0, fault="no local ports"))

    measured = Measured(bench)

    assert not any(window.is_valid for window in measured.windows)
    assert "the load generator reached one of its own limits: no local ports; lower `connections:`" in said(
        measured.windows[-1]
    )
    assert len(bench.asked) == 4


def test_a_generator_that_fails_again_and_again_where_the_default_failed_too_blames_no_configuration(bench):
    bench.script = scripted(FINE, GARBAGE)
    judges = replace(NO_JUDGES, baseline=BaselineFacts(is_healthy=False))

    measured = Measured(bench, judges=judges)

    assert not any(window.is_valid for window in measured.windows)


def test_a_generator_that_fails_all_through_the_warm_up_is_a_failed_load_not_a_slow_server(bench):
    """The end of the warm-up is not asked whether it is hopeless when the generator was."""
    bench.script = scripted(GARBAGE)
    judges = replace(NO_JUDGES, judge_warm_up=lambda window: f"{window.goodput_rps:.0f} responses/s")

    with pytest.raises(LoadFailed):
        Measured(bench, judges=judges)


def test_a_generator_that_hangs_is_cut_off_at_its_deadline(bench):
    bench.script = scripted(FINE, Happening(hangs=True), FINE)

    measured = Measured(bench)

    assert bench.deadlines_s[1] == 1 + GRACE_S
    assert "it had not ended 11 s after its trial" in measured.windows[0].verdicts[0].reason
    assert [window.is_valid for window in measured.windows] == [False, True, True, True]


def test_a_generator_that_always_hangs_is_a_failed_load_after_two_deadlines(bench):
    bench.script = scripted(FINE, Happening(hangs=True))

    with pytest.raises(LoadFailed, match="had not ended"):
        Measured(bench)
    assert bench.clock.now_s - bench.began_s == pytest.approx(1 + 2 * (1 + GRACE_S))


@pytest.mark.parametrize("silent", [NOTHING, Happening(hangs=True)], ids=["nothing", "hanging"])
def test_where_silence_is_borne_it_is_a_measurement(bench, silent):
    bench.script = scripted(FINE, silent)

    measured = Measured(bench, judges=replace(NO_JUDGES, allow_no_response=True))

    valid = [window for window in measured.windows if window.is_valid]
    assert valid
    assert all(window.correct == 0 for window in valid)


def test_a_window_that_the_environment_spoiled_is_kept_and_measured_again(bench):
    bench.script = scripted(FINE, FINE, STOLEN, FINE)

    measured = Measured(bench)

    assert [checks(window) for window in measured.windows] == [set(), {Check.STEAL}, set(), set()]
    assert measured.windows[1].verdicts[0].blame is Blame.ENVIRONMENT
    assert measured.outcome.pruned is None


def test_a_trial_gives_up_when_its_retries_are_spent(bench):
    bench.script = scripted(FINE, FINE, STOLEN)

    measured = Measured(bench)

    assert [window.is_valid for window in measured.windows] == [True, False, False, False]


def test_a_clock_that_was_set_spoils_its_window(bench):
    bench.script = scripted(FINE, Happening(clock_step_s=-3600.0), FINE)

    measured = Measured(bench)

    assert checks(measured.windows[0]) == {Check.CLOCK}
    assert measured.windows[0].duration_s == 1.0
    assert [window.is_valid for window in measured.windows] == [False, True, True, True]


def test_a_window_that_ended_too_soon_is_measured_again(bench):
    bench.script = scripted(FINE, Happening(lasts=0.3), FINE)

    measured = Measured(bench)

    assert checks(measured.windows[0]) == {Check.DURATION}
    assert len(measured.windows) == 4


def test_a_generator_that_says_that_no_time_has_passed_is_measured_again(bench):
    bench.script = scripted(FINE, Happening(reported_s=0.0), FINE)

    measured = Measured(bench)

    assert checks(measured.windows[0]) == {Check.DURATION}
    assert measured.windows[0].goodput_rps == 0.0
    assert len(measured.windows) == 4


def test_what_is_hopeless_after_the_warm_up_ends_there_and_its_slice_is_kept(bench):
    judges = replace(NO_JUDGES, judge_warm_up=lambda window: f"only {window.goodput_rps:.0f}/s")

    measured = Measured(bench, judges=judges)

    assert measured.outcome.pruned == "only 1000/s"
    assert len(measured.windows) == 1
    assert len(bench.asked) == 1


def test_a_warm_up_that_the_environment_spoiled_is_not_held_against_the_configuration(bench):
    bench.script = scripted(replace(STOLEN, rate=100.0), FINE)
    judges = replace(NO_JUDGES, judge_warm_up=lambda window: "hopeless" if window.goodput_rps < 500 else None)

    measured = Measured(bench, judges=judges)

    assert measured.outcome.pruned is None
    assert len(measured.windows) == 3


def test_pruning_is_asked_from_the_first_look_on_but_not_after_the_last_window(bench):
    asked = []
    judges = Judges(judge_warm_up=lambda _: None, prune=lambda windows: asked.append(len(windows)))

    Measured(bench, judges=judges)

    assert asked == [2]


def test_a_pruned_trial_keeps_the_windows_that_it_had(bench):
    judges = Judges(judge_warm_up=lambda _: None, prune=lambda _: "clearly worse")

    measured = Measured(bench, judges=judges)

    assert measured.outcome.pruned == "clearly worse"
    assert len(measured.windows) == 2


def test_spoiled_windows_are_not_shown_to_the_judge(bench):
    bench.script = scripted(FINE, STOLEN, FINE)
    seen = []
    judges = Judges(judge_warm_up=lambda _: None, prune=seen.extend)

    Measured(bench, judges=judges)

    assert all(window.is_valid for window in seen)
    assert len(seen) == 2


def test_a_warm_up_that_is_long_enough_lasts_until_goodput_stands_still(bench):
    rates = [100, 300, 600, 900, 1000, 1000, 1010, 1000, 1005]
    bench.script = lambda number, *_: Happening(rate=rates[min(number, 8)])
    plan = replace(PLAN, warmup_s=5, warmup_max_s=15)

    measured = Measured(bench, plan=plan)

    warm_up = len(bench.asked) - 3
    assert 7 <= warm_up <= 9
    assert measured.outcome.steady


def test_a_warm_up_that_never_stands_still_ends_at_its_most_and_is_marked(bench):
    bench.script = lambda number, *_: Happening(rate=100 * (number + 1))
    plan = replace(PLAN, warmup_s=5, warmup_max_s=15)

    measured = Measured(bench, plan=plan)

    assert len(bench.asked) == 15 + 3
    assert not measured.outcome.steady
    assert len(measured.windows) == 3


def test_noise_that_is_known_is_no_unsteadiness(bench):
    rates = [1000, 1100, 900, 1090, 910, 1100]
    bench.script = lambda number, *_: Happening(rate=rates[number % 6])
    plan = replace(PLAN, warmup_s=5, warmup_max_s=15)

    measured = Measured(bench, plan=plan, judges=replace(NO_JUDGES, spread=0.1))

    assert measured.outcome.steady
    assert len(bench.asked) == 6 + 3


def test_a_plan_with_windows_of_its_own_length_asks_for_them(bench):
    Measured(bench, plan=replace(PLAN, window_s=20, windows=(1, 1)))

    assert [float(argv[1]) for argv in bench.asked] == [1, 20]


def test_a_load_at_a_rate_is_sent_at_that_rate_from_the_warm_up_on(bench):
    Measured(bench, load=replace(bench.load, rate_rps=700.0))

    assert {argv[3] for argv in bench.asked} == {"700"}


def test_windows_that_end_after_so_many_requests_have_the_length_that_these_take(bench):
    counted = replace(bench.load, requests_total=1500, time_limit_s=60)
    slow = Happening(lasts=1 / 20, rate=500)  # 3 s of 60
    quick = Happening(lasts=1 / 40, rate=1000)  # 1.5 s
    bench.script = scripted(FINE, slow, quick, slow)

    measured = Measured(bench, load=counted)

    # The warm-up goes by time.
    assert [argv[1:2] + argv[4:] for argv in bench.asked] == [("1",), *[("60", "1500")] * 3]
    assert [(window.duration_s, window.correct) for window in measured.windows] == [
        (3.0, 1500),
        (1.5, 1500),
        (3.0, 1500),
    ]
    assert [window.verdicts for window in measured.windows] == [()] * 3
    assert [window.goodput_rps for window in measured.windows] == [500, 1000, 500]


def test_what_is_left_at_the_time_limit_has_failed_and_the_window_counts(bench):
    stuck = Happening(lasts=1.0, rate=10, failures={"timeout": 900})
    bench.script = scripted(FINE, stuck)

    measured = Measured(bench, load=replace(bench.load, requests_total=1500, time_limit_s=60))

    assert [(window.correct, window.failures.timeout) for window in measured.windows] == [(600, 900)] * 3
    assert all(window.is_valid for window in measured.windows)
    assert checks(measured.windows[0]) == {Check.ERRORS}


def test_the_generators_script_is_written_once_and_its_output_is_read(bench):
    with bench.deployed() as deployment:
        for _ in range(3):
            run_window(deployment, bench.load, 1.0)
        written = deployment.sandbox.written

    assert [path.name for path in written].count("script.json") == 1


def test_the_generator_may_open_its_connections_and_some_more(bench):
    seen = []

    with bench.deployed() as deployment:
        sandbox, run = deployment.sandbox, deployment.sandbox.run
        sandbox.run = lambda argv, **given: seen.append(given["open_files"]) or run(argv, **given)
        run_window(deployment, bench.load, 1.0, connections=50)

    assert seen == [50 + SPARE_FILES]


def test_failures_of_some_requests_are_counted_by_kind_and_told(bench):
    bench.script = scripted(FINE, Happening(failures={"read": 3, "timeout": 17}))

    window = Measured(bench).windows[0]

    assert window.failures.total == 20
    assert window.failure_rate == pytest.approx(20 / 1020)
    assert window.verdicts[0].check == Check.ERRORS
    assert window.verdicts[0].blame is Blame.CONFIGURATION
