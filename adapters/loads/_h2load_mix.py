"""A mix for h2load: every client asks for the lines of one file in turn, over and over (h2load(1), -i).

All requests are GET, with the same headers. The log says the status of a response, and
not what it answers, so that lengths are judged by their sum: a client is at most one round off the shares.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from tuner.adapters.loads._wrk_mix import order_of
from tuner.errors import UsageError
from tuner.kit.bodies import MOST_ERROR_PAGE_BYTES, Totals
from tuner.ports import BodyCheck, RequestKind, Workload

BY_LENGTH = frozenset({BodyCheck.LEARNED, BodyCheck.LENGTH, BodyCheck.ANY})


def refuse_unlike(workload: Workload) -> None:
    """Raise UsageError for a mix that h2load cannot send, or whose responses it cannot judge."""
    headers = [dict(each.headers) for each in workload.requests]
    for each in workload.requests:
        if each.method != "GET" or dict(each.headers) != headers[0]:
            said = f"{each.method} {each.path} has another method or other headers than the rest of the mix"
        elif not 200 <= each.status < 300 or each.body.check not in BY_LENGTH:  # noqa: PLR2004 - 2xx
            said = f"it counts every 2xx as right, and {each.path} is to have something else"
        else:
            continue
        raise UsageError(f"load generator h2load: {said}. Use wrk over HTTP/1.1, or leave it out.")


def write_addresses(workload: Workload) -> bytes:
    """Return one round of the mix, a URL a line."""
    origin = "/".join(workload.url.split("/")[:3])
    return b"".join(f"{origin}{each.path}\n".encode() for each in _round(workload.requests))


def headers_of(workload: Workload) -> Mapping[str, str]:
    """Return the headers of all requests."""
    return workload.requests[0].headers if workload.requests else workload.headers


def has_wrong_mix(totals: Totals, workload: Workload) -> bool:
    """Return whether the bodies received cannot be those of correct responses; False where none is known."""
    lengths = [each.body_bytes for each in _round(workload.requests)]
    known = [each for each in lengths if each is not None]
    if len(known) < len(lengths) or not totals.answered:
        return False
    mean, largest = sum(known) / len(known), max(known)
    off = max(abs(so_far - mean * (count + 1)) for count, so_far in enumerate(accumulate(known)))
    slack = workload.connections * (off + workload.streams * largest)
    expected = totals.answered * mean
    errors = totals.refused * max(largest, MOST_ERROR_PAGE_BYTES) + totals.broken * largest
    return not expected - slack <= totals.received_bytes <= expected + slack + errors


def _round(kinds: Sequence[RequestKind]) -> list[RequestKind]:
    return [kinds[index] for index in order_of([each.weight for each in kinds])]
