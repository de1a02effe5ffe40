"""What the log of h2load tells of connections: how many were still alive, and how many requests each had."""

from collections.abc import Iterator

import pytest

from tuner.adapters.loads._h2load_log import Log, lost_connections, read_log, streams_of
from tuner.ports import H2, Workload

REQUEST_US = 10_000


def workload(*, connections: int, streams: int = 1) -> Workload:
    return Workload(
        url="https://127.0.0.1/", connections=connections, keepalive=True, duration_s=1.0, protocol=H2,
        streams=streams,
    )  # fmt: skip


def log_of(*connections: tuple[int, int, int]) -> Log:
    """Write a log of connections: from when until when, in ms, each has so many requests under way."""
    starts = [start for each in connections for start in _starts(*each)]
    return Log(starts_us=starts, statuses=[200] * len(starts), latencies_us=[REQUEST_US] * len(starts))


def _starts(since_ms: int, until_ms: int, streams: int) -> Iterator[int]:
    for start_us in range(since_ms * 1000, until_ms * 1000, REQUEST_US):
        yield from [start_us] * streams


def test_connections_that_last_are_not_lost():
    assert lost_connections(log_of((0, 1000, 1), (0, 1000, 1)), workload(connections=2)) == 0


def test_a_connection_that_ends_in_the_middle_is_lost():
    assert lost_connections(log_of((0, 1000, 1), (0, 500, 1)), workload(connections=2)) == 1


def test_a_window_that_begins_with_long_handshakes_ends_no_later_for_that():
    late = log_of((400, 1000, 1), (400, 1000, 1))

    assert lost_connections(late, workload(connections=2), connect_us=400_000) == 0
    assert lost_connections(late, workload(connections=2)) == 2


def test_a_connection_with_several_requests_is_lost_once():
    several = workload(connections=3, streams=4)

    assert lost_connections(log_of((0, 1000, 4), (0, 1000, 4), (0, 1000, 4)), several) == 0
    assert lost_connections(log_of((0, 1000, 4), (0, 500, 4), (0, 1000, 4)), several) == 1


def test_a_server_that_allows_fewer_requests_at_once_loses_no_connection():
    limited, asked = log_of((0, 1000, 2), (0, 1000, 2)), workload(connections=2, streams=10)

    assert streams_of(limited, asked) == 2
    assert lost_connections(limited, asked) == 0


def test_a_stream_closed_before_its_request_was_sent_is_no_request():
    """What h2load 1.52 logs of it has the machine's uptime for a latency: here of 3 hours, and of 15 days."""
    sent = b"1700000000000000\t200\t10000\n" * 2
    log = read_log(sent + b"0\t-1\t12261160284\n0\t-1\t1296000000000\n" + b"1700000000010000\t-1\t500\n")

    assert (len(log), log.unsent, log.broken) == (3, 2, 1)
    assert log.span_s == pytest.approx(0.0105)
