"""A load curve on a terminal of any width: a row for each configuration and number of connections."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from tuner.report.curve import Curve, list_faults, say_collapse, say_effort, say_share
from tuner.report.wording import NOTHING, make_printable, say_interval, say_milliseconds, say_rate, say_ratio

if TYPE_CHECKING:
    from tuner.statistics.curves.load_curve import Spot

LEAST_BAR, MOST_BAR = 12, 48
"""Columns of the drawing: narrower it shows nothing, wider nothing more."""
LONGEST_NAME = 14
GAP = "  "
LEGEND = "█ goodput, ┼ within its 95 % interval  ✕ requests fail"
TITLES = ("connections", "", "requests/s", "failed", "p99")


def curve_screen(curve: Curve) -> Group:
    """Return what a load curve has shown: where each configuration collapses, and the curve."""
    parts: list[RenderableType] = [
        Text(make_printable(say_collapse(curve, index)), style="bold") for index in range(len(curve.names))
    ]
    parts += [Text(f"{say_effort(curve)}."), Text(""), CurveFigure(curve), Text(LEGEND, style="dim")]
    parts += [Text(make_printable(line), style="yellow") for line in list_faults(curve)]
    return Group(*parts)


@dataclass(frozen=True)
class CurveFigure:
    """The curve, with as many columns of figures as the terminal has room for."""

    curve: Curve

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from draw_rows(self.curve, options.max_width)


def draw_rows(curve: Curve, width: int) -> list[Text]:
    """Return the curve as lines no longer than a width: by connections, and within by configuration."""
    spots = sorted(curve.load_curve.spots, key=lambda spot: (spot.connections, spot.config))
    columns, bar = _columns(curve, spots, width)
    most = max((spot.goodput.high for spot in spots if spot.goodput), default=1.0)
    rows = [Text(_line(columns, 0)[:width].rstrip(), style="dim")]
    for number, spot in enumerate(spots, 1):
        drawn = _draw(spot, most, bar) if bar else ""
        style = "" if spot.bears or not (spot.starts or spot.fault) else "yellow"
        rows.append(Text((_line(columns, number) + drawn)[:width].rstrip(), style=style))
    return rows


def _columns(curve: Curve, spots: "list[Spot]", width: int) -> tuple[list[list[str]], int]:
    """Return title and cells of the columns for which there is room, and how wide the drawing may be."""
    names = [_shorten(make_printable(curve.names[spot.config])) for spot in spots]
    counts = [f"{spot.connections:,}" if not spot.config else "" for spot in spots]
    rates = [say_rate(spot.goodput.ratio) if spot.goodput else NOTHING for spot in spots]
    failed = [f"{'' if spot.bears else '✕ '}{say_share(spot)}" for spot in spots]
    late = [say_milliseconds(spot.p99_ms) for spot in spots]
    ratios = [
        f"{say_ratio(spot.ratio.ratio)} {say_interval(spot.ratio.low, spot.ratio.high)}" if spot.ratio else ""
        for spot in spots
    ]
    told = [counts, names, rates, failed, late]
    columns = [[title, *cells] for title, cells in zip(TITLES, told, strict=True)]
    whole = [*columns, ["ratio", *ratios]] if any(ratios) else columns
    for chosen in (whole, columns, columns[:4], columns[:3]):
        room = width - sum(max(map(cell_len, column)) + len(GAP) for column in chosen)
        if room >= LEAST_BAR:
            return chosen, min(room, MOST_BAR)
    return columns[:4], 0


def _line(columns: list[list[str]], row: int) -> str:
    """Write one row; names stand at the left of their column, figures at the right."""
    cells = []
    for number, column in enumerate(columns):
        blank = " " * (max(map(cell_len, column)) - cell_len(column[row]))
        cells.append(f"{column[row]}{blank}" if number == 1 else f"{blank}{column[row]}")
    return "".join(f"{cell}{GAP}" for cell in cells)


def _shorten(name: str) -> str:
    return name if cell_len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _draw(spot: "Spot", most: float, columns: int) -> str:
    """Draw goodput as a bar from 0, and over its end the interval."""
    if spot.goodput is None:
        return "served nothing" if spot.fault else ""
    low, middle, high = (
        min(round(each / most * columns), columns)
        for each in (spot.goodput.low, spot.goodput.ratio, spot.goodput.high)
    )
    solid = max(middle, 1)
    return "█" * min(low, solid) + "┼" * max(high - min(low, solid), 0)
