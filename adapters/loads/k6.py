"""k6: HTTP/1.1 with every response looked at, or a script of the user's own (WebSocket, several steps).

k6 runs JavaScript for each request and needs many times the CPU of wrk: take it for what wrk cannot send.

A script of the user's own exports one default function. It is called over and over, with
`{url, connections, headers}`, and may return a promise. A call that throws or gives `false` has failed, any
other was right; what a call took is its latency. `options` of the script are ignored, as the workload decides
them.

What to know of k6, from its manual and behaviour:

* A scenario lasts 1 s at least. gracefulStop is 0 s: iterations under way when the window ends are no
  failures.
* A fixed rate is sent by `connections` virtual users; what they cannot send in time are `dropped_iterations`.
* It asks for no compression, follows no redirect here, and would send usage statistics: that is switched off.
* A GET whose kept connection is reset before any answer is sent again by Go's net/http: such resets are not
  seen, only their cost.
* http_req_duration holds failed requests, too; the latencies here are those of correct responses.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import ClassVar

from tuner.adapters.loads._k6_scripts import HTTP, SCRIPTED
from tuner.errors import UsageError
from tuner.kit.latency import latency_of_quantiles
from tuner.kit.load_command import Ability, refuse_unsendable
from tuner.kit.load_output import (
    as_count,
    as_float,
    as_list,
    as_object,
    connect_time,
    json_object,
    positive,
    reading,
    text_of,
    unreadable,
    version_in,
)
from tuner.ports import (
    FAILURE_KINDS,
    Argv,
    Completed,
    Failures,
    Files,
    Latency,
    LoadResult,
    Workload,
)

LEAST_S = 1.0
GRID = (*(step / 100 for step in (1, 5, *range(10, 95, 5), *range(95, 100))), *(0.995, 0.999, 0.9999, 1.0))
TRENDS = tuple(f"p({quantile * 100:g})" for quantile in GRID)
"""How k6 calls these percentiles."""
RESULT = "tuner-result "
"""Begins the line of stdout that holds the result."""
MOST_SCRIPT_BYTES = 1_000_000


class K6:
    """The load generator k6."""

    name: ClassVar[str] = "k6"
    package: ClassVar[str] = ""
    installed_by: ClassVar[str] = "go install go.k6.io/k6@latest"

    def __init__(self, script: Path | None = None) -> None:
        """Read the user's own script, if there is one. Raises UsageError when it cannot be read."""
        self._script = None if script is None else _read(script)

    def version_command(self) -> Argv | None:
        return ("k6", "version")

    def read_version(self, printed: Completed) -> str:
        return version_in(printed)

    def files(self, workload: Workload) -> Files:
        main = (HTTP if self._script is None else SCRIPTED).replace("SETTINGS", _settings(workload))
        own = {} if self._script is None else {workload.directory / "script.js": self._script}
        return {workload.directory / "k6.js": main.encode(), **own}

    def command(self, workload: Workload) -> Argv:
        refuse_unsendable(self.name, workload, able=(Ability.RATE, Ability.HEADERS, Ability.BODIES))
        if workload.duration_s < LEAST_S:
            raise UsageError(
                f"load generator k6: a window of {workload.duration_s:g} s is too short. Use 1 s or more."
            )
        # Go reads the authorities that it trusts from there (crypto/x509).
        trusting = ("env", f"SSL_CERT_FILE={workload.certificate}") if workload.certificate else ()
        return (
            *trusting,
            *("k6", "run", "--quiet", "--no-color", "--no-usage-report", "--address", ""),
            # k6 logs each failed request; the counts have them. A user's script may have something to say.
            *(("--log-output", "none") if self._script is None else ("--log-format", "raw")),
            str(workload.directory / "k6.js"),
        )

    def outputs(self, workload: Workload) -> tuple[PurePosixPath, ...]:
        return ()

    def parse(self, completed: Completed, outputs: Files, workload: Workload) -> LoadResult:
        with reading(self.name, "result", completed):
            if completed.returncode:
                raise unreadable(self.name, "it failed", completed)
            lines = [line for line in text_of(completed.stdout).splitlines() if line.startswith(RESULT)]
            if len(lines) != 1:
                raise unreadable(self.name, f"{len(lines)} lines with a result instead of one", completed)
            return _result(json_object(lines[0].removeprefix(RESULT)), workload)


def _read(script: Path) -> bytes:
    try:
        content = script.read_bytes()
    except OSError as error:
        raise UsageError(
            f"load.script: {str(script)!r} cannot be read: {error.strerror}. Correct the path."
        ) from error
    if len(content) > MOST_SCRIPT_BYTES:
        raise UsageError(
            f"load.script: {str(script)!r} has {len(content)} bytes, {MOST_SCRIPT_BYTES} are allowed. "
            "Shorten it."
        )
    return content


def _settings(workload: Workload) -> str:
    """Write what the script needs to know, as a JavaScript literal."""
    length = f"{round(workload.duration_s * 1000)}ms"
    if workload.rate_rps is None:
        scenario: dict[str, object] = {"executor": "constant-vus", "vus": workload.connections}
    else:
        scenario = {
            "executor": "constant-arrival-rate",
            # A rate is a whole number for k6: requests in 100 s.
            "rate": max(1, round(workload.rate_rps * 100)),
            "timeUnit": "100s",
            "preAllocatedVUs": workload.connections,
            "maxVUs": workload.connections,
        }
    body = workload.body
    settings = {
        "url": workload.url,
        "connections": workload.connections,
        "headers": dict(workload.headers),
        "bodyBytes": workload.body_bytes,
        "leastBytes": body.least_bytes,
        "contains": body.contains,
        "sha256": "" if body.content is None else hashlib.sha256(body.content).hexdigest(),
        "timeout": length,
        "marker": RESULT,
        "percentiles": TRENDS,
        "options": {
            "scenarios": {"load": {**scenario, "duration": length, "gracefulStop": "0s"}},
            "noConnectionReuse": not workload.keepalive,
            "insecureSkipTLSVerify": not workload.verifies,
            "summaryTrendStats": ("count", "min", "avg", "max", *TRENDS),
        },
    }
    # json.dumps leaves these two alone, and JavaScript once took them for ends of line.
    return json.dumps(settings).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _result(result: Mapping[str, object], workload: Workload) -> LoadResult:
    counts = {
        kind: as_count(as_object(result["counts"]).get(kind, 0))
        for kind in ("correct", *FAILURE_KINDS, "dropped")
    }
    correct = counts["correct"]
    done = correct + sum(counts[kind] for kind in FAILURE_KINDS)
    silent = max(0, workload.connections - done) if workload.rate_rps is None else 0
    own = result["generatorFault"]
    if own is not None and not isinstance(own, str):
        raise ValueError(f"{own!r} is no message")
    # Requests of a fixed rate for which no virtual user was free have failed, too.
    failed = {kind: counts[kind] for kind in FAILURE_KINDS}
    failed |= {"timeout": failed["timeout"] + silent, "other": failed["other"] + counts["dropped"]}
    return LoadResult(
        duration_s=positive(result["durationMs"]) / 1000,
        correct=correct,
        failures=Failures(**failed),
        bytes=as_count(result["bytes"]),
        latency=_latency(as_object(result["latency"])) if correct else None,
        connect_time=connect_time(result["connect"], mean="avg"),
        generator_fault=own,
    )


def _latency(trend: Mapping[str, object]) -> Latency:
    values_ms = [as_float(value) for value in as_list(trend["percentiles"])]
    grid = {**dict(zip(GRID, values_ms, strict=True)), 1.0: as_float(trend["max"])}
    return latency_of_quantiles(grid, as_count(trend["count"]), mean_ms=as_float(trend["avg"]))
