"""How numbers read."""

import math

import pytest

from tuner.report import wording


@pytest.mark.parametrize(
    ("rate", "words"), [(128431.4, "128,431"), (99.94, "99.9"), (0.5, "0.5"), (0.0, "0"), (math.nan, "–")]
)
def test_rates_have_three_digits_at_least(rate: float, words: str) -> None:
    assert wording.say_rate(rate) == words


@pytest.mark.parametrize(
    ("value", "words"), [(2.8, "2.80 ms"), (1234.5, "1,234 ms"), (0.0123, "0.0123 ms"), (None, "–")]
)
def test_times_have_three_digits(value: float | None, words: str) -> None:
    assert wording.say_milliseconds(value) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (245, "4 min 05 s"), (4500, "1 h 15 min")],
)
def test_durations_are_in_whole_units(seconds: float, words: str) -> None:
    assert wording.say_duration(seconds) == words


def test_failures_come_with_their_share() -> None:
    assert wording.say_failures(0, 0) == "0"
    assert wording.say_failures(12, 400_000) == "12 (0.003 %)"
    assert wording.say_failures(518_226, 518_300) == "518,226 (100 %)"


def test_an_interval_without_an_end_stays_open() -> None:
    assert wording.say_interval(1.2, math.inf) == "[1.20, …]"


@pytest.mark.parametrize("sign", ["\n", "\r", "\x1b", "\x9b", "\u202e", "\u2028", "\x00"])
def test_what_steers_a_terminal_is_replaced(sign: str) -> None:
    assert wording.make_printable(f"a{sign}b") == "a b"


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (2306881, "bytes", "2.2 MiB"),
        (136192, "bytes", "133 KiB"),
        (1023, "bytes", "1023 bytes"),
        (64, "KiB", "64 KiB"),
        (5000, "ms", "5 s"),
        (75, "s", "75 s"),
        (7200, "s", "2 h"),
        (1000, "", "1000"),
        (1048576, "requests", "1.05M"),
        (133000, "", "133k"),
        (20, "%", "20 %"),
        (0.25, "", "0.25"),
        (0, "bytes", "0 bytes"),
        (1e15, "", "1000000G"),
    ],
)
def test_a_number_at_an_axis_has_the_unit_that_suits_it(value: float, unit: str, expected: str) -> None:
    assert wording.say_roughly(value, unit) == expected


@pytest.mark.parametrize(
    ("value", "unit", "expected"), [(1234.5, "", "1,234"), (0.0123, "", "0.0123"), (41.52, " %", "41.5 %")]
)
def test_a_counter_has_three_digits(value: float, unit: str, expected: str) -> None:
    assert wording.say_count(value, unit) == expected


def test_a_sentence_begins_with_a_capital_and_an_address_stays_as_it_is() -> None:
    assert wording.capitalize("the host is busy") == "The host is busy"
    assert wording.capitalize("ssh://root@web1: a tuner is at work") == "ssh://root@web1: a tuner is at work"
    assert wording.capitalize("") == ""
