"""The result of a study as Markdown for a pull request, and all its starts as CSV for a spreadsheet."""

from collections.abc import Iterator

from tuner.export.provenance import describe_origin
from tuner.records import Start
from tuner.report.rows import arm_rows, change_rows
from tuner.report.summary import Summary, gather_arm
from tuner.report.tables import (
    escape_markdown,
    join_markdown,
    markdown_list,
    markdown_table,
    plain,
    write_csv,
)
from tuner.report.terminal import headline

OF_START = (
    "number", "role", "state", "arm", "block", "speedup", "low", "high", "goodput_rps", "latency_p99_ms",
    "failures", "requests", "failed",
)  # fmt: skip
"""Columns of the CSV before those of the settings; rates are medians over the windows that count."""


def result_as_markdown(summary: Summary) -> str:
    """Return verdict, both sides, changed settings and where they come from, as Markdown."""
    head, *sides = arm_rows(summary)
    title = "winner" if summary.winner is not None else "best so far"
    changes = [row[:3] for row in change_rows(summary)]
    return join_markdown(
        f"### {escape_markdown(headline(summary).plain)}",
        escape_markdown(summary.reason),
        markdown_table(head, sides, numbers=True),
        markdown_table(("setting", "default", title), changes) if changes else "",
        markdown_list(describe_origin(summary)),
    )


def starts_as_csv(summary: Summary) -> str:
    """Return a line for each start, with what it gave and all its settings."""
    settings = list(dict.fromkeys(name for start in summary.starts for name in start.config))
    rows = (
        (*_describe(summary, start), *(plain(start.config.get(name)) for name in settings))
        for start in summary.starts
    )
    return write_csv((*OF_START, *settings), rows)


def _describe(summary: Summary, start: Start) -> Iterator[object]:
    arm = gather_arm(start.config, [start])
    speedup = summary.speedups.get(start.number)
    yield from (start.number, start.role.value, start.state.value, start.arm, start.block)
    yield from (None, None, None) if speedup is None else (speedup.ratio, *speedup.interval())
    yield from (arm.goodput_rps if arm.requests else None, arm.latency_p99_ms, arm.failures, arm.requests)
    yield None if start.failure is None else start.failure.kind
