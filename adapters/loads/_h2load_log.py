"""The log of h2load: one line for each response."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from tuner.ports import Workload

_LINES = re.compile(rb"(?:\d{1,16}\t(?:-1|\d{3})\t\d{1,16}\n)*")
BROKEN = -1
"""Status of a stream that failed."""
NEVER = 0
"""Start of a stream that was closed before its request was sent; its latency is the time since the boot."""
PRECISION_US = 100
"""A request that follows a response may have been sent so much sooner than the log says the response came."""
PATIENCE_S = 1.0
"""A request at a rate that waits longer than this, or a quarter of the window, to be sent has failed."""
MOST_RPS_PER_CONNECTION = 100.0
"""With --rps, h2load looks every 10 ms, or more seldom, what is due on a connection (h2load.cc, rps_watcher).
Requests that are due more often are sent in bursts, and the log does not say when they were due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """All requests of a run that were sent and have ended, in columns of equal length."""

    starts_us: Sequence[int]
    """Microseconds since the epoch."""
    statuses: Sequence[int]
    latencies_us: Sequence[int]
    unsent: int = 0
    """Streams that were closed before their request was sent, as the server closed the connection."""

    def __len__(self) -> int:
        return len(self.statuses)

    @property
    def span_s(self) -> float:
        """Return the seconds from the first request to the last answer; 0 without any."""
        ends_us = (start + took for start, took in zip(self.starts_us, self.latencies_us, strict=True))
        return (max(ends_us, default=0) - min(self.starts_us, default=0)) / 1e6

    @property
    def broken(self) -> int:
        return self.statuses.count(BROKEN)

    @property
    def correct_us(self) -> list[int]:
        """Response times of the responses with a status of 2xx."""
        pairs = zip(self.statuses, self.latencies_us, strict=True)
        return [latency_us for status, latency_us in pairs if 200 <= status < 300]  # noqa: PLR2004 - 2xx


def read_log(content: bytes) -> Log:
    """Read it whole. Raises ValueError for anything that is not one, or ends within a line."""
    if _LINES.fullmatch(content) is None:
        raise ValueError("the log has lines of another form than start, status, latency")
    fields = [int(field) for field in content.split()]
    lines = list(zip(fields[0::3], fields[1::3], fields[2::3], strict=True))
    sent = [line for line in lines if line[0] != NEVER]
    return Log(
        starts_us=[start_us for start_us, _, _ in sent],
        statuses=[status for _, status, _ in sent],
        latencies_us=[latency_us for _, _, latency_us in sent],
        unsent=len(lines) - len(sent),
    )


def lost_connections(log: Log, workload: Workload, connect_us: float = 0.0) -> int:
    """Count connections that sent requests no longer, or waited in vain, at the end of the window.

    The window begins with the first connect, and so `connect_us` before the first request: the time in which
    the quickest connection was made, its TLS handshake included.

    Every connection has a request under way at any time, or as many as it has streams. The most that were
    under way at once in the last part of the window are the connections that were still alive; the part is
    long enough to hold whole requests, as those under way at the very end are not in the log. At a fixed rate
    connections pause, and only those that never got an answer are known.
    """
    unanswered = max(0, workload.connections - len(log))
    if workload.rate_rps is not None or not len(log):
        return unanswered
    window_us = workload.duration_s * 1e6
    part_us = max(window_us / 4, 2 * max(log.latencies_us))
    if part_us > window_us:
        return unanswered
    since_us = min(log.starts_us) - connect_us + window_us - part_us
    under_way = max(_under_way(log, since_us), default=0)
    return max(0, workload.connections - math.ceil(under_way / streams_of(log, workload)))


def streams_of(log: Log, workload: Workload) -> float:
    """Return how many requests a connection has under way at once: no more than the server allows."""
    if workload.streams == 1 or not len(log):
        return 1
    return max(1.0, max(_under_way(log, min(log.starts_us))) / workload.connections)


def _under_way(log: Log, since_us: float) -> Iterator[int]:
    """Follow the number of requests under way from a moment on."""
    late = [
        (start_us, start_us + latency_us)
        for start_us, latency_us in zip(log.starts_us, log.latencies_us, strict=True)
        if start_us + latency_us >= since_us
    ]
    changes = sorted([(start_us, 1) for start_us, _ in late] + [(end_us, -1) for _, end_us in late])
    count = 0
    for _, change in changes:
        count += change
        yield count


def count_from_due(log: Log, workload: Workload) -> list[int]:
    """Return response times of the responses with a status of 2xx, from when each request was due, in µs.

    A client sends its first request when it is connected. From then on one is due in each period of
    connections / rate seconds (h2load.cc, rps_cb). After a response that takes longer than a period, the
    client sends its next request at once: it is late. If h2load itself wakes up late, that is no delay of the
    server, and does not count.

    Args:
        log: of a window at a rate.
        workload: has a rate.
    """
    streams = workload.connections * workload.streams
    period_us = 1e6 * streams / (workload.rate_rps or 1.0)
    late_next: list[tuple[int, float]] = []  # when a late request is sent, and how late
    counted_us = []
    for start_us, status, latency_us in sorted(
        zip(log.starts_us, log.statuses, log.latencies_us, strict=True)
    ):
        late_us = heappop(late_next)[1] if late_next and late_next[0][0] <= start_us + PRECISION_US else 0.0
        due_us = latency_us + late_us
        if due_us > period_us:
            heappush(late_next, (start_us + latency_us, due_us - period_us))
        if 200 <= status < 300:  # noqa: PLR2004 - 2xx
            counted_us.append(round(due_us))
    return counted_us


def count_unsent(log: Log, workload: Workload, under_way: int) -> int:
    """Return how many requests were due at a rate long before the window ended and were not even sent in it.

    Args:
        log: of a window at a rate.
        workload: has a rate.
        under_way: requests that were sent and have no response.
    """
    patience_s = workload.timeout_s or min(PATIENCE_S, workload.duration_s / 4)
    period_s = workload.connections / (workload.rate_rps or 1.0)
    due = workload.connections * math.ceil(max(0.0, workload.duration_s - patience_s) / period_s)
    return max(0, due - len(log) - under_way)
