import math

import pytest

from tuner.ports import Failures
from tuner.records import Blame, Role, State, Trial, Verdict, Window
from tuner.statistics.mechanism import FIGURES, attribute_mechanisms, compare_mechanisms


def window(correct, verdicts=(), **counters):
    return Window(
        started_s=0.0,
        duration_s=5.0,
        correct=correct,
        failures=Failures(),
        counters={"elapsed_s": 5.0, **counters},
        verdicts=verdicts,
    )


def trial(*windows, state=State.COMPLETE):
    return Trial(number=0, role=Role.CONFIRM, config={}, state=state, started_s=0.0, windows=windows)


def trials(correct, **counters):
    """Six trials of two windows, each with its value of every counter."""
    rows = [dict(zip(counters, values, strict=True)) for values in zip(*counters.values(), strict=True)]
    return [trial(window(correct, **row), window(correct, **row)) for row in rows]


OVERFLOWS = [9_400.0, 9_700.0, 9_500.0, 9_600.0, 9_450.0, 9_350.0]


def test_overflows_that_are_gone_are_said_per_second():
    (found,) = compare_mechanisms(
        trials(50_000, listen_overflows=OVERFLOWS), trials(80_000, listen_overflows=[0.0] * 6)
    )

    assert found.sentence == "listen overflows per s 1,900 → 0"
    assert (found.default, found.winner, found.ratio) == (1_900.0, 0.0, 0.0)


def test_context_switches_are_said_per_request():
    (found,) = compare_mechanisms(
        trials(50_000, context_switches=[105_000.0, 104_000.0, 106_000.0, 105_500.0, 104_500.0, 105_000.0]),
        trials(80_000, context_switches=[24_000.0, 24_500.0, 23_500.0, 24_000.0, 25_000.0, 23_000.0]),
    )

    assert found.sentence == "context switches per request 2.1 → 0.30"
    assert found.ratio == pytest.approx(0.3 / 2.1)


def test_cpu_is_said_in_microseconds_per_request():
    (found,) = compare_mechanisms(
        trials(100_000, server_cpu_s=[3.1, 3.12, 3.08, 3.1, 3.11, 3.09]),
        trials(150_000, server_cpu_s=[2.85, 2.84, 2.86, 2.85, 2.85, 2.85]),
    )

    assert found.sentence == "server CPU µs per request 31 → 19"


def test_what_appears_with_the_winner_has_an_infinite_ratio():
    (found,) = compare_mechanisms(
        trials(50_000, resets_sent=[0.0] * 6),
        trials(50_000, resets_sent=[500.0, 510.0, 490.0, 505.0, 495.0, 500.0]),
    )

    assert found.sentence == "resets sent per s 0 → 100"
    assert found.ratio == math.inf


def test_what_moved_most_comes_first():
    default = trials(
        50_000, listen_overflows=OVERFLOWS, context_switches=[100_000.0, 101_000.0, 99_000.0] * 2,
    )  # fmt: skip
    winner = trials(
        50_000, listen_overflows=[0.0] * 6, context_switches=[50_000.0, 50_500.0, 49_500.0] * 2,
    )  # fmt: skip

    names = [found.name for found in compare_mechanisms(default, winner)]

    assert names == ["listen overflows per s", "context switches per request"]


def test_a_difference_within_the_spread_is_not_said():
    default = trials(50_000, context_switches=[60_000.0, 100_000.0, 140_000.0, 80_000.0, 120_000.0, 90_000.0])
    winner = trials(50_000, context_switches=[70_000.0, 110_000.0, 100_000.0, 60_000.0, 80_000.0, 75_000.0])

    assert compare_mechanisms(default, winner) == ()


def test_a_sure_difference_of_two_percent_is_not_worth_a_line():
    default = trials(50_000, context_switches=[100_000.0, 100_010.0, 99_990.0] * 2)
    winner = trials(50_000, context_switches=[98_000.0, 98_010.0, 97_990.0] * 2)

    assert compare_mechanisms(default, winner) == ()


def test_small_numbers_do_not_lead_the_list():
    default = trials(50_000, retransmitted_segments=[0.0] * 6, context_switches=[100_000.0] * 6)
    winner = trials(50_000, retransmitted_segments=[0.05] * 6, context_switches=[50_000.0] * 6)

    names = [found.name for found in compare_mechanisms(default, winner)]

    assert names[0] == "context switches per request"


def test_one_trial_has_no_spread_and_so_no_line():
    default = trials(50_000, listen_overflows=[9_500.0])
    winner = trials(50_000, listen_overflows=[0.0])

    assert compare_mechanisms(default, winner) == ()


def test_windows_that_were_spoiled_and_trials_that_failed_are_left_out():
    spoiled = (Verdict(check="steal", blame=Blame.ENVIRONMENT, reason="stolen."),)
    good = [trial(window(50_000, listen_overflows=count)) for count in OVERFLOWS]
    bad = [
        trial(window(50_000, spoiled, listen_overflows=1e9)),
        trial(window(50_000, listen_overflows=1e9), state=State.FAILED),
    ]
    winner = trials(50_000, listen_overflows=[0.0] * 6)

    assert compare_mechanisms([*good, *bad], winner) == compare_mechanisms(good, winner)


def test_counters_that_one_side_lacks_are_not_compared():
    default = trials(50_000, server_switches_involuntary=[100.0, 110.0, 105.0] * 2)
    winner = trials(50_000, context_switches=[24_000.0] * 6)

    assert compare_mechanisms(default, winner) == ()


def test_a_window_without_a_correct_response_has_nothing_per_request():
    default = [trial(window(0, context_switches=1e6)) for _ in range(6)]

    assert compare_mechanisms(default, trials(50_000, context_switches=[1e5] * 6)) == ()


def test_every_figure_has_a_name_of_its_own():
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)


def test_failed_requests_of_a_setting_are_left_to_what_counts_them():
    """Where most trials have none, a mean of logarithms is no share that anybody could count."""
    bad = Window(started_s=0.0, duration_s=5.0, correct=95_000, failures=Failures(status=5_000))
    some = [trial(bad, bad) for _ in range(3)] + trials(100_000, server_cpu_s=[3.1, 3.0, 3.05])
    all_trials = [*trials(100_000, server_cpu_s=[3.1, 3.12, 3.08, 3.1]), *some]

    found = attribute_mechanisms(all_trials, {"a": [False] * 4 + [True] * 6})

    assert "failed" not in str(found)
