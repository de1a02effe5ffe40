"""What the log of h2load tells of connections: how many were still alive, and how many requests each had."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tuner.adapters.loads._h2load_log import (
    Log,
    count_from_due,
    count_unsent,
    lost_connections,
    read_log,
    streams_of,
)
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


def at_rate(timeout_s: float | None = None) -> Workload:
    """Ask 10 clients for 1000 requests/s: one request every 10 ms from each."""
    return replace(workload(connections=10), rate_rps=1000.0, timeout_s=timeout_s)


def bursts(*, stalls_at: int = 1000, stall_ms: int = 0) -> Log:
    """Write a log of 10 clients that send together; the server does not answer in a stall.

    After the stall each client sends what is due at once, one request of 1 ms after the other.
    """
    starts, latencies, free_ms = [], [], 0
    for due_ms in range(0, 1000, 10):
        start_ms = max(due_ms, free_ms)
        took_ms = 1 + (stall_ms if due_ms == stalls_at else 0)
        free_ms = start_ms + took_ms
        if start_ms >= 1000:
            break
        starts += [1000 * start_ms] * 10
        latencies += [1000 * took_ms] * 10
    return Log(starts_us=starts, statuses=[200] * len(starts), latencies_us=latencies)


def test_requests_that_are_sent_in_time_have_their_own_latency():
    assert set(count_from_due(bursts(), at_rate())) == {1000}
    assert count_unsent(bursts(), at_rate(), under_way=0) == 0


def test_a_stall_delays_the_requests_that_were_due_meanwhile():
    stalled = bursts(stalls_at=500, stall_ms=100)

    counted_us = sorted(count_from_due(stalled, at_rate()))

    assert counted_us[-10:] == [101_000] * 10
    # Due 10 ms after the stall began, sent 91 ms later, and answered in 1 ms; the next ones each 9 ms sooner.
    assert counted_us[-20:-10] == [92_000] * 10
    assert counted_us[-30:-20] == [83_000] * 10
    assert count_unsent(stalled, at_rate(), under_way=0) == 0


def test_a_stall_of_one_connection_delays_no_other():
    """One of 10 clients waits for 100 ms, and catches up after it."""
    alone = bursts(stalls_at=500, stall_ms=100)
    others = bursts()
    log = Log(
        starts_us=[*alone.starts_us[::10], *[each for each in others.starts_us for _ in range(9)][::10]],
        statuses=[200] * 1000,
        latencies_us=[*alone.latencies_us[::10], *[1000] * 900],
    )

    counted_us = sorted(count_from_due(log, at_rate()))

    assert counted_us[-3:] == [83_000, 92_000, 101_000]
    assert sum(each > 1000 for each in counted_us) == 12


def test_requests_that_h2load_sends_late_are_on_time():
    on_time = bursts()
    later = [start + 3000 * (start // 10_000 % 2) for start in on_time.starts_us]

    assert set(count_from_due(replace(on_time, starts_us=later), at_rate())) == {1000}


@pytest.mark.parametrize(("timeout_s", "unsent"), [(None, 250), (0.5, 0)])
def test_what_waits_long_to_be_sent_at_the_end_has_failed(timeout_s: float | None, unsent: int):
    """From 0.5 s on nothing is answered in the window, and requests that are due later wait."""
    stuck = bursts(stalls_at=490, stall_ms=600)

    assert count_unsent(stuck, at_rate(timeout_s), under_way=0) == unsent


def test_a_server_that_is_too_slow_from_the_beginning_is_held_against_the_rate():
    """Each of 10 clients waits 20 ms for a response, and a request is due every 10 ms."""
    starts = [1000 * start_ms for start_ms in range(0, 1000, 20) for _ in range(10)]
    slow = Log(starts_us=starts, statuses=[200] * 500, latencies_us=[20_000] * 500)

    assert max(count_from_due(slow, at_rate())) > 400_000
    assert count_unsent(slow, at_rate(), under_way=0) > 200


def test_clients_that_connect_one_after_the_other_are_not_late():
    """Their requests come one after the other, too."""
    starts = [1000 * (client + 10 * number) for number in range(99) for client in range(10)]
    log = Log(starts_us=starts, statuses=[200] * len(starts), latencies_us=[500] * len(starts))

    assert set(count_from_due(log, at_rate())) == {500}
    assert count_unsent(log, at_rate(), under_way=0) == 0


def test_two_streams_of_a_connection_wait_half_as_often():
    """Each of 10 clients may have two requests under way, and a response takes 15 ms."""
    starts = [10_000 * number for number in range(99) for _ in range(10)]
    log = Log(starts_us=starts, statuses=[200] * len(starts), latencies_us=[15_000] * len(starts))

    assert set(count_from_due(log, replace(at_rate(), streams=2))) == {15_000}
