"""Reads logs whose lines are JSON objects, and HAR files, by the usual names of their fields."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import urlsplit, urlunsplit

from tuner.errors import UsageError
from tuner.ports import LogField

Names = tuple[str, ...]
"""Keys, with dots between those of nested objects; the values of several are joined."""
NAMES: Mapping[LogField, tuple[Names, ...]] = {
    LogField.TIME: (
        *(("ts",), ("time_iso8601",), ("time_local",), ("msec",), ("timestamp",), ("@timestamp",)),
        *(("time",), ("datetime",), ("date",)),
    ),
    LogField.REQUEST: (("request",), ("request_line",)),
    LogField.METHOD: (("request.method",), ("request_method",), ("method",), ("http_method",)),
    LogField.TARGET: (("request.uri",), ("request_uri",), ("uri",), ("url",), ("path",)),
    LogField.PROTOCOL: (("request.proto",), ("server_protocol",), ("protocol",), ("proto",)),
    LogField.STATUS: (("status",), ("response_status",), ("status_code",)),
    LogField.BYTES: (("size",), ("body_bytes_sent",), ("bytes_sent",), ("bytes",), ("response_size",)),
    LogField.DURATION: (("duration",), ("request_time",), ("response_time",)),
    LogField.CONNECTION: (("connection",), ("request.remote_ip", "request.remote_port")),
    LogField.SERIAL: (("connection_requests",),),
    LogField.TLS: (("request.tls",), ("ssl_protocol",), ("https",), ("scheme",)),
    LogField.ENCODING: (
        *(("resp_headers.Content-Encoding",), ("sent_http_content_encoding",), ("gzip_ratio",)),
    ),
}
"""The usual names, those of the more exact ones first."""
EMPTY = frozenset({"", "-"})
MAY_LACK = frozenset({LogField.TLS, LogField.ENCODING})
"""What a server leaves out where a request has none."""
MOST_HAR_BYTES = 256 * 2**20
HAR_FIELDS = (
    LogField.TIME, LogField.METHOD, LogField.TARGET, LogField.PROTOCOL, LogField.STATUS, LogField.BYTES,
    LogField.DURATION, LogField.TLS, LogField.ENCODING,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLines:
    """A log of JSON objects with the names that its first lines have."""

    names: Mapping[LogField, Names]

    name: str = "JSON"
    unit_s: float = 1.0
    first_serial: int = 1

    @classmethod
    def find(cls, sample: str) -> "JsonLines | None":
        """Return how the lines of a sample are read; None where they are no JSON, or of no requests."""
        objects = [found for line in sample.split("\n") if (found := _read_object(line)) is not None]
        names = {
            field: present[0]
            for field, known in NAMES.items()
            if (present := [each for each in known if any(_has(one, each, field) for one in objects)])
        }
        is_log = LogField.STATUS in names and not names.keys().isdisjoint({LogField.REQUEST, LogField.TARGET})
        return cls(names=names) if is_log else None

    @property
    def fields(self) -> tuple[LogField, ...]:
        return tuple(self.names)

    def rows(self, text: str) -> list[tuple[str, ...]]:
        """Return the fields of all lines of a text that tell of a request."""
        names = list(self.names)
        status = names.index(LogField.STATUS)
        asked = names.index(LogField.REQUEST if LogField.REQUEST in self.names else LogField.TARGET)
        paths = [[name.split(".") for name in each] for each in self.names.values()]
        found = (_read_row(line, paths) for line in text.split("\n"))
        return [each for each in found if each and each[status].isdecimal() and each[asked] not in EMPTY]


def _read_row(line: str, paths: Sequence[Sequence[Sequence[str]]]) -> tuple[str, ...]:
    """Return the values at some paths of keys; none for what is no object."""
    value = _read_object(line)
    if value is None:
        return ()
    return tuple(
        _show(_follow(value, each[0]))
        if len(each) == 1
        else ":".join(_show(_follow(value, keys)) for keys in each)
        for each in paths
    )


def _read_object(line: str) -> Mapping[str, object] | None:
    # Before it may be a time, a host or a name, as journals, containers and consoles show lines.
    _, brace, rest = line.partition("{")
    if not brace:
        return None
    try:
        value = json.loads(brace + rest)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _has(value: Mapping[str, object], names: Names, field: LogField) -> bool:
    found = [_follow(value, name.split(".")) for name in names]
    return all(isinstance(each, str | int | float) or (each and field in MAY_LACK) for each in found)


def _follow(value: object, keys: Sequence[str]) -> object:
    """Return the value at a path of keys; None where there is none."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _show(value: object) -> str:
    """Return a value as a log of text would have it."""
    if isinstance(value, str):
        return value
    if value is None or value is False:
        return "-"
    if isinstance(value, list):
        return _show(value[0]) if value else "-"
    return "on" if isinstance(value, dict) else str(value)


def read_har(file: BinaryIO, source: str) -> tuple[list[tuple[str, ...]], int]:
    """Return the requests of a HAR file to the host of its first one, by HAR_FIELDS, and how many others had.

    Raises UsageError for a file that is none.
    """
    content = file.read(MOST_HAR_BYTES + 1)
    if len(content) > MOST_HAR_BYTES:
        most = MOST_HAR_BYTES // 2**20
        raise UsageError(f"{source}: this HAR file has more than {most} MiB. Record fewer pages.")
    try:
        entries = json.loads(content)["log"]["entries"]
        hosts = [urlsplit(each["request"]["url"]).netloc for each in entries]
        rows = [_read_entry(each) for each, host in zip(entries, hosts, strict=True) if host == hosts[0]]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise UsageError(
            f"{source}: this is no HAR file ({type(error).__name__}: {error}). Save a HAR file with the "
            "network panel of a browser."
        ) from error
    return rows, len(hosts) - len(rows)


def _read_entry(entry: Mapping[str, Any]) -> tuple[str, ...]:
    request, response = entry["request"], entry["response"]
    url = urlsplit(str(request["url"]))
    path = urlunsplit(("", "", url.path or "/", url.query, ""))
    headers = {str(each["name"]).lower(): str(each["value"]) for each in response.get("headers") or ()}
    sent = response.get("bodySize")
    size = sent if isinstance(sent, int | float) and sent >= 0 else _follow(response, ("content", "size"))
    taken_ms = entry.get("time")
    taken_s = taken_ms / 1000 if isinstance(taken_ms, int | float) else 0.0
    return (
        str(entry.get("startedDateTime", "-")), str(request["method"]), path,
        str(request.get("httpVersion", "-")), str(response["status"]), _show(size), f"{taken_s:.6f}",
        url.scheme, headers.get("content-encoding", "-"),
    )  # fmt: skip
