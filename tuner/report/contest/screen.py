"""A contest on a terminal of any width: a row for each entrant, its interval drawn beside it."""

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tuner.report.contest import Contest
from tuner.report.contest.rows import SIDES, entrant_rows, say_to_control, to_control
from tuner.report.contest.wording import (
    list_claims,
    list_remarks,
    name_leader,
    say_effort,
    say_intervals,
)
from tuner.report.figures.drawn_rows import DrawnRows, shorten
from tuner.report.figures.interval_bar import LEAST_BAR, MOST_BAR, draw_estimates
from tuner.report.wording import make_printable, say_ratio

LEADS, FOLLOWS = "◆", "●"
LONGEST_LABEL = 28


def contest_screen(contest: Contest) -> Group:
    """Return who leads, the figure, what each entrant gave, and what is claimed."""
    parts: list[RenderableType] = [
        Text(make_printable(name_leader(contest)), style="bold"),
        Text(""),
        draw_ratios(contest),
        Text(f"{LEADS} nobody is shown to be ahead of it", style="dim"),
        Text(""),
        _entrants(contest),
        Text(""),
    ]
    parts += [Text(make_printable(f"{claim}.")) for claim in list_claims(contest)]
    parts += [Text(make_printable(f"{remark}."), style="yellow") for remark in list_remarks(contest)]
    effort = f"{contest.workload}. {say_effort(contest)}. {say_intervals(contest)}"
    return Group(*parts, Text(make_printable(effort), style="dim"))


def _entrants(contest: Contest) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for index, title in enumerate(("", *SIDES)):
        table.add_column(title, justify="right" if index else "left")
    for label, row in zip(contest.labels, entrant_rows(contest), strict=True):
        table.add_row(make_printable(label), *row[: len(SIDES)])
    return table


def draw_ratios(contest: Contest) -> DrawnRows:
    """Draw the ratios to the first entrant, with their intervals as text where there is room for it."""
    estimates, whole = to_control(contest), say_to_control(contest)
    labels = ["", *(shorten(make_printable(label), LONGEST_LABEL) for label in contest.labels)]
    ratios = [say_ratio(each.ratio) if each else "" for each in estimates]
    symbols = [LEADS if index in contest.leaders else FOLLOWS for index in range(len(estimates))]
    title = f"of {make_printable(contest.labels[0])}"
    return DrawnRows(
        sets=[
            [labels, [shorten(title, max(map(cell_len, said))), *said]] for said in (whole, ratios)
        ],
        draw=lambda columns: draw_estimates(estimates, symbols, columns),
        styles=[
            "bold green" if index in contest.leaders else "yellow" if index in contest.faults else ""
            for index in range(len(estimates))
        ],
        least=LEAST_BAR, most=MOST_BAR, left=0,
    )  # fmt: skip
