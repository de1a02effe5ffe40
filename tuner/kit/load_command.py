"""Turn a workload into a command line: refuse what cannot be sent, end the program after its window."""

import math
from collections.abc import Collection
from urllib.parse import urlsplit, urlunsplit

from tuner.errors import UsageError
from tuner.ports import Argv, Workload

KILL_AFTER_S = 5


def refuse_unsendable(
    generator: str,
    workload: Workload,
    *,
    protocols: Collection[str] = ("http/1.1",),
    rates: bool = False,
    mixes: bool = False,
    counts: bool = False,
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
    if workload.requests and not mixes:
        raise UsageError(f"{where}: it sends one kind of request, not a mix. Use wrk, or ask for one path.")
    if workload.requests_total is not None and not counts:
        raise UsageError(
            f"{where}: it sends for a time, not a number of requests. Use ab or h2load, or leave "
            "`load.requests_total:` out."
        )
    if workload.requests_total is not None and workload.requests_total < workload.connections:
        raise UsageError(
            f"{where}: {workload.requests_total} requests are less than one for each of "
            f"{workload.connections} connections. Send more."
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
