"""Waits until a server listens and answers one real request correctly."""

import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import urlsplit, urlunsplit

from tuner.errors import NotReady, TargetError
from tuner.kit.packages import CURL, say_install
from tuner.ports import H2, H2C, HTTP1, Argv, Command, Completed, Host, RequestKind, Sandbox, Upstream

WAITING = """\
end=$(($(date +%s) + $1))
status=$2
shift 2
command -v -- "$1" >/dev/null || exit 127
until "$@" 2>&1 >/dev/null | grep -qE "^($status|[1-4][0-9][0-9]) "; do
  [ "$(date +%s)" -lt "$end" ] || break
  sleep 0.05
done
exec "$@"
"""
"""Run by sh with seconds, a status, curl and its arguments: waits on the host itself, in one round trip, for
that status or for another one that is no fault of a server which is still starting."""
WRITTEN = (
    "%{stderr}\n%{http_code} %{size_download} %{size_header} %{http_version} "
    "%header{transfer-encoding}|%{redirect_url}"
)
COUNTS = re.compile(
    r"(?P<status>[0-9]{1,15}) (?P<body>[0-9]{1,15}) (?P<header>[0-9]{1,15}) (?P<version>[0-9.]+)"
    r"(?: (?P<coding>[^|]*)\|(?P<location>.*))?",
    re.ASCII,
)
"""What curl writes of each answer; before its release 7.84 it leaves the coding as it stands there."""
DISCARDED = "/dev/null"
MOST_ARGUMENT_LETTERS = 60_000
"""Of URLs on one command line: over SSH it is one argument, of 128 KiB at most (MAX_ARG_STRLEN)."""
ANSWER_S = 5.0
POLL_S = 0.003
"""A look at /proc/PID/net/tcp takes tens of microseconds; nginx listens some 20 ms after its start."""
TCP_LISTEN = "0A"
"""TCP_LISTEN of include/net/tcp_states.h, as /proc/net/tcp shows it (proc(5))."""
ACCEPTS_CONNECTIONS = 1 << 16
"""__SO_ACCEPTCON of include/linux/net.h, among the flags of /proc/net/unix."""
EXCERPT_BYTES = 300
OK = 200
HTTP_OK, HTTP_ERROR, UNAUTHORIZED = 200, 400, 401
NO_PROGRAM = 127
"""How a shell ends that does not find a program."""
WRONG_CERTIFICATE = 60
"""How curl ends when a certificate is not the one, or does not name the host (libcurl-errors(3))."""
HTTP2 = "2"
PLAIN, INDEX = RequestKind(path="/"), RequestKind(path="/index.html")
PASSING = frozenset({0, 502, 503, 504})
"""No answer, or a gateway whose backend may still be starting: worth asking again for a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How requests are sent: as the load sends them."""

    keepalive: bool
    protocol: str = HTTP1
    """HTTP1, H2C or H2."""
    certificate: PurePosixPath | None = None
    """File that the server's certificate has to be, or to be signed by; None for those the system trusts."""
    verifies: bool = True
    """Whether the server's certificate is checked at all."""
    accept_encoding: str = ""
    """Of GET requests for the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One response, or why there was none."""

    status: int
    """HTTP status; 0 when there was no response."""
    body_bytes: int
    response_bytes: int
    """Header and body, as they went over the wire."""
    said: str
    """Beginning of the body, or what went wrong."""
    body: bytes = b""
    """As it is read: when it came compressed, it is longer than `body_bytes`."""
    location: str = ""
    """URL that a redirect leads to."""
    is_chunked: bool = False
    """Whether it came in chunks, so that the bytes on the wire were more than `response_bytes`."""

    @property
    def seen(self) -> str:
        """Return what came, in words."""
        if not self.status:
            return f"no answer ({self.said})"
        return f"{self.status} with {self.body_bytes} bytes"


def is_right(kind: RequestKind, answer: Answer) -> bool:
    """Return whether an answer has the status and the body that are correct for a request."""
    body = kind.body
    return (
        answer.status == kind.status
        and kind.body_bytes in {None, answer.body_bytes}
        and (kind.body_bytes is not None or answer.body_bytes >= body.least_bytes)
        and body.contains.encode() in answer.body
        and body.content in {None, answer.body}
    )


def describe_right(kind: RequestKind) -> str:
    """Return which answer is correct for a request, in words."""
    if kind.body.content is not None:
        return f"{kind.status} with the same {kind.body_bytes} bytes"
    if kind.body_bytes is not None:
        return f"{kind.status} with {kind.body_bytes} bytes"
    if kind.body.contains:
        return f"{kind.status} with a body that contains {kind.body.contains!r}"
    return f"{kind.status} with a body" if kind.body.least_bytes else f"{kind.status}"


def suggest_redirected(url: str, answer: Answer) -> str:
    """Return the sentences about a redirect: where it leads, and what to write; empty for another answer."""
    if not answer.location:
        return ""
    origin, path = split_origin(url)
    target = answer.location
    there, rest = split_origin(target)
    write = rest if there == origin else target
    return f"load.path: {path} answers {answer.status} to {target}. Set load.path to {write}."


def split_origin(url: str) -> tuple[str, str]:
    """Return the part of a URL before its path, and its path with the query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}", urlunsplit(("", "", parts.path or "/", parts.query, ""))


def await_listener(
    sandbox: Sandbox, where: Upstream, *, timeout_s: float, check_alive: Callable[[], None]
) -> None:
    """Wait until something listens there inside the sandbox.

    `check_alive` raises when waiting has become useless. Raises NotReady when nothing listens in time.
    """
    deadline_s = time.monotonic() + timeout_s
    while not is_listening(sandbox, where):
        check_alive()
        if time.monotonic() > deadline_s:
            place = f"port {where.port}" if where.socket is None else where.socket
            raise NotReady(f"nothing listens on {place} after {timeout_s:g} s.")
        time.sleep(POLL_S)


def is_listening(sandbox: Sandbox, where: Upstream) -> bool:
    """Check whether a socket of the sandbox's network listens on the port, or at the path."""
    if where.socket is not None:
        return _has_unix_listener(sandbox, str(where.socket))
    local = f":{where.port:04X}"
    for table in ("tcp", "tcp6"):
        content = sandbox.read(PurePosixPath(f"/proc/{sandbox.pid}/net/{table}")).content or b""
        for line in content.decode().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(local) and fields[3] == TCP_LISTEN:
                return True
    return False


def _has_unix_listener(sandbox: Sandbox, path: str) -> bool:
    """Read the table of Unix sockets: address, users, protocol, flags, type, state, inode, path."""
    table = sandbox.read(PurePosixPath(f"/proc/{sandbox.pid}/net/unix")).content or b""
    rows = (line.split(maxsplit=7) for line in table.decode(errors="replace").splitlines()[1:])
    return any(row[7:] == [path] and int(row[3], 16) & ACCEPTS_CONNECTIONS for row in rows)


def await_answer(
    ask: Callable[[], Answer], kind: RequestKind, *, url: str, retry_s: float, statuses: Collection[int] = ()
) -> Answer:
    """Ask until the answer is what the load will expect.

    A missing answer, or a gateway's excuse, is asked for again for `retry_s`. Other `statuses` than that of
    the request are right as well. Raises NotReady when the answer is another; names both.
    """
    deadline_s = time.monotonic() + retry_s
    while True:
        answer = ask()
        if is_right(kind, answer) or answer.status in statuses:
            return answer
        if answer.status not in PASSING or time.monotonic() > deadline_s:
            break
        time.sleep(POLL_S)
    raise NotReady(explain_wrong(kind, answer, url))


def explain_wrong(kind: RequestKind, answer: Answer, url: str) -> str:
    """Return why an answer is not the right one, and what to do."""
    if redirected := suggest_redirected(url, answer):
        return redirected
    wanted = describe_right(kind)
    if answer.status == 0:
        return f"{url} gave {answer.seen}, where {wanted} was expected."
    return (
        f"{url} answered {answer.seen}, where {wanted} was expected: {answer.said!r}. "
        f"{_suggest(kind, answer)}"
    )


def _suggest(kind: RequestKind, answer: Answer) -> str:
    if answer.status == kind.status and kind.body.contains:
        return "Correct `body: contains`, or the page."
    if answer.status == UNAUTHORIZED:
        return "Write the credentials into `load.headers:`, such as Authorization or Cookie."
    if HTTP_OK <= answer.status < HTTP_ERROR and answer.status != kind.status:
        return (
            "Correct load.path, or accept this status: `requests: "
            f"[{{path: {kind.path}, status: {answer.status}}}]`."
        )
    return "Correct load.path or content, or let the server's user read the page."


def waiting_request(url: str, *, manner: Manner, timeout_s: float, kind: RequestKind) -> Command:
    """Return the command that asks until the status is right; `read_answer` parses what it prints."""
    asked = _curl(url, *_options_of(kind, manner), manner=manner, timeout_s=ANSWER_S)
    return Command(
        argv=("sh", "-c", WAITING, "wait", f"{timeout_s:.0f}", str(kind.status), *asked),
        timeout_s=timeout_s + 2 * ANSWER_S,
    )


def request(host: Host, url: str, *, manner: Manner, timeout_s: float, kind: RequestKind = PLAIN) -> Answer:
    """Send one request from a host, or from inside a sandbox, with curl.

    Raises TargetError when curl is missing.
    """
    command = _curl(url, *_options_of(kind, manner), manner=manner, timeout_s=timeout_s)
    return read_answer(host.run(command, timeout_s=timeout_s + 1), host, protocol=manner.protocol)


def request_often(
    host: Host, url: str, *, manner: Manner, kind: RequestKind, times: int, seconds: float
) -> tuple[Answer, ...]:
    """Send the same request again and again, over one connection where it is kept; bodies are not read.

    Returns as many answers as came in so many seconds.
    """
    times = max(1, min(times, MOST_ARGUMENT_LETTERS // (len(url) + len(DISCARDED) + 2)))
    again = ("--output", DISCARDED, url) * (times - 1)
    options = ("--output", DISCARDED, *_options_of(kind, manner))
    command = _curl(url, *options, manner=manner, timeout_s=seconds, others=again)
    done = host.run(("timeout", f"{seconds:g}", *command), timeout_s=seconds + ANSWER_S)
    lines = done.stderr.decode(errors="replace").splitlines()
    counts = (COUNTS.fullmatch(line) for line in lines)
    return tuple(_answer_of(found) for found in counts if found is not None and int(found["status"]))


def _options_of(kind: RequestKind, manner: Manner) -> Argv:
    """Return curl's options for method and headers; an empty body is one whose length is announced.

    The lengths of an answer that comes compressed stay those on the wire.
    """
    headers = dict(kind.headers)
    is_coded = any(name.lower() == "accept-encoding" for name in headers)
    if manner.accept_encoding and not is_coded:
        headers["Accept-Encoding"] = manner.accept_encoding
    lines = (f"{name}: {value}" if value else f"{name};" for name, value in headers.items())
    body = ("--data-raw", "") if kind.method in {"POST", "PUT", "PATCH"} else ()
    return (
        *(() if kind.method == "GET" else ("--request", kind.method)), *body,
        *(("--compressed",) if is_coded or manner.accept_encoding else ()),
        *(word for line in lines for word in ("--header", line)),
    )  # fmt: skip


def _curl(url: str, *more: str, manner: Manner, timeout_s: float, others: Argv = ()) -> Argv:
    kept = ("--header", f"Connection: {'keep-alive' if manner.keepalive else 'close'}")
    return (
        "curl", "--disable", "--silent", "--show-error", "--globoff", "--noproxy", "*",
        _PROTOCOLS[manner.protocol], "--max-time", f"{timeout_s:g}",
        *(("--cacert", str(manner.certificate)) if manner.certificate else ()),
        *(() if manner.verifies else ("--insecure",)),
        # HTTP/2 has no such header (RFC 9113, section 8.2.2).
        *(kept if manner.protocol == HTTP1 else ()), *more,
        "--write-out", WRITTEN, *others, "--", url,
    )  # fmt: skip


_PROTOCOLS = {HTTP1: "--http1.1", H2: "--http2", H2C: "--http2-prior-knowledge"}


def read_answer(completed: Completed, host: Host, *, protocol: str = HTTP1) -> Answer:
    """Parse what curl printed, the answer of the last try where there were several.

    One over HTTP/1.1 where HTTP/2 was asked for is none: a client and a server that agree on another protocol
    go on with it without a word. Raises TargetError when there is no curl.
    """
    if completed.returncode == NO_PROGRAM:
        raise TargetError(
            f"{host.name}: tuner requests pages with curl, and this host has no curl. Install curl: "
            f"{say_install(host, CURL)}"
        )
    trouble, _, counts = completed.stderr.decode(errors="replace").rpartition("\n")
    found = COUNTS.fullmatch(counts)
    if completed.returncode != 0 or found is None:
        return _no_answer(_describe_trouble(completed.returncode, trouble.strip()))
    if protocol != HTTP1 and found["version"] != HTTP2:
        return _no_answer(f"the server speaks HTTP/{found['version']} instead of {protocol}")
    return replace(
        _answer_of(found),
        said=completed.stdout[:EXCERPT_BYTES].decode(errors="replace"),
        body=completed.stdout,
    )


def _answer_of(counts: re.Match[str]) -> Answer:
    body_bytes = int(counts["body"])
    coding, location = counts["coding"] or "", counts["location"] or ""
    return Answer(
        status=int(counts["status"]),
        body_bytes=body_bytes,
        response_bytes=int(counts["header"]) + body_bytes,
        said="",
        location=location,
        is_chunked=coding.lower() == "chunked",
    )


def _no_answer(said: str) -> Answer:
    return Answer(status=0, body_bytes=0, response_bytes=0, said=said)


def _describe_trouble(status: int, trouble: str) -> str:
    said = trouble or f"curl ended with status {status}"
    if status == WRONG_CERTIFICATE:
        return (
            f"the certificate of the server is not trusted: {said.splitlines()[0]}. Set `load.ca:` to the CA "
            "file of this certificate, or set `load.verify: false`"
        )
    return said
