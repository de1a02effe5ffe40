"""A contest on a terminal of any width: a row for each entrant, its interval drawn beside it."""

from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
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
from tuner.report.figures.interval_bar import LEAST_BAR, MOST_BAR, IntervalBar
from tuner.report.wording import make_printable, say_ratio

GAP = "  "
LEADS, FOLLOWS = "◆", "●"
LONGEST_LABEL = 28


def contest_screen(contest: Contest) -> Group:
    """Return who leads, the figure, what each entrant gave, and what is claimed."""
    parts: list[RenderableType] = [
        Text(make_printable(name_leader(contest)), style="bold"),
        Text(""),
        ContestFigure(contest),
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


@dataclass(frozen=True)
class ContestFigure:
    """The ratios to the first entrant, with as many figures beside them as the terminal has room for."""

    contest: Contest

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from draw_rows(self.contest, options.max_width)


def draw_rows(contest: Contest, width: int) -> list[Text]:
    """Return the figure as lines no longer than a width."""
    estimates = to_control(contest)
    labels = [_shorten(make_printable(label)) for label in contest.labels]
    said = _cells(contest, width - max(map(cell_len, labels)) - len(GAP))
    used = max(map(cell_len, labels)) + max(map(cell_len, said)) + 2 * len(GAP)
    bar = IntervalBar.fit([each for each in estimates if each], min(MOST_BAR, width - used))
    lead = max(map(cell_len, labels))
    title = _shorten(f"of {make_printable(contest.labels[0])}", max(map(cell_len, said)))
    rows = [Text(f"{' ' * lead}{GAP}{_right(title, said)}{GAP}{bar.scale()}"[:width], style="dim")]
    for index, (label, cell, estimate) in enumerate(zip(labels, said, estimates, strict=True)):
        leads = index in contest.leaders
        drawn = bar.draw(estimate, LEADS if leads else FOLLOWS) if estimate else "no measurement"
        style = "bold green" if leads else "yellow" if index in contest.faults else ""
        left = label + " " * (lead - cell_len(label))
        rows.append(Text(f"{left}{GAP}{_right(cell, said)}{GAP}{drawn}"[:width].rstrip(), style=style))
    return rows


def _cells(contest: Contest, room: int) -> list[str]:
    """Return the ratios as text, with their intervals where the drawing keeps its room."""
    whole = say_to_control(contest)
    if room - max(map(cell_len, whole)) - len(GAP) >= LEAST_BAR:
        return whole
    return [say_ratio(each.ratio) if each else "" for each in to_control(contest)]


def _shorten(label: str, most: int = LONGEST_LABEL) -> str:
    return label if cell_len(label) <= most else f"{label[: most - 1]}…"


def _right(cell: str, column: list[str]) -> str:
    return " " * (max(map(cell_len, column)) - cell_len(cell)) + cell
