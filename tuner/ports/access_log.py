"""How the lines of an access log are read: the fields that tuner looks for, and a pattern that finds them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Protocol, runtime_checkable

from tuner.ports.server import Installation, Server


class LogField(StrEnum):
    """What tuner reads of a logged request; everything else on a line is passed over."""

    TIME = "time"
    """To the second, in one of the forms of `tuner.kit.access_log`."""
    REQUEST = "request"
    """The request line: method, target and protocol."""
    METHOD = "method"
    TARGET = "target"
    """Path and query."""
    PROTOCOL = "protocol"
    STATUS = "status"
    BYTES = "bytes"
    """Length of the response."""
    DURATION = "duration"
    """How long the server took for the request."""
    CONNECTION = "connection"
    """What is the same for all requests of one connection."""
    SERIAL = "serial"
    """Number of the request on its connection."""
    TLS = "tls"
    ENCODING = "encoding"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """One format of an access log."""

    name: str
    pattern: re.Pattern[str]
    """Matches a whole line; each of its groups is a field."""
    fields: tuple[LogField, ...]
    """What the groups are, in order."""
    unit_s: float = 1.0
    """Seconds that a duration of 1 is."""
    first_serial: int = 1
    """Number of the first request of a connection."""

    def rows(self, text: str) -> list[tuple[str, ...]]:
        """Return the fields of all lines of a text that are in this format."""
        return self.pattern.findall(text)


@runtime_checkable
class LoggingServer(Server, Protocol):
    """A server whose access logs can be read."""

    def usual_log_formats(self) -> tuple[LineFormat, ...]:
        """Return the formats that it writes unless told otherwise, beside common and combined."""

    def read_log_format(self, text: str) -> LineFormat | None:
        """Return how lines are read that it writes in a format; None for another server's.

        Raises UsageError for a format in its language that does not say what was asked, and how it ended.
        """

    def find_logs(self, installation: Installation) -> Mapping[PurePosixPath, str]:
        """Return the access logs that an installed server's files name → the format of each. Pure."""
