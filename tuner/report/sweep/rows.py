"""The table of a sweep: a row for each value, for pages, Markdown and CSV."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from tuner.report.figures.drawn_rows import LEAST_BAR, MOST_BAR, DrawnRows, draw_estimates, shorten
from tuner.report.rows import table_of_arms
from tuner.report.sweep import (
    Sweep,
    advise,
    list_faults,
    list_followers,
    name_best,
    say_effort,
    say_tolerance,
)
from tuner.report.tables import escape_markdown, join_markdown, markdown_list, markdown_table, write_arms_csv
from tuner.report.wording import NOTHING, make_printable, say_estimate, say_rate, say_ratio
from tuner.statistics.curves.sweep import Tried


def list_rows(sweep: Sweep) -> list[tuple[str, ...]]:
    """Return the head, and value, ratio, requests per second, p99, failures and trials of each value."""
    (_, *titles), *rows = table_of_arms(
        [(sweep.show(value), arm) for value, arm in zip(sweep.values, sweep.arms, strict=True)]
    )
    ratios = [say_estimate(each) if each else NOTHING for each in sweep.estimates]
    return [
        (sweep.parameter, f"of {sweep.show(sweep.baseline)}", *titles),
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


LONGEST_LABEL = 16
SYMBOLS = {"best": "◆", "near": "●", "other": "○"}
LEGEND = f"{SYMBOLS['best']} best  {SYMBOLS['near']} within 3 % of it  {SYMBOLS['other']} other"


def sweep_screen(sweep: Sweep) -> Group:
    """Return what a sweep has shown: the best value, the range that is as good, the curve."""
    parts: list[RenderableType] = [Text(make_printable(name_best(sweep)), style="bold")]
    parts += [Text(line) for line in (say_tolerance(sweep), f"{say_effort(sweep)}.") if line]
    parts += [Text(""), draw_curve(sweep), Text(LEGEND, style="dim")]
    parts += [Text(make_printable(line), style="yellow") for line in list_faults(sweep)]
    followers = list_followers(sweep)
    if followers:
        parts.append(Text(f"Derived settings: {make_printable(', '.join(followers))}", style="dim"))
    return Group(*parts, Text(""), Text(make_printable(advise(sweep)), style="bold"))


def draw_curve(sweep: Sweep) -> DrawnRows:
    """Draw the curve, with as many columns of figures as the terminal has room for."""
    tried, known = sweep.sweeping.tried, sweep.estimates
    labels = ["", *(shorten(make_printable(sweep.show(value)), LONGEST_LABEL) for value in sweep.values)]
    ratios = ["", *(say_ratio(each.ratio) if each else "" for each in known)]
    whole = ["", *(say_estimate(each) if each else "" for each in known)]
    rates = ["requests/s", *(say_rate(arm.goodput_rps) if arm.trials else "" for arm in sweep.arms)]
    return DrawnRows(
        sets=([labels, rates, whole], [labels, whole], [labels, ratios], [labels]),
        draw=lambda columns: draw_estimates(known, [_symbol(sweep, each) for each in tried], columns),
        styles=[
            "bold green" if each.index == sweep.sweeping.best else "yellow" if each.fault else ""
            for each in tried
        ],
        least=LEAST_BAR, most=MOST_BAR,
    )  # fmt: skip


def _symbol(sweep: Sweep, tried: Tried) -> str:
    is_best = tried.index == sweep.sweeping.best
    return SYMBOLS["best" if is_best else "near" if tried.is_tolerated else "other"]
