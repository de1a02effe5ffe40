"""The table of a load curve: a row for each configuration and number of connections."""

from tuner.report.curve import Curve, list_faults, say_effort, say_failures_of
from tuner.report.tables import (
    escape_markdown,
    join_markdown,
    list_interval,
    markdown_list,
    markdown_table,
    write_csv,
)
from tuner.report.wording import NOTHING, say_estimate, say_milliseconds, say_rate

HEAD = ("connections", "configuration", "requests/s", "ratio to the first", "failed", "p99", "starts")
OF_SPOT = (
    "connections", "configuration", "goodput_rps", "goodput_low", "goodput_high", "ratio", "low", "high",
    "latency_p99_ms", "failures", "requests", "starts", "failed_starts", "bears", "fault",
)  # fmt: skip
"""Columns of the CSV."""


def list_rows(curve: Curve) -> list[tuple[str, ...]]:
    """Return what each configuration gave, in the order of `HEAD`."""
    return [
        (
            f"{spot.connections:,}", curve.names[spot.config],
            NOTHING if spot.goodput is None else
            f"{say_rate(spot.goodput.ratio)} [{say_rate(spot.goodput.low)}, {say_rate(spot.goodput.high)}]",
            "" if spot.ratio is None else say_estimate(spot.ratio),
            say_failures_of(spot), say_milliseconds(spot.p99_ms),
            f"{spot.starts}, {spot.failed_starts} failed" if spot.failed_starts else str(spot.starts),
        )
        for spot in curve.load_curve.by_connections
    ]  # fmt: skip


def curve_markdown(curve: Curve) -> str:
    """Return a load curve as Markdown: where each configuration collapses, and the table."""
    return join_markdown(
        f"**{escape_markdown(curve.verdict)}**",
        markdown_table(HEAD, list_rows(curve), numbers=True),
        markdown_list(list_faults(curve)),
        f"{escape_markdown(curve.workload)}, with the connections above instead. {say_effort(curve)}.",
    )


def curve_csv(curve: Curve) -> str:
    """Return a line for each configuration and number of connections."""
    rows = (
        (
            spot.connections, curve.names[spot.config], *list_interval(spot.goodput),
            *list_interval(spot.ratio), spot.p99_ms, spot.failed, spot.requests, spot.starts,
            spot.failed_starts, spot.bears, spot.fault or None,
        )
        for spot in curve.load_curve.by_connections
    )  # fmt: skip
    return write_csv(OF_SPOT, rows)
