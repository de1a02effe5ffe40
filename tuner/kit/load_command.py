"""Turn a workload into a command line: refuse what cannot be sent, end the program after its window."""

import math
from collections.abc import Collection, Iterator
from enum import StrEnum
from urllib.parse import urlsplit, urlunsplit

from tuner.errors import UsageError
from tuner.ports import HTTP1, Argv, BodyCheck, Workload

KILL_AFTER_S = 5


class Ability(StrEnum):
    """What not every load generator can send."""

    RATE = "rate"
    MIX = "mix"
    COUNT = "count"
    """So many requests, instead of for so long."""
    ENCODING = "encoding"
    STREAMS = "streams"
    """Several requests at once on one connection."""
    HEADERS = "headers"
    BODIES = "bodies"
    """Looks into the body of each response."""


def refuse_unsendable(
    generator: str,
    workload: Workload,
    *,
    protocols: Collection[str] = (HTTP1,),
    able: Collection[Ability] = (),
) -> None:
    """Raise UsageError for a workload that this generator cannot send."""
    found = (*_find_wrong(workload), *_find_unspoken(workload, protocols), *_find_beyond(workload, able))
    for said in found:
        raise UsageError(f"load generator {generator}: {said}")


def _find_wrong(workload: Workload) -> Iterator[str]:
    """Say what nobody can send."""
    total = workload.requests_total
    if urlsplit(workload.url).scheme not in {"http", "https"}:
        yield f"the URL {workload.url!r} is neither http:// nor https://. Write a full URL."
    if workload.connections < 1:
        yield f"{workload.connections} connections cannot send anything. Use 1 connection or more."
    if not (math.isfinite(workload.duration_s) and workload.duration_s > 0):
        yield f"a window of {workload.duration_s} s measures nothing. Use a positive length."
    if total is not None and total < workload.connections:
        yield (
            f"{total} requests are less than one for each of {workload.connections} connections. Send more "
            "requests."
        )


def _find_unspoken(workload: Workload, protocols: Collection[str]) -> Iterator[str]:
    """Say which protocol it does not speak, or not so."""
    if workload.protocol not in protocols:
        yield (
            f"it speaks {' and '.join(protocols)}, not {workload.protocol!r}. "
            "Change the protocol, or use another generator (h2load speaks HTTP/2)."
        )
    if workload.protocol != HTTP1 and not workload.keepalive:
        yield (
            f"{workload.protocol} with `keepalive: false` cannot be sent, because HTTP/2 keeps its "
            "connections open. Use keepalive: true, or http/1.1."
        )


def _find_beyond(workload: Workload, able: Collection[Ability]) -> Iterator[str]:
    """Say what others can send, and who."""
    if workload.streams > 1 and Ability.STREAMS not in able:
        yield (
            f"it sends one request at a time on each connection, not {workload.streams} at once. Use h2load, "
            "or leave `load.streams:` out."
        )
    if workload.accept_encoding and Ability.ENCODING not in able:
        yield (
            f"it cannot request {workload.accept_encoding}. Use wrk or h2load, or leave "
            "`load.accept_encoding:` out."
        )
    if workload.headers and Ability.HEADERS not in able:
        yield (
            "it cannot send `load.headers:`. Write the headers into the command of the generator, or use "
            "another generator."
        )
    if workload.body.check in {BodyCheck.CHECKSUM, BodyCheck.CONTAINS} and Ability.BODIES not in able:
        yield (
            f"it does not read response bodies, so `body: {workload.body.check}` cannot be judged. Use wrk "
            "or k6, or write `body: any` or `body: length`."
        )
    if workload.requests and Ability.MIX not in able:
        yield "it sends one kind of request, not a mix. Use wrk, or h2load over HTTP/2."
    if workload.requests_total is not None and Ability.COUNT not in able:
        yield (
            "it sends for a fixed time, not a fixed number of requests. Use ab or h2load, or leave "
            "`load.requests_total:` out."
        )
    if workload.rate_rps is not None and Ability.RATE not in able:
        yield (
            f"it sends as fast as responses come, and cannot keep a rate of {workload.rate_rps:g} "
            "requests/s. Use h2load, oha or vegeta, or leave `load.rate:` out."
        )


def is_whole(duration_s: float) -> bool:
    """Return whether a program that takes whole seconds can be given this length."""
    return float(duration_s).is_integer()


def interrupted_after(seconds: float, argv: Argv) -> Argv:
    """Return the command that sends SIGINT after a while, on which wrk and ab stop and print what they have.

    In the foreground the program stays in the caller's process group, so that the caller can still end both.
    """
    return ("timeout", "--preserve-status", "--signal=INT", *_limits(seconds), *argv)


def ended_after(seconds: float, argv: Argv) -> Argv:
    """Return the command that ends a program which has not ended by itself; its exit status is then 124."""
    return ("timeout", *_limits(seconds), *argv)


def _limits(seconds: float) -> Argv:
    return ("--foreground", f"--kill-after={KILL_AFTER_S}", f"{seconds:.3f}")


def header_options(workload: Workload, option: str) -> Argv:
    """Return the options that add the load's headers, each as one argument after its option."""
    lines = (f"{name}: {value}" for name, value in workload.headers.items())
    return tuple(word for line in lines for word in (option, line))


def with_path(url: str) -> str:
    """Return the URL with the path `/` if it has none, which ab and h2load insist on."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path or "/"))
