"""The figure and the page of a load curve."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.report.curve import Curve, list_faults, say_collapse, say_effort
from tuner.report.curve.rows import HEAD, list_rows
from tuner.report.figures.theme import Figure, Trace, axis, colour, error, label, make_figure, marker, tip
from tuner.report.markup import render_page
from tuner.statistics.curves.load_curve import Spot

PANEL_PX, FRAME_PX = 230, 90
GAP = 0.08
"""Between two panels, as a share of the height."""
LOOKS = (
    ("blue", "circle"), ("amber", "square"), ("good", "triangle-up"), ("grey", "diamond"), ("pale", "star"),
    ("ink", "cross"),
)  # fmt: skip
"""Colour and symbol of each configuration: colour alone never tells two apart."""
MOST_CONFIGURATIONS = len(LOOKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One quantity over the connections."""

    title: str
    value: Callable[[Spot], float | None]
    interval: Callable[[Spot], tuple[float, float] | None] = lambda _: None
    is_log: bool = False


GOODPUT = Panel(
    title="requests/s",
    value=lambda spot: spot.goodput.ratio if spot.goodput else None,
    interval=lambda spot: (spot.goodput.low, spot.goodput.high) if spot.goodput else None,
)
FAILURES = Panel(
    title="failed, %",
    value=lambda spot: 100 * spot.failures.value if spot.failures else None,
    interval=lambda spot: (100 * spot.failures.low, 100 * spot.failures.high) if spot.failures else None,
)
P99 = Panel(title="p99, ms", value=lambda spot: spot.p99_ms or None, is_log=True)


def render_curve(curve: Curve) -> str:
    """Render one page, the same bytes for the same load curve."""
    return render_page(
        "curve_page.html.j2",
        curve=curve, verdicts=[say_collapse(curve, index) for index in range(len(curve.names))],
        effort=say_effort(curve), faults=list_faults(curve), rows=list_curve_rows(curve),
        figures={"curve": draw_curve(curve)},
    )  # fmt: skip


def list_curve_rows(curve: Curve) -> tuple[tuple[str, ...], ...]:
    """Return the rows of the curve's table, the head first."""
    return (HEAD, *list_rows(curve))


def draw_curve(curve: Curve) -> Figure:
    """Draw goodput, and failures and response times where there are any, over the connections."""
    spots = curve.load_curve.spots
    panels = [GOODPUT]
    if any(spot.failed for spot in spots):
        panels.append(FAILURES)
    if any(spot.p99_ms for spot in spots):
        panels.append(P99)
    height = (1 - GAP * (len(panels) - 1)) / len(panels)
    traces: list[Trace] = []
    upright = {}
    for number, panel in enumerate(panels):
        key = "y" if number == 0 else f"y{number + 1}"
        top = 1 - number * (height + GAP)
        upright[key.replace("y", "yaxis")] = axis(
            panel.title, domain=[round(max(top - height, 0), 4), round(top, 4)],
            type="log" if panel.is_log else "linear", **({} if panel.is_log else {"rangemode": "tozero"}),
        )  # fmt: skip
        traces += [
            _draw_one(curve, config, panel, key, is_first=number == 0) for config in range(len(curve.names))
        ]
    lost = [spot for spot in spots if spot.fault]
    if lost:
        traces.append(
            {
                "type": "scatter", "mode": "markers", "name": "served nothing", "hoverinfo": "text",
                "x": [spot.connections for spot in lost], "y": [0] * len(lost), "yaxis": "y",
                "hovertext": [tip(f"{spot.connections:,} connections: {spot.fault}") for spot in lost],
                "marker": marker("bad", "x"),
            }
        )  # fmt: skip
    numbers = [*curve.connections]
    return make_figure(
        f"{curve.study} under rising load", traces, height=FRAME_PX + PANEL_PX * len(panels),
        x=axis("connections", type="log", tickvals=numbers, ticktext=[f"{each:,}" for each in numbers],
               anchor="y" if len(panels) == 1 else f"y{len(panels)}"),
        y=upright.pop("yaxis"), **upright,
    )  # fmt: skip


def _draw_one(curve: Curve, config: int, panel: Panel, key: str, *, is_first: bool) -> Trace:
    """Draw the points of one configuration, joined by lines, with intervals; open where requests fail."""
    tone, symbol = LOOKS[config % len(LOOKS)]
    shown = [
        (spot, value) for spot in curve.load_curve.of(config) if (value := panel.value(spot)) is not None
    ]
    values = [round(value, 5) for _, value in shown]
    ends = [panel.interval(spot) or (value, value) for (spot, value) in shown]
    name = label(curve.names[config])
    return {
        "type": "scatter", "mode": "lines+markers", "name": name, "legendgroup": name,
        "showlegend": is_first, "yaxis": key, "hoverinfo": "text",
        "x": [spot.connections for spot, _ in shown], "y": values,
        "hovertext": [
            f"{name} at {spot.connections:,} connections: {value:,.4g} {panel.title}" for spot, value in shown
        ],
        "line": {"color": colour(tone), "width": 1.5},
        "marker": {
            **marker(tone), "symbol": [symbol if spot.bears else f"{symbol}-open" for spot, _ in shown],
        },
        "error_y": error(values, ends, tone),
    }  # fmt: skip
