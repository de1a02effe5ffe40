"""Bounds of the load that tuner sends, whoever asks for it."""

from tuner.errors import UsageError
from tuner.ports import Workload
from tuner.space.values import format_number

MOST_CONNECTIONS = 20_000
MOST_WINDOW_S = 3600.0
MOST_RATE_RPS = 10_000_000.0


def refuse_excess(workload: Workload) -> None:
    """Raise UsageError for load beyond any bounds, whoever asks for it."""
    bounds = (
        ("connections", workload.connections, MOST_CONNECTIONS),
        ("seconds", workload.duration_s, MOST_WINDOW_S),
        ("requests/s", workload.rate_rps or 0.0, MOST_RATE_RPS),
    )
    for what, asked, most in bounds:
        if not 0 <= asked <= most:
            raise UsageError(
                f"load: {format_number(asked)} {what} in one window are out of bounds. Ask for "
                f"{format_number(most)} at the most."
            )
