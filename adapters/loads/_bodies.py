"""Judge from totals whether responses had the right length."""

from dataclasses import dataclass

from tuner.ports import Workload

RELATIVE_TOLERANCE = 0.005
"""The body gate's ±0.5 %."""
HEADER_TOLERANCE_BYTES = 64
"""Headers vary a little: `Keep-Alive: timeout=5, max=100` loses digits as requests are used up, and the last
response of a connection says `Connection: close` in its place (Apache; 37 bytes less)."""
LEAST_RESPONSE_BYTES = 17
"""`HTTP/1.1 503 \\r\\n\\r\\n`"""
MOST_ERROR_PAGE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What a generator counted over all responses."""

    answered: int
    """Complete responses with an acceptable status."""
    refused: int
    """Complete responses with another status; their length is unknown."""
    broken: int
    """Responses that ended too early, of which some bytes may have come."""
    received_bytes: int


def has_wrong_bodies(totals: Totals, workload: Workload) -> bool:
    """Say whether the bytes received cannot come from correct responses.

    A total cannot tell which of the responses were wrong, so none of them is vouched for. What else was
    received widens the bounds: error pages, responses cut short, and those under way when the window ended.
    """
    if totals.answered == 0:
        return False
    if workload.response_bytes is None:
        return totals.received_bytes < totals.answered * ((workload.body_bytes or 0) + LEAST_RESPONSE_BYTES)
    expected = workload.response_bytes
    tolerance = expected * RELATIVE_TOLERANCE + HEADER_TOLERANCE_BYTES
    least = totals.answered * (expected - tolerance) + totals.refused * LEAST_RESPONSE_BYTES
    most = (
        totals.answered * (expected + tolerance)
        + totals.refused * max(expected, MOST_ERROR_PAGE_BYTES)
        + (totals.broken + workload.connections) * expected
    )
    return not least <= totals.received_bytes <= most
