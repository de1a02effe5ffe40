"""The table of a sweep: a row for each value, for pages, Markdown and CSV."""

from collections.abc import Sequence

from tuner.report.rows import describe_arm, name_p99
from tuner.report.sweep import Sweep, list_faults, name_best, say_effort, say_tolerance
from tuner.report.tables import escape_markdown, markdown_table, write_arms_csv
from tuner.report.wording import NOTHING, say_estimate


def list_rows(sweep: Sweep) -> list[tuple[str, ...]]:
    """Return value, ratio, requests per second, p99, failures and starts of each value."""
    return [
        (
            sweep.show(sweep.values[tried.index]),
            say_estimate(tried.estimate) if tried.estimate else NOTHING,
            *describe_arm(arm),
        )
        for tried, arm in zip(sweep.sweeping.tried, sweep.arms, strict=True)
    ]


def sweep_markdown(sweep: Sweep) -> str:
    """Return a sweep as Markdown: what to do, the best value and what is as good, the table."""
    control = sweep.show(sweep.control)
    head = (
        sweep.parameter, f"of {control}", "requests/s", name_p99(sweep.arms[sweep.plan.control]), "failures",
        "starts",
    )  # fmt: skip
    told = [name_best(sweep), say_tolerance(sweep), *list_faults(sweep)]
    lines = [
        f"**{escape_markdown(sweep.advice)}**",
        "",
        *markdown_table(head, list_rows(sweep), numbers=True),
    ]
    lines += ["", *(f"- {escape_markdown(each)}" for each in told if each)]
    lines += ["", f"{escape_markdown(sweep.workload)}. {say_effort(sweep)}."]
    return "\n".join(lines) + "\n"


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
