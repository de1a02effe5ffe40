"""h2load of nghttp2 1.52: HTTP/1.1 and HTTP/2, closed loop or a fixed rate, every response in a log.

What h2load counts, by its source (h2load.cc of 1.52.0), in a run with -D, or with -n where that is said:

* `done` are the lines of --log-file: start in µs, status (-1 for a stream that failed), latency in µs. Their
  number is compared with `done`, so that half a log is noticed. A stream that is closed before its request
  was sent has a line, too, with the start 0: no request, and so no failure of the server.
* `failed` is computed as total − succeeded and `errored` from that: failures of a connection cancel out. A
  connection that dies without notice is not replaced; only the log shows that fewer requests are under way.
* `succeeded` holds 3xx; here only 2xx are right.
* `status codes` are counted at the header and exceed `done` by responses under way.
* A client that is connecting when the window ends goes on for ever: the stop is only told to connections
  that exist. With `Connection: close` that is always so, hence refused. A server that closes each connection
  after some requests makes it happen at times: the command is ended from outside, and the log is read without
  a summary.
* An HTTP/2 connection that the server closes in good order (after nginx's keepalive_requests, say) is not
  opened again: the load dwindles. Every other connection has one request under way when the window ends.
* -m requests are under way at once on each HTTP/2 connection, unless the server's SETTINGS allow fewer.
* Over TLS no certificate is looked at (SSL_VERIFY_NONE); the probes before the load have done so.
* A socket that cannot be had (no local port, no open file) ends it by an assertion.
* With --rps a client sends at its rate, but one request at a time over HTTP/1.1. A request that is due while
  its client waits is sent later. Up to 100 requests/s on a connection, latency counts from when it was due.
  All clients connect at once, so that their requests come in bursts of one per client.
* With -n each client has its share of the requests beforehand. One that loses its connection gives up what
  is left of its share, and the others do not take it over: that is counted as failed. It ends when all have,
  so that slow connections are waited for; `timeout` ends it at the time limit.
* --log-file is appended to, so an empty file is written before each run.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import PurePosixPath
from typing import ClassVar

from tuner.adapters.loads._h2load_log import (
    MOST_RPS_PER_CONNECTION,
    Log,
    count_from_due,
    count_unsent,
    lost_connections,
    read_log,
    streams_of,
)
from tuner.adapters.loads._wrk_mix import order_of
from tuner.errors import UsageError
from tuner.kit.bodies import MOST_ERROR_PAGE_BYTES, Totals, has_wrong_bodies
from tuner.kit.latency import latency_of_samples
from tuner.kit.load_command import Ability, ended_after, header_options, refuse_unsendable, with_path
from tuner.kit.load_output import gave_up, reading, text_of, unreadable, version_in
from tuner.kit.packages import Package
from tuner.ports import (
    H2,
    H2C,
    HTTP1,
    Argv,
    BodyCheck,
    Completed,
    ConnectTime,
    Failures,
    Files,
    LoadResult,
    RequestKind,
    Workload,
)

BY_LENGTH = frozenset({BodyCheck.LEARNED, BodyCheck.LENGTH, BodyCheck.ANY})


GRACE_S = 1.0
"""How long after the window's end h2load may take to stop."""
LEAST_S = 0.001
"""Length of a run in which nothing was answered at all."""
ENDED_STATUS = 124
"""How timeout(1) says that it had to end the command."""
ABORTED_STATUSES = (-6, 128 + 6)
"""SIGABRT, the end by an assertion; timeout(1) passes it on by raising it."""
_NUMBER = r"(\d{1,16})"
_REQUESTS = re.compile(
    rf"^requests: {_NUMBER} total, {_NUMBER} started, {_NUMBER} done, {_NUMBER} succeeded, "
    rf"{_NUMBER} failed, {_NUMBER} errored, {_NUMBER} timeout\n",
    re.MULTILINE,
)
_TRAFFIC = re.compile(
    rf"^traffic: \S+ \({_NUMBER}\) total, \S+ \({_NUMBER}\) headers \(space savings [-\d.]+%\), "
    rf"\S+ \({_NUMBER}\) data\n",
    re.MULTILINE,
)
_DURATION = r"(\d{1,9}(?:\.\d\d)?)(us|ms|s)"
_CONNECT_ROW = re.compile(rf"^time for connect: +{_DURATION} +{_DURATION} +{_DURATION} .*\n", re.MULTILINE)
_TO_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0}
_NO_SOCKET = "client could not connect to host"
_PROTOCOLS: Mapping[str, Argv] = {
    HTTP1: ("--h1",),
    H2C: ("--no-tls-proto=h2c",),
    H2: ("--npn-list=h2",),
}


def refuse_unlike(workload: Workload) -> None:
    """Raise UsageError for a mix that h2load cannot send, or whose responses it cannot judge."""
    headers = [dict(each.headers) for each in workload.requests]
    for each in workload.requests:
        if each.method != "GET" or dict(each.headers) != headers[0]:
            said = f"{each.method} {each.path} has another method or other headers than the rest of the mix"
        elif not 200 <= each.status < 300 or each.body.check not in BY_LENGTH:  # noqa: PLR2004 - 2xx
            said = f"h2load counts every 2xx status as correct, and {each.path} expects another status"
        else:
            continue
        raise UsageError(f"load generator h2load: {said}. Use wrk over HTTP/1.1, or leave this request out.")


def write_addresses(workload: Workload) -> bytes:
    """Return one round of the mix, a URL a line."""
    origin = "/".join(workload.url.split("/")[:3])
    return b"".join(f"{origin}{each.path}\n".encode() for each in _round(workload.requests))


def headers_of(workload: Workload) -> Mapping[str, str]:
    """Return the headers of all requests."""
    return workload.requests[0].headers if workload.requests else workload.headers


def has_wrong_mix(totals: Totals, workload: Workload) -> bool:
    """Return whether the bodies received cannot be those of correct responses; False where none is known."""
    lengths = [each.body_bytes for each in _round(workload.requests)]
    known = [each for each in lengths if each is not None]
    if len(known) < len(lengths) or not totals.answered:
        return False
    mean, largest = sum(known) / len(known), max(known)
    off = max(abs(so_far - mean * (count + 1)) for count, so_far in enumerate(accumulate(known)))
    slack = workload.connections * (off + workload.streams * largest)
    expected = totals.answered * mean
    errors = totals.refused * max(largest, MOST_ERROR_PAGE_BYTES) + totals.broken * largest
    return not expected - slack <= totals.received_bytes <= expected + slack + errors


def _round(kinds: Sequence[RequestKind]) -> list[RequestKind]:
    return [kinds[index] for index in order_of([each.weight for each in kinds])]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summary:
    """What stands in the report at the end."""

    started: int
    done: int
    timed_out: int
    received_bytes: int
    body_bytes: int


class H2load:
    """The load generator h2load."""

    name: ClassVar[str] = "h2load"
    package: ClassVar[str] = Package(
        "nghttp2-client", dnf="nghttp2", zypper="nghttp2", apk="nghttp2", pacman="nghttp2"
    )
    keeps_asking: ClassVar[bool] = True
    logs_at_rate: ClassVar[bool] = True
    """It keeps a rate over HTTP/1.1 and logs every response; wrk and ab know no rate."""
    most_rps_per_connection: ClassVar[float] = MOST_RPS_PER_CONNECTION

    def version_command(self) -> Argv | None:
        return ("h2load", "--version")

    def read_version(self, printed: Completed) -> str:
        return version_in(printed)

    def files(self, workload: Workload) -> Files:
        mix = {_mix_path(workload): write_addresses(workload)} if workload.requests else {}
        return {_log_path(workload): b"", **mix}

    def command(self, workload: Workload) -> Argv:
        able = (
            Ability.RATE, Ability.COUNT, Ability.ENCODING, Ability.STREAMS, Ability.HEADERS, Ability.MIX,
        )  # fmt: skip
        refuse_unsendable(self.name, workload, protocols=tuple(_PROTOCOLS), able=able)
        refuse_unlike(workload)
        if not workload.keepalive:
            raise UsageError(
                "load generator h2load: h2load never ends with `keepalive: false`, because it waits for the "
                "connections that it opens at the end of the window. Use wrk or ab."
            )
        argv = (
            "h2load",
            f"--clients={workload.connections}",
            f"--threads={min(workload.threads, workload.connections)}",
            _end(workload),
            f"--log-file={_log_path(workload)}",
            *_PROTOCOLS[workload.protocol],
            *((f"--max-concurrent-streams={workload.streams}",) if workload.streams > 1 else ()),
            *((f"--header=accept-encoding: {workload.accept_encoding}",) if workload.accept_encoding else ()),
            *header_options(replace(workload, headers=headers_of(workload)), "--header"),
            *(
                ()
                if workload.rate_rps is None
                else (f"--rps={workload.rate_rps / workload.connections:.6g}",)
            ),
            f"--input-file={_mix_path(workload)}" if workload.requests else with_path(workload.url),
        )
        limit_s = workload.duration_s + (GRACE_S if workload.requests_total is None else 0)
        return ended_after(limit_s, argv)

    def outputs(self, workload: Workload) -> tuple[PurePosixPath, ...]:
        return (_log_path(workload),)

    def parse(self, completed: Completed, outputs: Files, workload: Workload) -> LoadResult:
        if completed.returncode in ABORTED_STATUSES and _NO_SOCKET in text_of(completed.stderr):
            fault = "a socket could not be opened: no local port or no open file was left"
            return gave_up(completed, workload, _NO_SOCKET, fault)
        with reading(self.name, "report", completed):
            if completed.returncode not in {0, ENDED_STATUS}:
                raise unreadable(self.name, "it failed", completed)
            log = read_log(outputs.get(_log_path(workload), b""))
            text = text_of(completed.stdout)
            summary = None if completed.returncode == ENDED_STATUS else _summary(text)
            if workload.requests_total is not None:
                return _result_of_requests(summary, log, _connect_time(text), workload)
            if summary is None:
                return _without_summary(log, workload)
            return _result(summary, log, _connect_time(text), workload)


def _end(workload: Workload) -> str:
    """Return the option that says when it ends: after so many requests, or after a time."""
    if workload.requests_total is not None:
        return f"--requests={workload.requests_total}"
    return f"--duration={round(workload.duration_s * 1000)}ms"


def _log_path(workload: Workload) -> PurePosixPath:
    return workload.directory / "h2load.log"


def _mix_path(workload: Workload) -> PurePosixPath:
    return workload.directory / "h2load.urls"


def _summary(text: str) -> _Summary:
    requests, traffic = _REQUESTS.search(text), _TRAFFIC.search(text)
    if requests is None or traffic is None:
        raise ValueError("the output has no line of requests, or no line of traffic")
    return _Summary(
        started=int(requests.group(2)),
        done=int(requests.group(3)),
        timed_out=int(requests.group(7)),
        received_bytes=int(traffic.group(1)),
        body_bytes=int(traffic.group(3)),
    )


def _result(summary: _Summary, log: Log, connect_time: ConnectTime | None, workload: Workload) -> LoadResult:
    if len(log) + log.unsent != summary.done:
        raise ValueError(f"{len(log) + log.unsent} lines in the log, but {summary.done} requests done")
    correct, failures = _judge(log, summary.body_bytes, workload)
    connect_us = 0.0 if connect_time is None else connect_time.min_ms * 1000
    lost = lost_connections(log, workload, connect_us) if summary.started else 0
    closed = _closed_in_order(summary, workload, streams_of(log, workload))
    if closed == workload.connections:
        # Nothing is under way, so all are closed, even where answers took too long for the log to tell.
        lost = closed
    closed = min(lost, closed)
    result = LoadResult(
        duration_s=workload.duration_s,
        correct=correct,
        failures=replace(
            failures,
            connect=0 if summary.started else workload.connections,
            timeout=summary.timed_out,
            # Reset or never answered: h2load does not say which.
            other=lost - closed,
        ),
        bytes=summary.received_bytes,
        latency=None if failures.length else latency_of_samples(log.correct_us),
        connect_time=connect_time if summary.started else None,
        aborted=(
            f"the server closed {closed} of {workload.connections} HTTP/2 connections, and h2load opens no "
            "new ones. Let the baseline answer more requests on one connection (nginx: "
            "keepalive_requests), or use another generator"
            if closed
            else None
        ),
    )
    return _as_due(result, log, workload, under_way=summary.started - summary.done)


def _judge(log: Log, body_bytes: int | None, workload: Workload) -> tuple[int, Failures]:
    """Return the number of correct responses and the other ones; lengths only where their sum is known."""
    answered = len(log.correct_us)
    refused = len(log) - answered - log.broken
    totals = Totals(answered=answered, refused=refused, broken=log.broken, received_bytes=body_bytes or 0)
    is_wrong = has_wrong_mix if workload.requests else has_wrong_bodies
    wrong = answered if body_bytes is not None and is_wrong(totals, workload) else 0
    return answered - wrong, Failures(read=log.broken, status=refused, length=wrong)


def _result_of_requests(
    summary: _Summary | None, log: Log, connect_time: ConnectTime | None, workload: Workload
) -> LoadResult:
    """Read a run that ended after so many requests, or at its time limit and so without a summary."""
    correct, failures = _judge(log, None if summary is None else summary.body_bytes, workload)
    left = max(0, (workload.requests_total or 0) - len(log))
    return LoadResult(
        duration_s=workload.duration_s if summary is None else log.span_s or LEAST_S,
        correct=correct,
        # Reset or never answered: h2load says that of the time limit alone.
        failures=replace(failures, **{"timeout" if summary is None else "other": left}),
        bytes=0 if summary is None else summary.received_bytes,
        latency=None if failures.length else latency_of_samples(log.correct_us),
        connect_time=connect_time if len(log) else None,
        aborted=None if summary else "h2load reached the time limit, so tuner did not check body lengths",
    )


def _closed_in_order(summary: _Summary, workload: Workload, streams: float) -> int:
    if workload.protocol == HTTP1 or workload.rate_rps is not None or summary.started == 0:
        return 0
    under_way = summary.started - summary.done
    return max(0, workload.connections - math.ceil(under_way / streams))


def _without_summary(log: Log, workload: Workload) -> LoadResult:
    """Read the log of a run that had to be ended; nothing is known of the lengths of its bodies."""
    correct, failures = _judge(log, None, workload)
    result = LoadResult(
        duration_s=workload.duration_s,
        correct=correct,
        failures=replace(failures, other=lost_connections(log, workload)),
        latency=latency_of_samples(log.correct_us),
        aborted="h2load did not stop by itself and printed no summary, so tuner did not check body lengths",
    )
    return _as_due(result, log, workload, under_way=workload.connections * workload.streams)


def _as_due(result: LoadResult, log: Log, workload: Workload, *, under_way: int) -> LoadResult:
    """Return the result of a window at a rate, its latency counted from when each request was due."""
    rate_rps = workload.rate_rps
    if not rate_rps or rate_rps > MOST_RPS_PER_CONNECTION * workload.connections:
        return result
    failures, unsent = result.failures, count_unsent(log, workload, under_way)
    return replace(
        result,
        failures=replace(failures, timeout=failures.timeout + unsent),
        latency=None if result.latency is None else latency_of_samples(count_from_due(log, workload)),
    )


def _connect_time(text: str) -> ConnectTime | None:
    found = _CONNECT_ROW.search(text)
    if found is None:
        return None
    least, least_unit, most, most_unit, mean, mean_unit = found.groups()
    return ConnectTime(
        min_ms=round(float(least) * _TO_MS[least_unit], 6),
        mean_ms=round(float(mean) * _TO_MS[mean_unit], 6),
        max_ms=round(float(most) * _TO_MS[most_unit], 6),
    )
