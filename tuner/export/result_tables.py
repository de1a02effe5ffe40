"""The result of a study as Markdown for a pull request, and all its trials as CSV for a spreadsheet."""

from collections.abc import Iterator

from tuner.export.provenance import describe_origin
from tuner.records import Trial
from tuner.report.rows import arm_rows, change_rows, describe_unlike_rates
from tuner.report.summary import Summary, as_candidate, gather_arm
from tuner.report.tables import (
    escape_markdown,
    join_markdown,
    markdown_list,
    markdown_table,
    plain,
    write_csv,
)
from tuner.report.terminal import headline

OF_TRIAL = (
    "number", "role", "state", "arm", "block", "speedup", "low", "high", "goodput_rps", "latency_p99_ms",
    "failures", "requests", "failed",
)  # fmt: skip
"""Columns of the CSV before those of the settings; rates are medians over the windows that count."""


def result_as_markdown(summary: Summary) -> str:
    """Return verdict, both sides, changed settings and where they come from, as Markdown."""
    measured = summary if summary.found is None else as_candidate(summary)
    head, *sides = arm_rows(measured)
    title = "best so far" if measured.winner is None else measured.side
    changes = [row[:3] for row in change_rows(summary)]
    return join_markdown(
        f"### {escape_markdown(headline(summary).plain)}",
        escape_markdown(summary.reason),
        markdown_table(head, sides, numbers=True),
        escape_markdown(describe_unlike_rates(measured)),
        markdown_table(("setting", "default", title), changes) if changes else "",
        markdown_list(describe_origin(summary)),
    )


def trials_as_csv(summary: Summary) -> str:
    """Return a line for each trial, with what it gave and all its settings."""
    settings = list(dict.fromkeys(name for trial in summary.trials for name in trial.config))
    rows = (
        (*_describe(summary, trial), *(plain(trial.config.get(name)) for name in settings))
        for trial in summary.trials
    )
    return write_csv((*OF_TRIAL, *settings), rows)


def _describe(summary: Summary, trial: Trial) -> Iterator[object]:
    arm = gather_arm(trial.config, [trial])
    speedup = summary.speedups.get(trial.number)
    yield from (trial.number, trial.role.label, trial.state.value, trial.arm, trial.block)
    yield from (None, None, None) if speedup is None else (speedup.ratio, *speedup.interval())
    yield from (arm.goodput_rps if arm.requests else None, arm.latency_p99_ms, arm.failures, arm.requests)
    yield None if trial.failure is None else trial.failure.kind
