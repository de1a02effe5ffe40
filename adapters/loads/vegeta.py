"""vegeta 12: HTTP/1.1 and HTTP/2, evenly spaced requests at a rate, mixes, every response in a log.

What vegeta counts, as its source shows (lib/attack.go, lib/pacer.go, lib/results.go of 12.13):

* `seq` numbers requests in the order in which they are sent. Number n is due n / rate after the first.
* A request that is due while all workers wait is sent later. What is due when the time is up is not sent.
* `latency` counts from `timestamp`, when the request was sent, until the whole body has come.
* `bytes in` are only those that vegeta keeps (-max-body). Here it keeps none, so the length is that of the
  Content-Length; a body that ends too early is an error.
* `code` is 0 without a whole response. `error` also holds the text of each status of 4xx or 5xx.
* It waits for the last responses, up to -timeout.
* Without a rate (-rate=0) the workers send as fast as responses come.
* Over HTTP/2 all requests share one connection: `connections` are the requests under way at once.
* Go asks for compressed responses unless a request says what it accepts.
* Each request has the headers X-Vegeta-Seq, its number, and a User-Agent of Go.
"""

import base64
import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import ClassVar

from tuner.adapters.loads._h2load_log import PATIENCE_S
from tuner.adapters.loads._wrk_mix import order_of
from tuner.adapters.loads.h2load import BY_LENGTH
from tuner.errors import UsageError
from tuner.kit.latency import latency_of_samples
from tuner.kit.load_command import Ability, ended_after, refuse_unsendable
from tuner.kit.load_output import own_fault, reading, text_of, unreadable
from tuner.ports import (
    H2,
    H2C,
    HTTP1,
    Argv,
    Completed,
    Failures,
    Files,
    LoadResult,
    RequestKind,
    Workload,
)

SCRIPT = '"$@" -output="$0.bin" && exec vegeta encode -to=csv -output="$0.csv" "$0.bin"'
"""Writes the log when the load is over."""
MOST_PATIENCE_S = 5.0
GRACE_S = 3.0
"""How long it may take to start, and to write the log."""
PRECISION_NS = 1_000_000
"""Go's timers wake it up within a millisecond; a request that is sent so soon after it is due is on time."""
COLUMNS = 12
_VERSION = re.compile(r"^Version:\s*v?([\d.]+)", re.MULTILINE)
_LENGTH = re.compile(rb"^content-length:\s*(\d{1,16})", re.IGNORECASE | re.MULTILINE)
_KINDS = (
    ("deadline exceeded", "timeout"),
    ("Timeout exceeded", "timeout"),
    ("connection refused", "connect"),
    ("broken pipe", "write"),
    ("EOF", "read"),
    ("reset", "read"),
)
"""Part of an error message → kind of failure; the first that fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One line of the log."""

    number: int
    sent_ns: int
    took_ns: int
    status: int
    error: str
    asked: tuple[str, str]
    """Method and URL."""
    body_bytes: int | None


class Vegeta:
    """The load generator vegeta."""

    name: ClassVar[str] = "vegeta"
    package: ClassVar[str] = ""
    installed_by: ClassVar[str] = "go install github.com/tsenart/vegeta/v12@v12.13.0"
    most_rps_per_connection: ClassVar[float] = math.inf

    def version_command(self) -> Argv | None:
        return ("vegeta", "-version")

    def read_version(self, printed: Completed) -> str:
        found = _VERSION.search(text_of(printed.stdout))
        return found.group(1) if found else ""

    def files(self, workload: Workload) -> Files:
        kinds = _kinds(workload)
        order = order_of([each.weight for each in kinds])
        lines = (json.dumps(_target(kinds[index], workload)) for index in order)
        return {_path(workload, "targets"): "".join(f"{line}\n" for line in lines).encode()}

    def command(self, workload: Workload) -> Argv:
        able = (Ability.RATE, Ability.MIX, Ability.ENCODING, Ability.HEADERS)
        refuse_unsendable(self.name, workload, protocols=(HTTP1, H2, H2C), able=able)
        asked = Counter((each.method, each.path) for each in workload.requests)
        for (method, path), count in asked.items():
            if count > 1:  # its log has no headers of requests
                raise UsageError(
                    f"load generator vegeta: {count} requests of the mix have the same method and path "
                    f"({method} {path}). Keep one of these requests, or use another generator."
                )
        for each in workload.requests:
            if each.body.check not in BY_LENGTH:
                raise UsageError(
                    "load generator vegeta: vegeta reads no response bodies, so it cannot judge `body: "
                    f"{each.body.check}` of {each.path}. Write `body: any` or `body: length`."
                )
        rate_rps = workload.rate_rps
        patience_s = _patience_s(workload)
        attack = (
            "vegeta", f"-cpus={workload.threads}", "attack", "-format=json", "-max-body=0", "-redirects=-1",
            f"-targets={_path(workload, 'targets')}",
            "-rate=0" if rate_rps is None else f"-rate={round(1000 * rate_rps)}/1000s",
            f"-duration={workload.duration_s:.3f}s", f"-timeout={patience_s:.3f}s",
            f"-workers={workload.connections}", f"-max-workers={workload.connections}",
            f"-connections={workload.connections}", f"-max-connections={workload.connections}",
            f"-keepalive={str(workload.keepalive).lower()}", f"-http2={str(workload.protocol == H2).lower()}",
            *(("-h2c",) if workload.protocol == H2C else ()),
            *((f"-root-certs={workload.certificate}",) if workload.certificate else ()),
            *(() if workload.verifies else ("-insecure",)),
        )  # fmt: skip
        limit_s = workload.duration_s + patience_s + GRACE_S
        return ended_after(limit_s, ("sh", "-c", SCRIPT, str(workload.directory / "vegeta"), *attack))

    def outputs(self, workload: Workload) -> tuple[PurePosixPath, ...]:
        return (_path(workload, "csv"),)

    def parse(self, completed: Completed, outputs: Files, workload: Workload) -> LoadResult:
        with reading(self.name, "log", completed):
            if completed.returncode:
                raise unreadable(self.name, "it failed", completed)
            log = sorted(_read(outputs[_path(workload, "csv")]), key=lambda each: each.number)
            return _result(log, workload)


def _path(workload: Workload, suffix: str) -> PurePosixPath:
    return workload.directory / f"vegeta.{suffix}"


def _patience_s(workload: Workload) -> float:
    return min(workload.timeout_s or workload.duration_s, MOST_PATIENCE_S)


def _kinds(workload: Workload) -> Sequence[RequestKind]:
    """Return the mix, or the only request."""
    path = "/" + "/".join(workload.url.split("/")[3:])
    only = RequestKind(path=path, headers=workload.headers, body_bytes=workload.body_bytes)
    return workload.requests or (only,)


def _url(kind: RequestKind, workload: Workload) -> str:
    return "/".join(workload.url.split("/")[:3]) + kind.path


def _target(kind: RequestKind, workload: Workload) -> Mapping[str, object]:
    accepted = {"Accept-Encoding": workload.accept_encoding or "identity"}
    if any(name.lower() == "accept-encoding" for name in kind.headers):
        accepted = {}
    headers = {name: [value] for name, value in {**accepted, **kind.headers}.items()}
    return {"method": kind.method, "url": _url(kind, workload), "header": headers}


def _rows(content: bytes) -> Iterator[list[str]]:
    try:
        yield from csv.reader(io.StringIO(content.decode()))
    except csv.Error as error:
        raise ValueError(f"its log is no CSV: {error}") from error


def _read(content: bytes) -> Iterator[_Request]:
    """Yield the lines of a log. Raises ValueError for anything that is none."""
    lengths: dict[str, int | None] = {}
    for row in _rows(content):
        if len(row) != COLUMNS:
            raise ValueError(f"a line of the log has {len(row)} columns instead of {COLUMNS}")
        headers = row[11]
        if headers not in lengths:
            found = _LENGTH.search(base64.b64decode(headers, validate=True))
            lengths[headers] = int(found.group(1)) if found else None
        yield _Request(
            sent_ns=int(row[0]), status=int(row[1]), took_ns=int(row[2]), error=row[5], number=int(row[8]),
            asked=(row[9], row[10]), body_bytes=lengths[headers],
        )  # fmt: skip


def _result(log: Sequence[_Request], workload: Workload) -> LoadResult:
    kinds = _kinds(workload)
    places = {(each.method, _url(each, workload)): index for index, each in enumerate(kinds)}
    rate_rps = workload.rate_rps
    failed, sent = Counter[str](), [0] * len(kinds)
    correct_us = list[int]()
    for each in log:
        place = places[each.asked]
        sent[place] += 1
        late = 0
        if rate_rps is not None:
            late = each.sent_ns - log[0].sent_ns - round(1e9 * (each.number - log[0].number) / rate_rps)
            late = late if late > PRECISION_NS else 0
        wrong = _find_wrong(each, kinds[place])
        if wrong is None:
            correct_us.append(round((late + each.took_ns) / 1000))
        else:
            failed[wrong] += 1
    waiting_s = workload.timeout_s or min(PATIENCE_S, workload.duration_s / 4)
    due = 0 if rate_rps is None else math.floor(rate_rps * (workload.duration_s - waiting_s))
    return LoadResult(
        duration_s=workload.duration_s,
        correct=len(correct_us),
        failures=replace(Failures(**failed), timeout=failed["timeout"] + max(0, due - len(log))),
        bytes=sum(each.body_bytes or 0 for each in log),
        latency=latency_of_samples(correct_us),
        sent=tuple(sent) if workload.requests else (),
        generator_fault=next((fault for each in log if (fault := own_fault(each.error))), None),
    )


def _find_wrong(request: _Request, kind: RequestKind) -> str | None:
    """Return the kind of failure; None for a correct response."""
    if not request.status:
        return next((failure for part, failure in _KINDS if part in request.error), "other")
    if request.status != kind.status:
        return "status"
    known = request.body_bytes is not None and kind.body_bytes is not None
    return "length" if known and request.body_bytes != kind.body_bytes else None
