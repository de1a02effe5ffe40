"""The figures of a load curve, for a page of its own, the report or a notebook."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tuner.report.curve import (
    Curve,
    list_faults,
    say_collapse,
    say_effort,
)
from tuner.report.curve.rows import HEAD, list_rows
from tuner.report.figures.axes import Axis, Label, arrange_labels, number_labels
from tuner.report.figures.drawing import Chart, Point, Series, Stroke, height_of
from tuner.report.markup import render_page
from tuner.statistics.curves.load_curve import Spot

GOODPUT_PX, OTHER_PX = 240, 140
FRAME_PX = 1100
NARROW_PX = 270
"""Width of a figure on the narrowest screen."""
ROOM = 1.06
"""Above the highest value of a figure."""
LOOKS = (
    ("blue", "circle"), ("amber", "square"), ("good", "triangle"), ("grey", "diamond"), ("pale", "star"),
    ("ink", "plus"),
)  # fmt: skip
"""Colour and symbol of each configuration: never told apart by colour alone."""
MOST_CONFIGURATIONS = len(LOOKS)
TABLE = "The table below has the same numbers."


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a figure shows of a spot."""

    value: Callable[[Spot], float | None]
    interval: Callable[[Spot], tuple[float, float] | None]


def render_curve(curve: Curve) -> str:
    """Render one self-contained page, the same bytes for the same load curve."""
    shown = show_curve(curve)
    return render_page(
        "curve_page.html.j2",
        curve=curve, verdicts=[say_collapse(curve, index) for index in range(len(curve.names))],
        effort=say_effort(curve), faults=list_faults(curve), shown=shown,
    )  # fmt: skip


def embed_curve(curve: Curve) -> str:
    """Return the page as a frame, for it has a style of its own."""
    from markupsafe import escape

    page = escape(render_curve(curve))
    return f'<iframe srcdoc="{page}" style="width: 100%; height: {FRAME_PX}px; border: 0"></iframe>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a report shows of a load curve."""

    verdict: str
    charts: tuple[Chart, ...]
    rows: tuple[tuple[str, ...], ...]
    """Of its table, the head first."""


def show_curve(curve: Curve, name: str = "curve") -> Shown:
    """Draw a load curve; the name is that of its figures on their page."""
    rows = (HEAD, *list_rows(curve))
    return Shown(verdict=curve.verdict, charts=tuple(draw_charts(curve, name)), rows=rows)


def draw_charts(curve: Curve, name: str = "curve") -> list[Chart]:
    """Draw goodput, and failures and response times where there are any."""
    charts = [_draw_goodput(curve), _draw_failures(curve), _draw_p99(curve)]
    return [replace(chart, name=f"{name}-{chart.name}") for chart in charts if chart is not None]


def _draw_goodput(curve: Curve) -> Chart:
    told = Told(
        value=lambda spot: spot.goodput.ratio if spot.goodput else None,
        interval=lambda spot: (spot.goodput.low, spot.goodput.high) if spot.goodput else None,
    )
    most = max((spot.goodput.high for spot in curve.load_curve.spots if spot.goodput), default=1.0)
    axis = Axis(low=0.0, high=ROOM * most)
    return _chart(
        curve, told, axis, GOODPUT_PX, name="goodput", title="Goodput", y_title="requests/s",
        caption="Correct responses per second, with 95 % intervals for what stood in the same blocks. Open "
        "symbols: requests fail there. A cross: nothing was served.",
        y_labels=number_labels(axis, width_px=GOODPUT_PX),
    )  # fmt: skip


def _draw_failures(curve: Curve) -> Chart | None:
    if not any(spot.failed for spot in curve.load_curve.spots):
        return None
    told = Told(
        value=lambda spot: 100 * spot.failures.value if spot.failures else None,
        interval=lambda spot: (100 * spot.failures.low, 100 * spot.failures.high) if spot.failures else None,
    )
    most = max(100 * spot.failures.high for spot in curve.load_curve.spots if spot.failures)
    axis = Axis(low=0.0, high=ROOM * most)
    return _chart(
        curve, told, axis, OTHER_PX, name="failures", title="Failed requests", y_title="% of requests",
        caption="Connections that heard nothing for most of a window are among them.",
        y_labels=number_labels(axis, unit="%", width_px=OTHER_PX),
    )  # fmt: skip


def _draw_p99(curve: Curve) -> Chart | None:
    seen = [spot.p99_ms for spot in curve.load_curve.spots if spot.p99_ms]
    if not seen:
        return None
    axis = Axis(low=min(seen) / 1.3, high=1.3 * max(seen), is_log=True)
    told = Told(value=lambda spot: spot.p99_ms or None, interval=lambda _: None)
    return _chart(
        curve, told, axis, OTHER_PX, name="p99", title="99th percentile", y_title="p99",
        caption="Of the requests that were answered, the median of the trials. Logarithmic axis.",
        y_labels=number_labels(axis, unit="ms", width_px=OTHER_PX),
    )  # fmt: skip


def _chart(curve: Curve, told: Told, axis: Axis, height: int, **texts: object) -> Chart:
    across = _axis_of(curve.connections)
    series = [_draw_one(curve, index, told, across, axis, height) for index in range(len(curve.names))]
    lost = tuple(
        Point(x=across.percent(spot.connections), y=height - 6)
        for spot in curve.load_curve.spots
        if spot.fault
    )
    if lost:
        series.append(Series(name="served nothing", tone="bad", symbol="cross", points=lost))
    return Chart(
        height=height, series=tuple(series), table=TABLE, x_title="connections",
        x_labels=_label(curve.connections, across), **texts,  # type: ignore[arg-type]
    )  # fmt: skip


def _draw_one(curve: Curve, config: int, told: Told, across: Axis, axis: Axis, height: int) -> Series:
    """Draw the points of one configuration, joined by lines, with their intervals."""
    tone, symbol = LOOKS[config % len(LOOKS)]
    points, lines = [], []
    for spot in curve.load_curve.of(config):
        value, interval, x = told.value(spot), told.interval(spot), across.percent(spot.connections)
        if value is None:
            continue
        tip = f"{curve.names[config]} at {spot.connections:,} connections"
        points.append(Point(x=x, y=height_of(axis, value, height), tip=tip, is_hollow=not spot.bears))
        if interval is not None:
            low, high = (height_of(axis, each, height) for each in interval)
            lines.append(Stroke(x1=x, y1=low, x2=x, y2=high))
    lines += [Stroke(x1=one.x, y1=one.y, x2=other.x, y2=other.y) for one, other in pairwise(points)]
    return Series(
        name=curve.names[config], tone=tone, symbol=symbol, points=tuple(points), lines=tuple(lines)
    )


def _axis_of(connections: Sequence[int]) -> Axis:
    """Return the axis of connections, with room beside the outermost."""
    room = (connections[-1] / connections[0]) ** 0.05
    return Axis(low=connections[0] / room, high=connections[-1] * room, is_log=True)


def _label(connections: Sequence[int], across: Axis) -> tuple[Label, ...]:
    """Label the outermost numbers of connections first, and what else has room."""
    order = [connections[-1], connections[0], *connections[1:-1]]
    wanted = [(across.share(count), f"{count:,}") for count in dict.fromkeys(order)]
    return arrange_labels(wanted, width_px=NARROW_PX, rows=2)
