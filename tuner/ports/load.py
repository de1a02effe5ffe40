"""The port LoadGenerator: a program that sends the workload and counts what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import PurePosixPath
from typing import ClassVar, Protocol

from tuner.ports.host import Argv, Completed, Files

HTTP1 = "http/1.1"
H2C = "h2c"
"""HTTP/2 over cleartext TCP, known beforehand (RFC 9113, section 3.3)."""
H2 = "h2"
"""HTTP/2 over TLS (RFC 9113, section 3.2)."""
TLS = "tls"
"""HTTP/1.1 over TLS, among what a server may offer; on the wire it is HTTP1."""


class BodyCheck(StrEnum):
    """How the body of a response is judged."""

    LEARNED = "learned"
    """By its length where all responses are alike, otherwise by what they have in common."""
    ANY = "any"
    LENGTH = "length"
    CHECKSUM = "checksum"
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What tells a correct body from another one, beside its length."""

    check: BodyCheck = BodyCheck.LEARNED
    contains: str = ""
    """Text that every correct body contains; ASCII when it was learned."""
    content: bytes | None = None
    """The correct body, where each response is compared with it."""
    least_bytes: int = 0
    varies: bool = False
    """Whether responses differ in length, so that a total says nothing about a single one."""

    @property
    def needs_look(self) -> bool:
        """Return whether each response has to be looked at to be judged."""
        return self.varies or bool(self.contains) or self.content is not None


ANY_BODY = Body()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKind:
    """One kind of request in a mix, and the response that is correct for it."""

    path: str
    """From `/` on; at the origin of the workload's URL."""
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    body_bytes: int | None = None
    """Length of the correct body; None accepts any."""
    sha256: str = ""
    """Checksum of the correct body; empty accepts any. Looked at once in each trial, not under load."""
    body: Body = ANY_BODY
    weight: float = 1.0
    """Its share of the mix, relative to the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadShape:
    """How requests are sent: what stays the same from window to window."""

    connections: int
    keepalive: bool
    threads: int = 1
    protocol: str = HTTP1
    """HTTP1, H2C or H2; whether the first of them is sent over TLS is said by the URL."""
    streams: int = 1
    """Requests at once on each connection; more than one with HTTP/2 alone."""
    accept_encoding: str = ""
    """What each request accepts its answer in: gzip; empty for requests without that header."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with the URL alone; the requests of a mix have their own."""
    body: Body = ANY_BODY
    """How the bodies of responses to the URL are judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(LoadShape):
    """What the load generator sends during one window."""

    url: str
    duration_s: float
    """Length of the window; of one that ends after so many requests, its time limit."""
    requests_total: int | None = None
    """Requests after which the load ends, and which all count: what is not answered when the time is up has
    failed. None for a load that ends by time."""
    rate_rps: float | None = None
    """Requests per second over all connections; None sends as fast as answers come (closed loop)."""
    certificate: PurePosixPath | None = None
    """File that the server's certificate can be checked by; None for those that the system trusts."""
    verifies: bool = True
    """Whether a generator that can check the server's certificate does."""
    requests: tuple[RequestKind, ...] = ()
    """The mix that is sent; empty for GET of the URL alone."""
    body_bytes: int | None = None
    """Length of the correct body; None accepts any."""
    response_bytes: int | None = None
    """Bytes of one whole correct response, header included, as probed in this trial."""
    response_s: float = 0.0
    """How long a response usually takes, where that is long; 0 where it is not known."""
    timeout_s: float | None = None
    """After which a client without a response counts as failed; None: by the response time."""
    directory: PurePosixPath = PurePosixPath("/tmp")  # noqa: S108 - a default for parsing only
    """Where the generator may put its script and its raw data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Requests that got no correct response, by kind. Each failed request is counted once."""

    connect: int = 0
    read: int = 0
    write: int = 0
    timeout: int = 0
    status: int = 0
    length: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        return sum(getattr(self, kind) for kind in FAILURE_KINDS)

    def describe(self) -> str:
        """Return the counts by kind in words, the most frequent first."""
        counts = {words: getattr(self, kind) for kind, words in FAILED.items()}
        most_first = sorted(counts.items(), key=lambda each: -each[1])
        return ", ".join(f"{count:,} {words}" for words, count in most_first if count) or "none"


FAILED: Mapping[str, str] = {
    "connect": "not connected",
    "read": "broken off",
    "write": "not sent",
    "timeout": "not answered in time",
    "status": "answered with another status",
    "length": "answered with another body",
    "other": "failed otherwise",
}
FAILURE_KINDS = tuple(each.name for each in fields(Failures))


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Response times of one window in milliseconds."""

    quantiles_ms: Mapping[float, float]
    """Quantile (0.5, 0.99 …) → milliseconds."""
    samples: int
    corrected: bool = False
    """True when the generator added synthetic samples (wrk); comparable only with its like."""
    mean_ms: float | None = None
    max_ms: float | None = None
    histogram: Mapping[float, int] = field(default_factory=dict)
    """Upper bound of a bin in milliseconds → count; empty when the generator gives no raw data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectTime:
    """Time to establish a connection in milliseconds."""

    min_ms: float
    mean_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What one run of a load generator counted."""

    duration_s: float
    correct: int
    """Responses with the expected status and body length."""
    failures: Failures
    bytes: int = 0
    latency: Latency | None = None
    connect_time: ConnectTime | None = None
    aborted: str | None = None
    """Why the generator gave up before its time; None if it did not. Of a load that ends after so many
    requests, those that it did not send have failed."""
    generator_fault: str | None = None
    """What the generator itself ran out of (local ports, open files); the server is not to blame for it."""
    sent: tuple[int, ...] = ()
    """Of a mix, how many requests of each kind were sent; empty where the generator does not say."""

    @property
    def goodput_rps(self) -> float:
        return self.correct / self.duration_s if self.duration_s > 0 else 0.0


class LoadGenerator(Protocol):
    """A program that sends the workload and counts what comes back.

    One that always has a request under way on every connection may say so: `keeps_asking: ClassVar[bool] =
    True`. Of many connections those that wait in vain are then counted beside it.
    One that can keep a rate and counts response times from when a request was due says how many requests/s it
    sends on one connection at most: `most_rps_per_connection: ClassVar[float] = 100.0`.
    """

    name: ClassVar[str]
    package: ClassVar[str]

    def version_command(self) -> Argv | None:
        """Return the command that prints its version; None when there is none."""

    def read_version(self, printed: Completed) -> str:
        """Find the version in what that command printed; empty when it is not there."""

    def files(self, workload: Workload) -> Files:
        """Return the files that it needs in the workload's directory. Pure."""

    def command(self, workload: Workload) -> Argv:
        """Turn the workload into a command line. Pure. Raises UsageError for what it cannot send."""

    def outputs(self, workload: Workload) -> tuple[PurePosixPath, ...]:
        """Return the files that it writes and `parse` reads."""

    def parse(self, completed: Completed, outputs: Files, workload: Workload) -> LoadResult:
        """Read the counts. Pure. Raises LoadFailed with the output when it cannot be understood."""
