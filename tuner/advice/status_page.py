"""Asks a server for its status: over HTTP, over FastCGI, or with commands at its own socket.

Every question has a time limit. A page that is configured and gives no numbers says why.
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tuner.advice.rule_file import StatusEntry
from tuner.errors import TargetError
from tuner.ports import Argv, Host

ANSWER_S = 1
MOST_PORTS = 2
"""Ports at which a page is looked for."""
LARGEST_PAGE = 2**20
_CURL = ("curl", "-sS", "--globoff", "--max-time", str(ANSWER_S))
_TIMED_OUT, _UNREACHED = 28, 7
"""Exit statuses of curl(1)."""
_SOCKET = re.compile(r"(?:unix@)?(/\S+)")
_PORT = re.compile(r"(?:ipv[46]@)?(?:([\w.-]*|\*|\[[\da-fA-F:.]*\]):)?(\d{1,5})")
_ANY_ADDRESS = frozenset({"", "*", "0.0.0.0", "[::]"})  # noqa: S104 - names that are read, not bound
_BEGIN, _PARAMETERS, _INPUT = 1, 4, 5
"""Types of FastCGI records (FastCGI 1.0, section 8)."""
_RESPONDER = struct.pack(">HB5x", 1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPage:
    """What a server says of itself."""

    text: str = ""
    """Empty where none is configured, or where it cannot be read."""
    trouble: str = ""
    """The page and why it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    place: str
    argv: Argv
    sent: bytes = b""


def ask_status(
    host: Host, status: StatusEntry | None, configuration: str, ports: Sequence[int]
) -> StatusPage:
    """Return the status page that a configuration names.

    Args:
        host: where the server runs; the page is asked for there.
        status: how the server's status page is found and read; None where it has none.
        configuration: the text of all its files.
        ports: at which the server answers.
    """
    found = status and re.search(status.configured, configuration, re.MULTILINE | re.DOTALL)
    if status is None or not found:
        return StatusPage()
    troubles: list[str] = []
    for question in _list_questions(status, found, ports):
        text, trouble = _ask(host, question)
        if text and (read_counters(status, text) or read_gauges(status, text)):
            return StatusPage(text=text)
        troubles.append(f"{question.place}: {trouble or 'the answer has none of its numbers'}")
    unknown = f"{found[0].split()[-1]}: its address is not known"
    return StatusPage(trouble=troubles[0] if troubles else unknown)


def read_counters(status: StatusEntry, text: str) -> dict[str, float]:
    """Return what a page has counted since the server's start."""
    return dict(_read_largest(status.counters, text))


def read_gauges(status: StatusEntry, text: str) -> dict[str, float]:
    """Return what a page says of this moment."""
    facts = dict(_read_largest(status.gauges, text))
    if text:
        facts |= {name: float(len(re.findall(pattern, text))) for name, pattern in status.counts.items()}
    for name, pattern in status.fullest.items():
        pairs = [tuple(map(float, each)) for each in re.findall(pattern, text, re.MULTILINE)]
        if limited := [(used, limit) for used, limit in pairs if limit > 0]:
            facts[name], facts[f"{name}_limit"] = max(limited, key=lambda pair: pair[0] / pair[1])
    return facts


def _read_largest(patterns: Mapping[str, str], text: str) -> Iterator[tuple[str, float]]:
    for name, pattern in patterns.items():
        if found := re.findall(pattern, text, re.MULTILINE):
            yield name, max(map(float, found))


def _list_questions(status: StatusEntry, found: "re.Match[str]", ports: Sequence[int]) -> Iterator[_Question]:
    named = found.groupdict() or {"path": found[1]}
    path, address = named.get("path"), named.get("address")
    if address is None:
        for port in ports[:MOST_PORTS]:
            url = f"http://127.0.0.1:{port}/{(path or '').lstrip('/')}{status.query or ''}"
            yield _Question(place=url, argv=(*_CURL, url))
    elif reached := _reach(address):
        sent = make_fastcgi_request(path) if path else f"{status.asks or ''}\n".encode()
        yield _Question(place=f"{path} at {address}" if path else address, argv=(*_CURL, *reached), sent=sent)


def _reach(address: str) -> Argv:
    """Return curl's arguments for a plain connection to an address; none where its form is not known."""
    if socket := _SOCKET.fullmatch(address):
        return ("--unix-socket", socket[1], "telnet://localhost")
    if port := _PORT.fullmatch(address):
        name = port[1] or ""
        return (f"telnet://{'127.0.0.1' if name in _ANY_ADDRESS else name}:{port[2]}",)
    return ()


def make_fastcgi_request(path: str) -> bytes:
    """Return the records that ask for a page without a script, such as php-fpm's own status page."""
    names = {"SCRIPT_NAME": path, "SCRIPT_FILENAME": path, "REQUEST_METHOD": "GET", "QUERY_STRING": ""}
    pairs = ((name.encode(), value.encode()) for name, value in names.items())
    parameters = b"".join(bytes((len(name), len(value))) + name + value for name, value in pairs)
    return b"".join(
        struct.pack(">BBHHBx", 1, kind, 1, len(content), 0) + content
        for kind, content in (
            (_BEGIN, _RESPONDER),
            (_PARAMETERS, parameters),
            (_PARAMETERS, b""),
            (_INPUT, b""),
        )
    )


def _ask(host: Host, question: _Question) -> tuple[str, str]:
    """Return what was answered, and why nothing was."""
    try:
        done = host.run(question.argv, timeout_s=2 * ANSWER_S, stdin=question.sent)
    except TargetError as error:
        return "", str(error)
    if done.timed_out or done.returncode == _TIMED_OUT:
        return "", f"no answer within {ANSWER_S} s, as from a server without a free worker"
    if done.returncode == _UNREACHED:
        return "", "it cannot be reached. Run as root, or correct its address"
    if done.returncode and not done.stdout:
        return "", f"curl fails: {done.stderr.decode(errors='replace').strip() or done.returncode}"
    return done.stdout[:LARGEST_PAGE].decode(errors="replace"), ""
