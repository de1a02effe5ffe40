"""Waits until a server listens and answers one real request correctly."""

import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.errors import NotReady
from tuner.ports import H2, H2C, HTTP1, Argv, Command, Completed, Host, RequestKind, Sandbox, Upstream

WAITING = """\
left=$1
curl=$2
shift 2
until "$curl" --fail "$@" >/dev/null 2>&1; do
  left=$((left - 1))
  [ "$left" -gt 0 ] || break
  sleep 0.05
done
exec "$curl" "$@"
"""
"""Run by sh with the number of tries, curl and its arguments: waits on the host itself, in one round trip."""
COUNT = re.compile(r"[0-9]{1,15}", re.ASCII)
RETRY_PAUSE_S = 0.05
ANSWER_S = 5.0
POLL_S = 0.003
"""A look at /proc/PID/net/tcp takes tens of microseconds; nginx listens some 20 ms after its start."""
TCP_LISTEN = "0A"
"""TCP_LISTEN of include/net/tcp_states.h, as /proc/net/tcp shows it (proc(5))."""
ACCEPTS_CONNECTIONS = 1 << 16
"""__SO_ACCEPTCON of include/linux/net.h, among the flags of /proc/net/unix."""
EXCERPT_BYTES = 300
OK = 200
WRONG_CERTIFICATE = 60
"""How curl ends when a certificate is not the one, or does not name the host (libcurl-errors(3))."""
HTTP2 = "2"
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

    @property
    def missing(self) -> str:
        return f"no answer ({self.said})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The correct response, as the original configuration gives it."""

    status: int
    body_bytes: int | None
    """None when it differs from response to response."""
    response_bytes: int | None

    def refuse_another(self, answer: Answer, url: str) -> None:
        """Raise NotReady when an answer is not this page."""
        if answer.status == self.status and self.body_bytes in {None, answer.body_bytes}:
            return
        came = f"{answer.status} with {answer.body_bytes} bytes" if answer.status else answer.missing
        wanted = _describe(self.status, self.body_bytes)
        raise NotReady(f"{url} gave {came}, where the original configuration gives {wanted}.")


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
    ask: Callable[[], Answer],
    *,
    body_bytes: int | None,
    url: str,
    retry_s: float,
    statuses: Collection[int] = (OK,),
) -> Answer:
    """Ask until the answer is what the load will expect.

    A body of None bytes accepts any; a missing answer, or a gateway's excuse, is asked for again for
    `retry_s`. Raises NotReady when the answer is another; names both.
    """
    deadline_s = time.monotonic() + retry_s
    while True:
        answer = ask()
        if answer.status in statuses and body_bytes in {None, answer.body_bytes}:
            return answer
        if answer.status not in PASSING or time.monotonic() > deadline_s:
            break
        time.sleep(POLL_S)
    wanted = _describe(OK, body_bytes)
    if answer.status == 0:
        raise NotReady(f"{url} gave {answer.missing}, where {wanted} was expected.")
    raise NotReady(
        f"{url} answered {answer.status} with {answer.body_bytes} bytes, where {wanted} was expected: "
        f"{answer.said!r}. Correct load.path or content, or let the server's user read the page."
    )


def _describe(status: int, body_bytes: int | None) -> str:
    return f"{status}" if body_bytes is None else f"{status} with {body_bytes} bytes"


def waiting_request(url: str, *, manner: Manner, timeout_s: float) -> Command:
    """Return the command that asks until there is an answer; `read_answer` parses what it prints."""
    tries = max(1, round(timeout_s / RETRY_PAUSE_S))
    asked = _curl(url, *_accepting(manner.accept_encoding), manner=manner, timeout_s=ANSWER_S)
    return Command(
        argv=("sh", "-c", WAITING, "wait", str(tries), *asked),
        timeout_s=timeout_s + 2 * ANSWER_S,
    )


def request(
    host: Host, url: str, *, manner: Manner, timeout_s: float, kind: RequestKind | None = None
) -> Answer:
    """Send one request from a host, or from inside a sandbox, with curl: GET, unless it is of another kind.

    Raises TargetError when curl is missing.
    """
    more = _accepting(manner.accept_encoding) if kind is None else _options_of(kind)
    command = _curl(url, *more, manner=manner, timeout_s=timeout_s)
    return read_answer(host.run(command, timeout_s=timeout_s + 1), protocol=manner.protocol)


def _accepting(encoding: str) -> Argv:
    """Return curl's options for an answer that may come compressed; its lengths stay those on the wire."""
    return ("--compressed", "--header", f"Accept-Encoding: {encoding}") if encoding else ()


def _options_of(kind: RequestKind) -> Argv:
    """Return curl's options for method and headers; an empty body is one whose length is announced."""
    headers = (f"{name}: {value}" if value else f"{name};" for name, value in kind.headers.items())
    body = ("--data-raw", "") if kind.method in {"POST", "PUT", "PATCH"} else ()
    is_coded = any(name.lower() == "accept-encoding" for name in kind.headers)
    return (
        "--request", kind.method, *body, *(("--compressed",) if is_coded else ()),
        *(word for header in headers for word in ("--header", header)),
    )  # fmt: skip


def _curl(url: str, *more: str, manner: Manner, timeout_s: float) -> Argv:
    kept = ("--header", f"Connection: {'keep-alive' if manner.keepalive else 'close'}")
    return (
        "curl", "--disable", "--silent", "--show-error", "--globoff", "--noproxy", "*",
        _PROTOCOLS[manner.protocol], "--max-time", f"{timeout_s:g}",
        *(("--cacert", str(manner.certificate)) if manner.certificate else ()),
        # HTTP/2 has no such header (RFC 9113, section 8.2.2).
        *(kept if manner.protocol == HTTP1 else ()), *more,
        "--write-out", "%{stderr}\n%{http_code} %{size_download} %{size_header} %{http_version}",
        "--", url,
    )  # fmt: skip


_PROTOCOLS = {HTTP1: "--http1.1", H2: "--http2", H2C: "--http2-prior-knowledge"}


def read_answer(completed: Completed, *, protocol: str = HTTP1) -> Answer:
    """Parse what curl printed, the answer of the last try where there were several.

    One over HTTP/1.1 where HTTP/2 was asked for is none: a client and a server that agree on another protocol
    go on with it without a word.
    """
    trouble, _, counts = completed.stderr.decode(errors="replace").rpartition("\n")
    *fields, version = counts.split() or [""]
    are_counts = len(fields) == 3 and all(COUNT.fullmatch(field) for field in fields)  # noqa: PLR2004
    if completed.returncode != 0 or not are_counts:
        return _no_answer(_describe_trouble(completed.returncode, trouble.strip()))
    if protocol != HTTP1 and version != HTTP2:
        return _no_answer(f"it speaks HTTP/{version} where {protocol} was asked for")
    status, body_bytes, header_bytes = (int(field) for field in fields)
    return Answer(
        status=status,
        body_bytes=body_bytes,
        response_bytes=header_bytes + body_bytes,
        said=completed.stdout[:EXCERPT_BYTES].decode(errors="replace"),
        body=completed.stdout,
    )


def _no_answer(said: str) -> Answer:
    return Answer(status=0, body_bytes=0, response_bytes=0, said=said)


def _describe_trouble(status: int, trouble: str) -> str:
    said = trouble or f"curl ended with status {status}"
    if status == WRONG_CERTIFICATE:
        return f"its certificate is not the expected one: {said.splitlines()[0]}"
    return said
