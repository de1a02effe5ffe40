"""A sweep on a terminal of any width: a row for each value, its interval drawn beside it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from tuner.report.figures.interval_bar import LEAST_BAR, MOST_BAR, IntervalBar
from tuner.report.sweep import (
    Sweep,
    advise,
    list_faults,
    list_followers,
    name_best,
    say_effort,
    say_tolerance,
)
from tuner.report.wording import make_printable, say_estimate, say_rate, say_ratio

if TYPE_CHECKING:
    from tuner.statistics.curves.sweep import Tried

LONGEST_LABEL = 16
GAP = "  "
SYMBOLS = {"best": "◆", "near": "●", "other": "○"}
LEGEND = f"{SYMBOLS['best']} best  {SYMBOLS['near']} within 3 % of it  {SYMBOLS['other']} other"


def sweep_screen(sweep: Sweep) -> Group:
    """Return what a sweep has shown: the best value, the range that is as good, the curve."""
    parts: list[RenderableType] = [Text(make_printable(name_best(sweep)), style="bold")]
    parts += [Text(line) for line in (say_tolerance(sweep), f"{say_effort(sweep)}.") if line]
    parts += [Text(""), SweepFigure(sweep), Text(LEGEND, style="dim")]
    parts += [Text(make_printable(line), style="yellow") for line in list_faults(sweep)]
    followers = list_followers(sweep)
    if followers:
        parts.append(Text(f"Follows: {make_printable(', '.join(followers))}", style="dim"))
    return Group(*parts, Text(""), Text(make_printable(advise(sweep)), style="bold"))


@dataclass(frozen=True)
class SweepFigure:
    """The curve, with as many columns of figures as the terminal has room for."""

    sweep: Sweep

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from draw_rows(self.sweep, options.max_width)


def draw_rows(sweep: Sweep, width: int) -> list[Text]:
    """Return the curve as lines no longer than a width."""
    columns = _columns(sweep, width)
    used = sum(max(map(cell_len, column)) + len(GAP) for column in columns)
    bar = IntervalBar.fit([each for each in sweep.estimates if each], min(MOST_BAR, width - used))
    rows = [Text("".join(f"{_pad(column, column[0])}{GAP}" for column in columns) + bar.scale(), style="dim")]
    for number, tried in enumerate(sweep.sweeping.tried, 1):
        is_best = tried.index == sweep.sweeping.best
        cells = "".join(f"{_pad(column, column[number])}{GAP}" for column in columns)
        drawn = (
            bar.draw(tried.estimate, _symbol(tried, is_best=is_best)) if tried.estimate else "no measurement"
        )
        style = "bold green" if is_best else "yellow" if tried.fault else ""
        rows.append(Text((cells + drawn)[:width].rstrip(), style=style))
    return rows


def _columns(sweep: Sweep, width: int) -> list[list[str]]:
    """Return title and cells of the columns for which there is room, the most needed ones first."""
    labels = [_shorten(make_printable(sweep.show(value))) for value in sweep.values]
    found = [["", *labels]]
    estimates = sweep.estimates
    ratios = [say_ratio(each.ratio) if each else "" for each in estimates]
    whole = [say_estimate(each) if each else "" for each in estimates]
    rates = [say_rate(arm.goodput_rps) if arm.starts else "" for arm in sweep.arms]
    for more in ([["", *ratios]], [["", *whole]], [["requests/s", *rates], ["", *whole]]):
        room = width - sum(max(map(cell_len, column)) + len(GAP) for column in [*found[:1], *more])
        if room >= LEAST_BAR:
            found = [found[0], *more]
    return found


def _shorten(label: str) -> str:
    return label if cell_len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def _pad(column: list[str], cell: str) -> str:
    return " " * (max(map(cell_len, column)) - cell_len(cell)) + cell


def _symbol(tried: "Tried", *, is_best: bool) -> str:
    return SYMBOLS["best" if is_best else "near" if tried.is_tolerated else "other"]
