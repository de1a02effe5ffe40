"""The end of a log: times in the formats of servers, and hostile lines that stay text."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tuner.advice.log_lines import (
    JOURNAL,
    TAIL_BYTES,
    LogLine,
    cut_messages,
    quote_line,
    read_clock,
    read_lines,
    read_time,
)

NOW = datetime(2026, 11, 26, 18, 46, 0, tzinfo=timezone(timedelta(hours=2)))
WRITTEN = datetime(2026, 11, 26, 18, 45, 56, tzinfo=timezone(timedelta(hours=2))).timestamp()


@pytest.mark.parametrize(
    "line",
    [
        "2026/11/26 18:45:56 [alert] 8#8: 20 worker_connections are not enough",
        "[Thu Nov 26 18:45:56.123456 2026] [mpm_event:error] [pid 9:tid 10] AH00484: server reached",
        "[26-Nov-2026 18:45:56] WARNING: [pool www] server reached pm.max_children setting (5)",
        "Nov 26 18:45:56 web haproxy[12]: Server web/one is DOWN",
        "2026-11-26T16:45:56+00:00 web haproxy[12]: backend web has no server available!",
        "2026-11-26T16:45:56,123456+00:00 TCP: Possible SYN flooding on port 80",
        f'{{"level":"error","ts":{WRITTEN},"msg":"dial tcp"}}',
    ],
)
def test_each_server_writes_the_time_in_its_own_way(line: str):
    assert read_time(line, NOW) == pytest.approx(WRITTEN)


def test_a_month_that_is_yet_to_come_was_last_year():
    assert (
        read_time("Dec 31 23:59:59 web x", NOW) == datetime(2025, 12, 31, 21, 59, 59, tzinfo=UTC).timestamp()
    )


@pytest.mark.parametrize("line", ["", "no time", "2026/13/41 99:99:99 x", "[Thu Foo 26 18:45:56 2026] x"])
def test_a_line_without_a_time_says_so(line: str):
    assert read_time(line, NOW) is None


def test_the_first_line_of_a_cut_log_is_left_out_as_it_may_be_half_a_one():
    tail = b"half a line\n" + b"whole\n" * (TAIL_BYTES // 6)

    assert {line.text for line in read_lines(tail, "error.log", now=NOW)} == {"whole"}


def test_nothing_of_a_hostile_line_steers_a_terminal():
    hostile = "GET /\x1b]0;owned\x07\x1b[31m\u202e\u2066\x00\x9b5n \r\nnext" + "x" * 500

    quoted = quote_line(hostile)

    assert quoted.isprintable()
    assert len(quoted) < 210


def test_bytes_that_are_no_text_are_read_all_the_same():
    (line,) = read_lines(b"2026/11/26 18:45:56 \xff\xfe\n", "error.log", now=NOW)

    assert line.at_s == pytest.approx(WRITTEN)


def test_the_clock_of_a_host_has_its_zone():
    assert read_clock(b"1795712756-0330\n").utcoffset() == -timedelta(hours=3, minutes=30)
    assert read_clock(b"?").tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("2026-11-26T18:45:56+0000 web nginx[8]: 8#8: full", ["full"]),
        ("2026-11-26T18:45:56+0000 web nginx[8]: 9#9: full", [""]),
        ("2026-11-26T18:45:56+0000 web systemd[1]: Started nginx", []),
        ("                                8#8: full", []),
    ],
    ids=["of the program", "of another process", "of systemd", "the rest of a message"],
)
def test_in_the_journal_a_message_begins_after_its_program(text: str, messages: list[str]):
    line = LogLine(text=text, source=JOURNAL, at_s=None)

    cut = cut_messages([line], r"(?P<pid>\d+)#\d+: (?P<message>.*)", {8})

    assert [each.message for each in cut] == messages


@pytest.mark.parametrize(
    ("clock", "is_known"), [("18:46:10", True), ("18:48:00", False), ("20:46:00", False)]
)
def test_a_time_that_is_yet_to_come_is_unknown(clock, is_known):
    (line,) = read_lines(f"2026/11/26 {clock} [error] 8#8: x\n".encode(), "error.log", now=NOW)

    assert (line.at_s is not None) is is_known
