"""Turn a workload into a command line: refuse what cannot be sent, end the program after its window."""

import math
from collections.abc import Collection
from urllib.parse import urlsplit, urlunsplit

from tuner.errors import UsageError
from tuner.ports import HTTP1, Argv, Workload

KILL_AFTER_S = 5


def refuse_unsendable(
    generator: str,
    workload: Workload,
    *,
    protocols: Collection[str] = (HTTP1,),
    rates: bool = False,
    mixes: bool = False,
    encodings: bool = False,
    streams: bool = False,
) -> None:
    """Raise UsageError for a workload that this generator cannot send."""
    where = f"load generator {generator}"
    if urlsplit(workload.url).scheme not in {"http", "https"}:
        raise UsageError(
            f"{where}: the URL {workload.url!r} is neither http:// nor https://. Write a full URL."
        )
    if workload.connections < 1:
        raise UsageError(f"{where}: {workload.connections} connections cannot send anything. Use 1 or more.")
    if not (math.isfinite(workload.duration_s) and workload.duration_s > 0):
        raise UsageError(
            f"{where}: a window of {workload.duration_s} s measures nothing. Use a positive length."
        )
    if workload.protocol not in protocols:
        raise UsageError(
            f"{where}: it speaks {' and '.join(protocols)}, not {workload.protocol!r}. "
            "Change the protocol, or take another generator (h2load speaks HTTP/2)."
        )
    if workload.protocol != HTTP1 and not workload.keepalive:
        raise UsageError(
            f"{where}: {workload.protocol} with `keepalive: false` cannot be sent, as HTTP/2 keeps its "
            "connections. Use keepalive: true, or http/1.1."
        )
    if workload.streams > 1 and not streams:
        raise UsageError(
            f"{where}: it sends one request at a time on a connection, not {workload.streams}. Use h2load, "
            "or leave `load.streams:` out."
        )
    if workload.accept_encoding and not encodings:
        raise UsageError(
            f"{where}: it does not ask for {workload.accept_encoding}. Use wrk or h2load, or leave "
            "`load.accept_encoding:` out."
        )
    if workload.requests and not mixes:
        raise UsageError(
            f"{where}: it sends one kind of request, not a mix. Use wrk, or leave `load.requests:` out."
        )
    if workload.rate_rps is not None and not rates:
        raise UsageError(
            f"{where}: it sends as fast as answers come and cannot hold {workload.rate_rps:g} requests/s. "
            "Leave the rate out, or use h2load or oha."
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


def with_path(url: str) -> str:
    """Return the URL with the path `/` if it has none, which ab and h2load insist on."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path or "/"))
