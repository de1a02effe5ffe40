"""How the result of a custom command is read: by JSON pointers or by regular expressions."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tuner.kit.load_output import as_count, as_float, positive
from tuner.ports import FAILURE_KINDS, ConnectTime, Failures, Latency, LoadResult, Workload

COUNTS = ("correct", "requests", "bytes", *(f"failures_{kind}" for kind in FAILURE_KINDS))
QUANTITIES = (
    "duration_s",
    "latency_mean_ms",
    "latency_max_ms",
    "connect_min_ms",
    "connect_mean_ms",
    "connect_max_ms",
)
QUANTILE = re.compile(r"latency_p(\d{1,2})(?:_(\d{1,3}))?_ms")
"""latency_p50_ms, latency_p99_9_ms …"""
NUMBER = re.compile(r"\d{1,16}(?:\.\d{1,12})?(?:[eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultReader:
    """A checked `result` section; either pointers or patterns are given."""

    pointers: Mapping[str, str] = field(default_factory=dict)
    """Name → JSON pointer."""
    patterns: tuple[re.Pattern[str], ...] = ()
    scale: Mapping[str, float] = field(default_factory=dict)
    """Name → factor from the program's unit to that of the name."""
    file: str | None = None

    def read(self, text: str, workload: Workload) -> LoadResult:
        """Read the counts. Raises one of load_output.NOT_READ."""
        found = self._by_pointers(text) if self.pointers else self._by_patterns(text)
        values = {name: as_float(value * self.scale.get(name, 1)) for name, value in found.items()}
        failures = Failures(**{kind: as_count(values.get(f"failures_{kind}", 0)) for kind in FAILURE_KINDS})
        return LoadResult(
            duration_s=positive(values.get("duration_s", workload.duration_s)),
            correct=_correct(values, failures),
            failures=failures,
            bytes=as_count(values.get("bytes", 0)),
            latency=_latency(values, failures),
            connect_time=_connect_time(values),
        )

    def _by_pointers(self, text: str) -> dict[str, float]:
        document = json.loads(text)
        return {name: _number(_at(document, pointer), name) for name, pointer in self.pointers.items()}

    def _by_patterns(self, text: str) -> dict[str, float]:
        values: dict[str, float] = {}
        for pattern in self.patterns:
            match = pattern.search(text)
            if match is None:
                raise ValueError(f"nothing matches {pattern.pattern!r}")
            if match.end() == len(text):
                raise ValueError(
                    f"{pattern.pattern!r} matches the very end of the output, which may be cut short; let "
                    "the program print a newline"
                )
            groups = match.groupdict()
            values |= {name: _number(group, name) for name, group in groups.items() if group is not None}
        return values


def _at(document: object, pointer: str) -> object:
    """Follow a JSON pointer (RFC 6901)."""
    here = document
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict) and key in here:
            here = here[key]
        elif isinstance(here, list) and key.isascii() and key.isdigit() and int(key) < len(here):
            here = here[int(key)]
        else:
            raise ValueError(f"the JSON has no value at {pointer}")
    return here


def _number(value: object, name: str) -> float:
    if isinstance(value, str) and NUMBER.fullmatch(value):
        value = float(value)
    try:
        return as_float(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _correct(values: Mapping[str, float], failures: Failures) -> int:
    if "correct" not in values:
        return as_count(values["requests"] - failures.total)
    correct = as_count(values["correct"])
    if "requests" in values and correct > as_count(values["requests"]):
        raise ValueError(f"{correct} correct responses to {values['requests']:g} requests")
    return correct


def _latency(values: Mapping[str, float], failures: Failures) -> Latency | None:
    quantiles_ms = {}
    for name, value in values.items():
        found = QUANTILE.fullmatch(name)
        if found is not None:
            quantiles_ms[float(f"0.{int(found.group(1)):02}{found.group(2) or ''}")] = value
    correct = _correct(values, failures)
    if not quantiles_ms or not correct:
        return None
    return Latency(
        quantiles_ms=dict(sorted(quantiles_ms.items())),
        samples=correct,
        mean_ms=values.get("latency_mean_ms"),
        max_ms=values.get("latency_max_ms"),
    )


def _connect_time(values: Mapping[str, float]) -> ConnectTime | None:
    if "connect_min_ms" not in values:
        return None
    return ConnectTime(
        min_ms=values["connect_min_ms"], mean_ms=values["connect_mean_ms"], max_ms=values["connect_max_ms"]
    )
