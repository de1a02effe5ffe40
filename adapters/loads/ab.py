"""ab of Apache 2.4: closed loop, one thread, HTTP/1.0, in the clear or over TLS.

What ab counts, by its source (httpd 2.4 support/ab.c):

* `Complete requests` are all that ended, failed ones included; with -r a reset is one of them and the run
  goes on, without it the run ends there and its counts are lost. -r it is.
* `Failed requests` counts one request several times; `Receive` alone is once for each that broke.
  `Exceptions` is the same failure seen by poll(). `Connect` are attempts that never became a request.
* `Length` differs from the *first* response: `Document Length` tells whether that one was right. With -l it
  counts none, and the length reads `Variable`.
* `Non-2xx responses` counts headers, so it can exceed `Complete requests` by those under way at the end.
* -t is looked at when something happens on a connection. When nothing does, SIGINT ends the run one second
  later, upon which ab prints all its counts. -s is set beyond that: upon it ab would print nothing.
* -t without -n means 50 000 requests; -n after -t lifts that. -n alone ends after so many that ended, well
  or badly; SIGINT at the time limit ends it before, and what is missing then has failed.
* Where connect() itself keeps failing, and without -r at the first reset, it gives up with one line of the
  error and `Total of N requests completed`. Of those N it says no more; the others have failed.
* The first request is sent alone; the other connections are opened when its response begins.
* A connection that is kept alive has a connect time of 0 for all requests but its first.
* `Connect:` has whole milliseconds: over loopback it reads 0.
* Servers send nothing compressed to HTTP/1.0 (nginx: gzip_http_version), so it does not ask for it.
* Over TLS it looks at no certificate; the probes before the load have done so.
* The table of -e has 0.001 ms steps; its last rows may read 0 for less than 50 requests.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from pathlib import PurePosixPath
from typing import ClassVar

from tuner.kit.latency import latency_of_quantiles
from tuner.kit.load_command import (
    Ability,
    header_options,
    interrupted_after,
    is_whole,
    refuse_unsendable,
    with_path,
)
from tuner.kit.load_output import (
    as_count,
    as_float,
    gave_up,
    own_fault,
    positive,
    reading,
    text_of,
    unreadable,
    version_in,
)
from tuner.kit.packages import Package
from tuner.ports import Argv, Completed, ConnectTime, Failures, Files, Latency, LoadResult, Workload

GRACE_S = 1.0
"""How long after the window's end ab may wait for something to happen before it is interrupted."""
MOST_RPS = 250_000
"""More than one thread can send. ab reserves 40 bytes for each request of -n, touched only when used."""

_NUMBER = r"(\d{1,16})"
_COUNTS = {
    "complete": re.compile(rf"^Complete requests: +{_NUMBER}\n", re.MULTILINE),
    "failed": re.compile(rf"^Failed requests: +{_NUMBER}\n", re.MULTILINE),
    "transferred": re.compile(rf"^Total transferred: +{_NUMBER} bytes\n", re.MULTILINE),
    "html": re.compile(rf"^HTML transferred: +{_NUMBER} bytes\n", re.MULTILINE),
}
_OPTIONAL_COUNTS = {
    "document": re.compile(rf"^Document Length: +{_NUMBER} bytes\n", re.MULTILINE),
    "write": re.compile(rf"^Write errors: +{_NUMBER}\n", re.MULTILINE),
    "status": re.compile(rf"^Non-2xx responses: +{_NUMBER}\n", re.MULTILINE),
}
_TIME_TAKEN = re.compile(r"^Time taken for tests: +(\d{1,9}\.\d{3}) seconds\n", re.MULTILINE)
_KINDS = re.compile(
    rf"^ +\(Connect: {_NUMBER}, Receive: {_NUMBER}, Length: {_NUMBER}, Exceptions: {_NUMBER}\)$", re.MULTILINE
)
_CONNECT_ROW = re.compile(rf"^Connect: +{_NUMBER} +{_NUMBER} +[\d.]+ +{_NUMBER} +{_NUMBER}\n", re.MULTILINE)
_ABORTED = re.compile(r"^(.{1,200} \(\d{1,10}\))$", re.MULTILINE)
# With -q it stands behind `(be patient)...`, on the same line.
_TOTAL = re.compile(rf"Total of {_NUMBER} requests completed\n")
_CSV_ROW = re.compile(r"(\d{1,3}),(\d{1,12}\.\d{3})")


class Ab:
    """The load generator ab (ApacheBench)."""

    name: ClassVar[str] = "ab"
    package: ClassVar[str] = Package(
        "apache2-utils", dnf="httpd-tools", zypper="apache2-utils", apk="apache2-utils", pacman="apache"
    )
    keeps_asking: ClassVar[bool] = True

    def version_command(self) -> Argv | None:
        return ("ab", "-V")

    def read_version(self, printed: Completed) -> str:
        return version_in(printed)

    def files(self, workload: Workload) -> Files:
        # An empty file, so that a table of the window before is never read for this one's.
        return dict.fromkeys(self.outputs(workload), b"")

    def command(self, workload: Workload) -> Argv:
        refuse_unsendable(self.name, workload, able=(Ability.COUNT, Ability.HEADERS))
        seconds = math.ceil(workload.duration_s)
        argv = (
            *("ab", "-q", "-r"),
            *(("-k",) if workload.keepalive else ()),
            *(("-l",) if workload.body_bytes is None else ()),
            *header_options(workload, "-H"),
            *("-c", str(workload.connections)),
            *("-s", str(2 * seconds + 10)),
            *_end(workload, seconds),
            *("-e", str(_table_path(workload))),
            with_path(workload.url),
        )
        return interrupted_after(_interrupted_s(workload), argv)

    def outputs(self, workload: Workload) -> tuple[PurePosixPath, ...]:
        return (_table_path(workload),)

    def parse(self, completed: Completed, outputs: Files, workload: Workload) -> LoadResult:
        text = text_of(completed.stdout)
        with reading(self.name, "report", completed):
            if "Time taken for tests:" not in text:
                return self._aborted(completed, workload)
            return _result(text, outputs.get(_table_path(workload), b""), completed, workload)

    def _aborted(self, completed: Completed, workload: Workload) -> LoadResult:
        """Read what is left when ab gave up: one line with the error, and how many requests had ended."""
        error = _ABORTED.search(text_of(completed.stderr))
        if error is None or completed.returncode == 0:
            raise unreadable(self.name, "no report", completed)
        total = _TOTAL.search(text_of(completed.stdout))
        ended = as_count(int(total.group(1))) if total else 0
        why = f"{error.group(1).strip()} after {ended} requests"
        result = gave_up(completed, workload, why, own_fault(error.group(1)))
        return result if workload.requests_total is None else _fail_rest(result, ended, workload)


def _end(workload: Workload, seconds: int) -> Argv:
    """Return the options that say when it ends: after so many requests, or after a time."""
    if workload.requests_total is not None:
        return ("-n", str(workload.requests_total))
    return ("-t", str(seconds), "-n", str(max(workload.connections, seconds * MOST_RPS)))


def _fail_rest(result: LoadResult, ended: int, workload: Workload) -> LoadResult:
    """Count the requests that were left when it gave up as failed: broken off, or without a connection."""
    correct = min(ended, workload.requests_total or 0)
    left = (workload.requests_total or 0) - correct
    kind = "connect" if re.search("connect|refused", result.aborted or "") else "read"
    return replace(result, correct=correct, failures=Failures(**{kind: left}))


def _table_path(workload: Workload) -> PurePosixPath:
    return workload.directory / "ab.csv"


def _interrupted_s(workload: Workload) -> float:
    """Return when SIGINT comes: only if ab hangs, but at the very end of a window that -t cannot express.

    One that ends after so many requests has until its time limit.
    """
    if workload.requests_total is not None:
        return workload.duration_s
    return workload.duration_s + (GRACE_S if is_whole(workload.duration_s) else 0)


def _result(text: str, csv: bytes, completed: Completed, workload: Workload) -> LoadResult:
    counts = _counts(text)
    correct, failures = _judge(counts, workload)
    # After SIGINT ab ends with status 1; before the window's end it comes from nobody.
    by_time = workload.requests_total is None
    fell_silent = by_time and completed.returncode == 1 and is_whole(workload.duration_s)
    expected = workload.connections if workload.requests_total is None else workload.requests_total
    silent = workload.connections if fell_silent else max(0, expected - counts["complete"])
    taken_s = positive(float(_found(_TIME_TAKEN, text)))
    return LoadResult(
        # Anything that had ended after the window's end would have ended the run: all counts lie within it.
        duration_s=workload.duration_s if fell_silent else taken_s,
        correct=correct,
        failures=replace(failures, timeout=silent),
        bytes=counts["transferred"],
        latency=_latency(csv, counts["complete"]) if correct else None,
        connect_time=_connect_time(text) if correct and not workload.keepalive else None,
    )


def _counts(text: str) -> dict[str, int]:
    counts = {name: as_count(int(_found(line, text))) for name, line in _COUNTS.items()}
    counts |= {name: _optional(line, text) for name, line in _OPTIONAL_COUNTS.items()}
    kinds = ("connect", "receive", "length", "exceptions")
    if counts["failed"] == 0:
        return {**counts, **dict.fromkeys(kinds, 0)}
    found = _KINDS.search(text)
    if found is None:
        raise ValueError("ab counted failed requests without their kinds")
    return {**counts, **dict(zip(kinds, (as_count(int(count)) for count in found.groups()), strict=True))}


def _judge(counts: Mapping[str, int], workload: Workload) -> tuple[int, Failures]:
    """Count each request once.

    Broken and refused requests usually differ from the first response in length, too: what ab calls a length
    failure holds them already. Returns the correct ones, and the others by kind.
    """
    complete = counts["complete"]
    refused = min(counts["status"], complete)
    unsent = min(counts["write"], complete - refused)
    broken = min(max(counts["receive"], counts["exceptions"]), complete - refused - unsent)
    apart = refused + unsent + broken
    unusual = min(counts["length"], complete)
    expected = workload.body_bytes
    if expected is None:
        # Of the total alone it can be told that bodies were empty.
        is_short = counts["html"] < (complete - apart) * workload.body.least_bytes
        failed = complete if is_short else max(apart, unusual)
    elif counts["document"] == expected:
        failed = max(apart, unusual)
    else:
        # The first response was wrong, and so are all that are like it.
        alike = complete - unusual
        failed = max(apart, alike)
        left = counts["html"] - alike * counts["document"]
        correct = complete - failed
        if not correct * expected <= left <= (correct + refused + workload.connections) * expected:
            failed = complete
    kinds = Failures(
        connect=counts["connect"], read=broken, write=unsent, status=refused, length=failed - apart
    )
    return complete - failed, kinds


def _found(line: re.Pattern[str], text: str) -> str:
    found = line.search(text)
    if found is None:
        raise ValueError(f"the output has no line {line.pattern!r}")
    return found.group(1)


def _optional(line: re.Pattern[str], text: str) -> int:
    return as_count(int(_found(line, text))) if line.search(text) else 0


def _connect_time(text: str) -> ConnectTime | None:
    found = _CONNECT_ROW.search(text)
    if found is None:
        return None
    least, mean, _median, most = (float(as_count(int(value))) for value in found.groups())
    return ConnectTime(min_ms=least, mean_ms=mean, max_ms=most)


def _latency(csv: bytes, samples: int) -> Latency:
    rows = [_CSV_ROW.fullmatch(line) for line in text_of(csv).splitlines()[1:]]
    points = [(int(row.group(1)) / 100, as_float(float(row.group(2)))) for row in rows if row]
    if [quantile for quantile, _ in points] != [step / 100 for step in range(101)]:
        raise ValueError(f"the table of -e has {len(points)} rows of 101")
    rising_ms = accumulate((value_ms for _, value_ms in points), max)
    grid = dict(zip((quantile for quantile, _ in points), rising_ms, strict=True))
    return latency_of_quantiles(grid, samples)
