"""Judge from totals whether responses had the right length."""

from dataclasses import dataclass

from tuner.ports import Workload

RELATIVE_TOLERANCE = 0.005
"""The body check's ±0.5 %."""
HEADER_TOLERANCE_BYTES = 64
"""Headers vary a little: `Keep-Alive: timeout=5, max=100` loses digits as requests are used up, and the last
response of a connection says `Connection: close` in its place (Apache; 37 bytes less). The header that asks
for keep-alive must be sent whenever the probe sends it, as Apache answers to it with 57 bytes."""
LEAST_HEADER_BYTES = 17
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


def has_wrong_responses(totals: Totals, workload: Workload) -> bool:
    """Return whether the bytes received, headers included, cannot come from correct responses.

    A total cannot tell which of the responses were wrong, so none of them is vouched for.
    """
    if totals.answered == 0:
        return False
    if workload.response_bytes is None:
        body_bytes = workload.body.least_bytes if workload.body_bytes is None else workload.body_bytes
        least = totals.answered * (body_bytes + LEAST_HEADER_BYTES)
        return totals.received_bytes < least
    tolerance = workload.response_bytes * RELATIVE_TOLERANCE + HEADER_TOLERANCE_BYTES
    return not _is_plausible(totals, workload, workload.response_bytes, tolerance)


def has_wrong_bodies(totals: Totals, workload: Workload) -> bool:
    """Return the same for bytes that are counted without headers."""
    if workload.body_bytes is None:
        return totals.received_bytes < totals.answered * workload.body.least_bytes
    return totals.answered > 0 and not _is_plausible(totals, workload, workload.body_bytes, 0)


def _is_plausible(totals: Totals, workload: Workload, expected_bytes: int, tolerance_bytes: float) -> bool:
    """Widen the bounds by what else was received.

    That is error pages, responses cut short, and one response under way for each connection when the window
    ended.
    """
    least = totals.answered * (expected_bytes - tolerance_bytes)
    most = (
        totals.answered * (expected_bytes + tolerance_bytes)
        + totals.refused * max(expected_bytes, MOST_ERROR_PAGE_BYTES)
        + (totals.broken + workload.connections) * expected_bytes
    )
    return least <= totals.received_bytes <= most
