"""The log of h2load: one line for each response."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tuner.ports import Workload

_LINES = re.compile(rb"(?:\d{1,16}\t(?:-1|\d{3})\t\d{1,12}\n)*")
BROKEN = -1
"""Status of a stream that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """All responses of a run, in columns of equal length."""

    starts_us: Sequence[int]
    """Microseconds since the epoch."""
    statuses: Sequence[int]
    latencies_us: Sequence[int]

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
    return Log(starts_us=fields[0::3], statuses=fields[1::3], latencies_us=fields[2::3])


def lost_connections(log: Log, workload: Workload) -> int:
    """Count connections that sent requests no longer, or waited in vain, at the end of the window.

    Every connection has a request under way at any time. The most that were under way at once in the last
    part of the window are the connections that were still alive; the part is long enough to hold whole
    requests, as those under way at the very end are not in the log. At a fixed rate connections pause, and
    only those that never got an answer are known.
    """
    unanswered = max(0, workload.connections - len(log))
    if workload.rate_rps is not None or not len(log):
        return unanswered
    window_us = workload.duration_s * 1e6
    part_us = max(window_us / 4, 2 * max(log.latencies_us))
    if part_us > window_us:
        return unanswered
    since_us = min(log.starts_us) + window_us - part_us
    return max(0, workload.connections - max(_under_way(log, since_us), default=0))


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
