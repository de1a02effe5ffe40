"""The table of a sweep: a row for each value, for pages, Markdown and CSV."""

from collections.abc import Sequence

from tuner.report.rows import table_of_arms
from tuner.report.sweep import Sweep, list_faults, name_best, say_effort, say_tolerance
from tuner.report.tables import escape_markdown, join_markdown, markdown_list, markdown_table, write_arms_csv
from tuner.report.wording import NOTHING, say_estimate


def list_rows(sweep: Sweep) -> list[tuple[str, ...]]:
    """Return the head, and value, ratio, requests per second, p99, failures and starts of each value."""
    (_, *titles), *rows = table_of_arms(
        [(sweep.show(value), arm) for value, arm in zip(sweep.values, sweep.arms, strict=True)]
    )
    ratios = [say_estimate(each) if each else NOTHING for each in sweep.estimates]
    return [
        (sweep.parameter, f"of {sweep.show(sweep.control)}", *titles),
        *((value, ratio, *cells) for (value, *cells), ratio in zip(rows, ratios, strict=True)),
    ]


def sweep_markdown(sweep: Sweep) -> str:
    """Return a sweep as Markdown: what to do, the best value and what is as good, the table."""
    head, *rows = list_rows(sweep)
    told = [name_best(sweep), say_tolerance(sweep), *list_faults(sweep)]
    return join_markdown(
        f"**{escape_markdown(sweep.advice)}**",
        markdown_table(head, rows, numbers=True),
        markdown_list(each for each in told if each),
        f"{escape_markdown(sweep.workload)}. {say_effort(sweep)}.",
    )


def sweep_csv(sweep: Sweep) -> str:
    """Return a line for each value; ratios are those to what the parameter is without a sweep."""
    arms = zip(sweep.values, sweep.estimates, sweep.arms, strict=True)
    tried = sweep.sweeping.tried
    more: dict[str, Sequence[object]] = {
        "chance_best": [each.chance_best for each in tried],
        "tolerated": [each.is_tolerated for each in tried],
        "fault": [each.fault or None for each in tried],
    }
    return write_arms_csv("value", list(arms), more)
