"""oha 1.16: HTTP/1.1 and HTTP/2, closed loop or a fixed rate with corrected latencies, result as JSON.

What oha counts, as its help says and its source shows (client.rs, result_data.rs, printer.rs of 1.16.0):

* `successRate` and `requestsPerSec` take any response for a success, and the second counts errors, too. Only
  `statusCodeDistribution` tells; here 2xx are right.
* "aborted due to deadline" are requests under way when the window ended: no failures. Over HTTP/2 they are
  waited for instead, for ever unless -t is set.
* `totalData` are the bytes of bodies of complete responses. Compression is switched off, as oha would ask for
  it and the other generators do not.
* -q with --latency-correction counts a latency from when the request was due.
* The bins of `responseTimeHistogram` differ from run to run; the percentiles make a finer one.
* `DNSDialup` is the time of name lookup and connect together; for an address the lookup is nothing.
"""

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import ClassVar

from tuner.kit.bodies import Totals, has_wrong_bodies
from tuner.kit.latency import latency_of_quantiles
from tuner.kit.load_command import Ability, header_options, refuse_unsendable
from tuner.kit.load_output import (
    as_count,
    as_float,
    as_object,
    gave_up,
    json_object,
    own_fault,
    positive,
    reading,
    text_of,
    unreadable,
    version_in,
)
from tuner.ports import (
    H2,
    H2C,
    HTTP1,
    Argv,
    Completed,
    ConnectTime,
    Failures,
    Files,
    Latency,
    LoadResult,
    Workload,
)

MOST_PATIENCE_S = 5.0
"""A request without answer for so long (or for the whole window, when that is shorter) is a timeout."""
UNDER_WAY = "aborted due to deadline"

_KINDS = (
    ("refused", "connect"),
    ("Too many open files", "connect"),
    ("assign requested address", "connect"),
    ("timeout", "timeout"),
    ("timed out", "timeout"),
    ("connection error", "read"),
    ("connection closed", "read"),
    ("reading a body", "read"),
    ("reset", "read"),
    ("Broken pipe", "write"),
)
"""Part of an error message → kind of failure; the first that fits."""
_PERCENTILES = {
    "p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999,
    "p99.99": 0.9999,
}  # fmt: skip


class Oha:
    """The load generator oha."""

    name: ClassVar[str] = "oha"
    package: ClassVar[str] = ""
    installed_by: ClassVar[str] = "cargo install oha --locked"
    keeps_asking: ClassVar[bool] = True
    most_rps_per_connection: ClassVar[float] = math.inf

    def version_command(self) -> Argv | None:
        return ("oha", "--version")

    def read_version(self, printed: Completed) -> str:
        return version_in(printed)

    def files(self, workload: Workload) -> Files:
        return {}

    def command(self, workload: Workload) -> Argv:
        refuse_unsendable(
            self.name, workload, protocols=(HTTP1, H2C, H2), able=(Ability.RATE, Ability.HEADERS)
        )
        is_http2 = workload.protocol != HTTP1
        patience_s = min(workload.duration_s, MOST_PATIENCE_S)
        rate_rps = workload.rate_rps
        return (
            *("oha", "--no-tui", "--output-format", "json", "--disable-compression"),
            *("-c", str(workload.connections), "--worker-threads", str(workload.threads)),
            *("-z", f"{round(workload.duration_s * 1000)}ms", "-t", f"{round(patience_s * 1000)}ms"),
            *(() if rate_rps is None else ("-q", f"{rate_rps:.6g}", "--latency-correction")),
            # Some releases follow redirects unless told not to, wherever they lead; over HTTP/2 none does.
            *(("--http2",) if is_http2 else ("--redirect", "0")),
            *(() if workload.keepalive else ("--disable-keepalive",)),
            *(("--cacert", str(workload.certificate)) if workload.certificate else ()),
            *(() if workload.verifies else ("--insecure",)),
            *header_options(workload, "-H"),
            workload.url,
        )

    def outputs(self, workload: Workload) -> tuple[PurePosixPath, ...]:
        return ()

    def parse(self, completed: Completed, outputs: Files, workload: Workload) -> LoadResult:
        with reading(self.name, "result", completed):
            if completed.returncode:
                return _panicked(completed, workload)
            return _result(json_object(text_of(completed.stdout)), workload)


def _panicked(completed: Completed, workload: Workload) -> LoadResult:
    """Read why it panicked: without open files it cannot even start."""
    fault = own_fault(text_of(completed.stderr))
    if fault is None:
        raise unreadable(Oha.name, "it failed", completed)
    return gave_up(completed, workload, fault, fault)


def _result(report: Mapping[str, object], workload: Workload) -> LoadResult:
    summary = as_object(report["summary"])
    statuses = {
        status: as_count(count) for status, count in as_object(report["statusCodeDistribution"]).items()
    }
    errors = {error: as_count(count) for error, count in as_object(report["errorDistribution"]).items()}
    answered = sum(count for status, count in statuses.items() if 200 <= int(status) < 300)  # noqa: PLR2004 - 2xx
    responses = sum(statuses.values())
    received = as_count(summary["totalData"])
    totals = Totals(answered=answered, refused=responses - answered, broken=0, received_bytes=received)
    wrong = answered if has_wrong_bodies(totals, workload) else 0
    kinds = Counter[str]()
    for error, count in errors.items():
        if error != UNDER_WAY:
            kinds[_kind(error)] += count
    silent = max(0, workload.connections - responses - kinds.total())
    return LoadResult(
        duration_s=positive(summary["total"]),
        correct=answered - wrong,
        failures=Failures(
            connect=kinds["connect"],
            read=kinds["read"],
            write=kinds["write"],
            timeout=kinds["timeout"] + (silent if workload.rate_rps is None else 0),
            status=responses - answered,
            length=wrong,
            other=kinds["other"],
        ),
        bytes=received,
        latency=_latency(report, responses) if answered > wrong else None,
        connect_time=_connect_time(report) if responses else None,
        generator_fault=next((fault for error in errors if (fault := own_fault(error))), None),
    )


def _kind(error: str) -> str:
    return next((kind for part, kind in _KINDS if part in error), "other")


def _latency(report: Mapping[str, object], samples: int) -> Latency:
    summary, percentiles = as_object(report["summary"]), as_object(report["latencyPercentiles"])
    grid = {quantile: as_float(percentiles[name]) * 1000 for name, quantile in _PERCENTILES.items()}
    grid[1.0] = as_float(summary["slowest"]) * 1000
    return latency_of_quantiles(grid, samples, mean_ms=as_float(summary["average"]) * 1000)


def _connect_time(report: Mapping[str, object]) -> ConnectTime | None:
    dialup = as_object(as_object(report["details"])["DNSDialup"])
    if dialup["average"] is None:
        return None
    return ConnectTime(
        min_ms=as_float(dialup["fastest"]) * 1000,
        mean_ms=as_float(dialup["average"]) * 1000,
        max_ms=as_float(dialup["slowest"]) * 1000,
    )
