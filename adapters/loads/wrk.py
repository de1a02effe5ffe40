"""wrk 4.1 and 4.2: closed loop, HTTP/1.1, in the clear or over TLS, raw totals through a Lua script.

What wrk counts, by its source (wrk.c, stats.c, script.c of 4.1.0; 4.2.0 has the same statistics):

* `requests` are complete responses of any status; `errors.status` those above 399.
* `errors.timeout` are responses that came later than --timeout. Their latency is thrown away, so --timeout
  is set beyond the window here. A request that is never answered is counted nowhere: see `_unanswered`.
* `errors.connect` on plain HTTP is a socket that could not be had at all, as no local port or no open file
  was left; that connection is never tried again. A refusal by the server comes later, as `errors.read`.
* Over TLS `errors.connect` are failed handshakes as well. Certificates are not looked at; the probes before
  the load have done so.
* `errors.read` are resets and responses that end before their length.
* A response() function in the script, called for every response, was measured to add about 2 µs of CPU to the
  19 µs that a request of 2 kB costs over loopback, so single responses are looked at only in a mix, and where
  totals cannot tell a correct page: it varies, or is judged by what it contains.
* Latencies are "corrected": samples are made up for every latency above twice the mean cycle (stats_correct).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import ClassVar
from urllib.parse import urlsplit, urlunsplit

from tuner.adapters.loads._wrk_mix import read_asked, read_mix, write_headers, write_script
from tuner.kit.bodies import Totals, has_wrong_responses
from tuner.kit.latency import latency_of_quantiles
from tuner.kit.load_command import Ability, interrupted_after, is_whole, refuse_unsendable
from tuner.kit.load_output import (
    as_count,
    as_float,
    as_list,
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
from tuner.kit.packages import Package
from tuner.ports import Argv, Completed, Failures, Files, Latency, LoadResult, RequestKind, Workload

# wrk's percentile(100) looks for one sample more than there are and returns 0: `max` stands for it.
_GRID = (
    *(step / 100 for step in (1, 2, 5, *range(10, 95, 5), *range(95, 100))),
    *(0.992, 0.994, 0.996, 0.998, 0.999, 0.9995, 0.9999, 0.99999),
)

_SCRIPT = """\
-- Written by tuner. Without a mix only done() is defined: response() would be called for every response.
local grid = {%s}

function done(summary, latency, requests)
  local errors = summary.errors
  local values = {}
  if summary.requests > 0 then
    for index, quantile in ipairs(grid) do
      values[index] = string.format("%%.0f", latency:percentile(quantile * 100))
    end
    values[#values + 1] = string.format("%%.0f", latency.max)
  end
  io.write('{', mix and mix() or '', string.format(
    '"duration_us": %%.0f, "requests": %%.0f, "bytes": %%.0f, "mean_us": %%.3f, "latency_us": [%%s], ' ..
    '"errors": {"connect": %%.0f, "read": %%.0f, "write": %%.0f, "status": %%.0f, "timeout": %%.0f}}\\n',
    summary.duration, summary.requests, summary.bytes, latency.mean, table.concat(values, ", "),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
"""
_UNABLE = re.compile(r"unable to connect to (.{1,300})")


class Wrk:
    """The load generator wrk."""

    name: ClassVar[str] = "wrk"
    package: ClassVar[str] = Package("wrk", apk="wrk")
    keeps_asking: ClassVar[bool] = True

    def version_command(self) -> Argv | None:
        return ("wrk", "-v")

    def read_version(self, printed: Completed) -> str:
        return version_in(printed)

    def files(self, workload: Workload) -> Files:
        grid = ", ".join(f"{quantile:.5f}" for quantile in _GRID)
        kinds = _kinds_to_look_at(workload)
        # Requests of a mix have headers of their own.
        headers = "" if workload.requests else write_headers(workload.headers)
        mix = write_script(kinds) if kinds else ""
        return {_script_path(workload): (headers + mix + _SCRIPT % grid).encode()}

    def command(self, workload: Workload) -> Argv:
        refuse_unsendable(
            self.name, workload, able=(Ability.MIX, Ability.ENCODING, Ability.HEADERS, Ability.BODIES)
        )
        seconds = math.ceil(workload.duration_s)
        late_s = min(seconds + 2, math.ceil(workload.timeout_s)) if workload.timeout_s else seconds + 2
        argv = (
            "wrk",
            f"--connections={workload.connections}",
            f"--threads={_threads(workload)}",
            f"--duration={seconds}s",
            f"--timeout={late_s}s",
            f"--script={_script_path(workload)}",
            # Asked for in so many words, as the probe of the response's length does.
            f"--header=Connection: {'keep-alive' if workload.keepalive else 'close'}",
            *((f"--header=Accept-Encoding: {workload.accept_encoding}",) if workload.accept_encoding else ()),
            workload.url,
        )
        return argv if is_whole(workload.duration_s) else interrupted_after(workload.duration_s, argv)

    def outputs(self, workload: Workload) -> tuple[PurePosixPath, ...]:
        return ()

    def parse(self, completed: Completed, outputs: Files, workload: Workload) -> LoadResult:
        with reading(self.name, "summary", completed):
            if completed.returncode:
                return self._not_started(completed, workload)
            lines = [line for line in text_of(completed.stdout).splitlines() if line.startswith("{")]
            if len(lines) != 1:
                raise unreadable(self.name, f"{len(lines)} summary lines instead of one", completed)
            return _result(json_object(lines[0]), workload)

    def _not_started(self, completed: Completed, workload: Workload) -> LoadResult:
        """Read why it did not start: wrk tries one connection first; without it, it ends with status 1."""
        unable = _UNABLE.search(text_of(completed.stderr))
        if unable is None:
            raise unreadable(self.name, "it failed", completed)
        return gave_up(completed, workload, unable.group(0).strip(), own_fault(unable.group(0)))


def _kinds_to_look_at(workload: Workload) -> tuple[RequestKind, ...]:
    """Return the kinds of requests of which every response is looked at; none where totals tell enough."""
    if workload.requests or not workload.body.needs_look:
        return workload.requests
    parts = urlsplit(workload.url)
    path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    return (RequestKind(path=path, body_bytes=workload.body_bytes, body=workload.body),)


def _script_path(workload: Workload) -> PurePosixPath:
    return workload.directory / "wrk.lua"


def _threads(workload: Workload) -> int:
    """Return a divisor of the connections: wrk gives each thread a whole share and drops the rest."""
    most = max(1, min(workload.threads, workload.connections))
    return next(count for count in range(most, 0, -1) if workload.connections % count == 0)


def _result(summary: Mapping[str, object], workload: Workload) -> LoadResult:
    errors = {kind: as_count(count) for kind, count in as_object(summary["errors"]).items()}
    if _kinds_to_look_at(workload):
        return _result_of_mix(summary, errors, workload)
    requests, received = as_count(summary["requests"]), as_count(summary["bytes"])
    late = errors["timeout"]
    answered = requests - errors["status"] - late
    if answered < 0:
        raise ValueError(f"{errors['status']} wrong statuses and {late} timeouts in {requests} responses")
    totals = Totals(
        answered=answered, refused=errors["status"], broken=errors["read"] + late, received_bytes=received
    )
    wrong = answered if has_wrong_responses(totals, workload) else 0
    return LoadResult(
        duration_s=positive(summary["duration_us"]) / 1e6,
        correct=answered - wrong,
        failures=Failures(
            connect=errors["connect"],
            read=errors["read"],
            write=errors["write"],
            timeout=late + _unanswered(requests, errors, workload),
            status=errors["status"],
            length=wrong,
        ),
        bytes=received,
        latency=_latency(summary, requests) if answered > wrong else None,
        generator_fault=_own_fault(errors, workload),
    )


def _result_of_mix(
    summary: Mapping[str, object], errors: Mapping[str, int], workload: Workload
) -> LoadResult:
    """Read the counts of a load of which every response was looked at."""
    requests = as_count(summary["requests"])
    correct, wrong = read_mix(summary["mix"])
    unheard = errors["timeout"] + _unanswered(requests, errors, workload)
    return LoadResult(
        duration_s=positive(summary["duration_us"]) / 1e6,
        correct=correct,
        failures=replace(
            wrong, connect=errors["connect"], read=errors["read"], write=errors["write"], timeout=unheard
        ),
        bytes=as_count(summary["bytes"]),
        latency=_latency(summary, requests) if correct else None,
        generator_fault=_own_fault(errors, workload),
        sent=read_asked(summary["mix"]),
    )


def _own_fault(errors: Mapping[str, int], workload: Workload) -> str | None:
    if not errors["connect"] or not workload.url.startswith("http://"):
        return None
    return f"{errors['connect']} sockets could not be opened: no local port or no open file was left"


def _unanswered(requests: int, errors: Mapping[str, int], workload: Workload) -> int:
    """Count connections on which nothing happened in the whole window.

    Each connection has one request under way. Where there are fewer events than connections, the others
    waited in vain from the first moment to the last, which wrk reports nowhere. A server that falls silent
    later shows as less goodput only.
    """
    happened = requests + errors["connect"] + errors["read"] + errors["write"]
    return max(0, workload.connections - happened)


def _latency(summary: Mapping[str, object], requests: int) -> Latency:
    values_ms = [as_float(value) / 1000 for value in as_list(summary["latency_us"])]
    grid = dict(zip((*_GRID, 1.0), values_ms, strict=True))
    return latency_of_quantiles(grid, requests, mean_ms=as_float(summary["mean_us"]) / 1000, corrected=True)
