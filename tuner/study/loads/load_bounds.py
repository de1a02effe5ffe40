"""Bounds of the load that tuner sends, whoever asks for it."""

from tuner.errors import UsageError
from tuner.ports import Workload
from tuner.space.values import format_number

MOST_CONNECTIONS = 20_000
MOST_WINDOW_S = 3600.0
LEAST_REQUESTS, MOST_REQUESTS = 100, 10_000_000
"""Of a window that ends after so many; generators set some tens of bytes aside for each."""
MOST_RATE_RPS = 10_000_000.0


def refuse_excess(workload: Workload) -> None:
    """Raise UsageError for load beyond any bounds, whoever asks for it."""
    bounds = (
        ("connections", workload.connections, MOST_CONNECTIONS),
        ("seconds", workload.duration_s, MOST_WINDOW_S),
        ("requests", workload.requests_total or 0, MOST_REQUESTS),
        ("requests/s", workload.rate_rps or 0.0, MOST_RATE_RPS),
    )
    for what, asked, most in bounds:
        if not 0 <= asked <= most:
            raise UsageError(
                f"load: {format_number(asked)} {what} in one window are out of bounds. Ask for "
                f"at most {format_number(most)}."
            )
