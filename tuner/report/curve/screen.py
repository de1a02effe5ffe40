"""A load curve on a terminal of any width: a row for each configuration and number of connections."""

from rich.console import Group, RenderableType
from rich.text import Text

from tuner.report.curve import Curve, list_faults, say_collapse, say_effort, say_share
from tuner.report.figures.drawn_rows import DrawnRows, shorten
from tuner.report.wording import NOTHING, make_printable, say_estimate, say_milliseconds, say_rate
from tuner.statistics.curves.load_curve import Spot

LEAST_BAR, MOST_BAR = 12, 48
"""Columns of the drawing: narrower it shows nothing, wider nothing more."""
LONGEST_NAME = 14
LEGEND = "█ goodput, ┼ within its 95 % interval  ✕ requests fail"
TITLES = ("connections", "", "requests/s", "failed", "p99")


def curve_screen(curve: Curve) -> Group:
    """Return what a load curve has shown: where each configuration collapses, and the curve."""
    parts: list[RenderableType] = [
        Text(make_printable(say_collapse(curve, index)), style="bold") for index in range(len(curve.names))
    ]
    parts += [Text(f"{say_effort(curve)}."), Text(""), draw_goodput(curve), Text(LEGEND, style="dim")]
    parts += [Text(make_printable(line), style="yellow") for line in list_faults(curve)]
    return Group(*parts)


def draw_goodput(curve: Curve) -> DrawnRows:
    """Draw the curve by connections, and within by configuration."""
    spots = curve.load_curve.by_connections
    told = (
        [f"{spot.connections:,}" if not spot.config else "" for spot in spots],
        [shorten(make_printable(curve.names[spot.config]), LONGEST_NAME) for spot in spots],
        [say_rate(spot.goodput.ratio) if spot.goodput else NOTHING for spot in spots],
        [f"{'' if spot.bears else '✕ '}{say_share(spot)}" for spot in spots],
        [say_milliseconds(spot.p99_ms) for spot in spots],
    )
    ratios = [say_estimate(spot.ratio) if spot.ratio else "" for spot in spots]
    columns = [[title, *cells] for title, cells in zip(TITLES, told, strict=True)]
    whole = [*columns, ["ratio", *ratios]] if any(ratios) else columns
    most = max((spot.goodput.high for spot in spots if spot.goodput), default=1.0)
    return DrawnRows(
        sets=(whole, columns, columns[:4], columns[:3], columns[:4]),
        draw=lambda width: ["", *(_draw(spot, most, width) if width >= LEAST_BAR else "" for spot in spots)],
        styles=["" if spot.bears or not (spot.starts or spot.fault) else "yellow" for spot in spots],
        least=LEAST_BAR, most=MOST_BAR, left=1,
    )  # fmt: skip


def _draw(spot: Spot, most: float, columns: int) -> str:
    """Draw goodput as a bar from 0, and over its end the interval."""
    if spot.goodput is None:
        return "served nothing" if spot.fault else ""
    low, middle, high = (
        min(round(each / most * columns), columns)
        for each in (spot.goodput.low, spot.goodput.ratio, spot.goodput.high)
    )
    solid = max(middle, 1)
    return "█" * min(low, solid) + "┼" * max(high - min(low, solid), 0)
