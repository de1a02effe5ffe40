"""The report's figures: plotly figures of plain lists, the same for the same summary.

Names and reasons come from configurations and logs: whatever becomes text in a figure goes through
`as_text`, because plotly reads a small part of HTML in labels.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from tuner.records import Role, Start, State
from tuner.report.wording import make_printable, say_speedup
from tuner.statistics.pareto import costs

if TYPE_CHECKING:
    from tuner.report.summary import Summary
    from tuner.statistics.control_level import Speedup

INK, SOFT, RULE = "#1c2733", "#55636f", "#dfe4e9"
BLUE, GREY, GREEN, AMBER, RED, PALE = "#1d5fa8", "#7d8995", "#157347", "#b45309", "#b3261e", "#9dbcdf"
LEVEL = {"type": "line", "line": {"color": GREY}}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"

ROLES: Mapping[Role, tuple[str, str, str]] = {
    Role.CONTROL: ("control (the default)", GREY, "square-open"),
    Role.SEARCH: ("search", BLUE, "circle"),
    Role.REPEAT: ("repeat", BLUE, "diamond"),
    Role.RACE: ("race", AMBER, "triangle-up"),
    Role.ABLATION: ("simplify", AMBER, "cross"),
    Role.CONFIRM: ("confirm", GREEN, "star"),
}
"""Name in the legend, colour and symbol: never told apart by colour alone."""


def as_text(value: object) -> str:
    """Make any string safe as a label: printable, and nothing in it is markup."""
    text = make_printable(str(value))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def make_layout(**more: Any) -> go.Layout:  # noqa: ANN401 - plotly's own properties
    """Give the look that all figures share."""
    axis = {"gridcolor": RULE, "linecolor": SOFT, "zeroline": False, "automargin": True, "ticks": "outside"}
    layout = go.Layout(
        template=None,
        font={"family": FONT, "size": 13, "color": INK},
        paper_bgcolor="#ffffff",
        plot_bgcolor="#ffffff",
        margin={"l": 12, "r": 12, "t": 12, "b": 12},
        hoverlabel={"font": {"family": FONT, "size": 13}, "align": "left"},
        showlegend=False,
        dragmode=False,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
        xaxis=axis,
        yaxis=axis,
    )
    return layout.update(more)


def ratio_axis(ratios: Iterable[float], *, title: str | None = "speedup") -> dict[str, Any]:
    """Make a logarithmic axis for ratios with ticks that read as speedups."""
    values = [ratio for ratio in ratios if ratio > 0 and math.isfinite(ratio)] or [1.0]
    low, high = min(*values, 1.0), max(*values, 1.0)
    room = max(0.04, 0.06 * math.log10(high / low))
    steps = choose_ratio_ticks(low, high)
    return {
        "type": "log",
        "range": [math.log10(low) - room, math.log10(high) + room],
        "tickvals": steps,
        "ticktext": [f"{step:g}×" for step in steps],
        "title": {"text": title} if title else None,
    }


def choose_ratio_ticks(low: float, high: float) -> list[float]:
    """Choose up to seven round ratios between low and high, 1 among them."""
    for step in (0.02, 0.05, 0.1, 0.2, 0.25, 0.5):
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first <= 6:  # noqa: PLR2004 - seven ticks
            return [round(step * index, 2) for index in range(max(1, first), last + 1)]
    wide = [tick for decade in range(-4, 5) for tick in (10.0**decade, 2 * 10.0**decade, 5 * 10.0**decade)]
    chosen = [tick for tick in wide if low / 2 <= tick <= high * 2]
    return chosen if len(chosen) <= 7 else [tick for tick in chosen if math.log10(tick) % 1 == 0]  # noqa: PLR2004


def error_bars(speedups: Sequence["Speedup"], colour: str) -> dict[str, Any]:
    """Draw 95 % intervals, paler than their points."""
    ends = [speedup.interval() for speedup in speedups]
    return {
        "type": "data",
        "symmetric": False,
        "array": [shorten(high - each.ratio) for each, (_, high) in zip(speedups, ends, strict=True)],
        "arrayminus": [shorten(each.ratio - low) for each, (low, _) in zip(speedups, ends, strict=True)],
        "thickness": 1,
        "width": 0,
        "color": make_pale(colour),
    }


def shorten(number: float) -> float:
    """Keep the digits that can be seen: a page holds ten thousands of numbers."""
    return float(f"{number:.4g}")


def make_pale(colour: str) -> str:
    """Thin a colour of the form #rrggbb."""
    red, green, blue = (int(colour[index : index + 2], 16) for index in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.45)"


def draw_timeline(summary: "Summary") -> go.Figure:
    """Draw the speedup of every start in the order in which they were made."""
    measured = [start for start in summary.starts if start.number in summary.speedups]
    ratios = [summary.speedups[start.number].ratio for start in measured]
    axis = ratio_axis(ratios)
    floor = 10 ** axis["range"][0]
    traces: list[Any] = []
    for role, (name, colour, symbol) in ROLES.items():
        group = [start for start in measured if start.role is role]
        if not group:
            continue
        speedups = [summary.speedups[start.number] for start in group]
        traces.append(
            go.Scatter(
                x=[start.number for start in group],
                y=[shorten(speedup.ratio) for speedup in speedups],
                error_y=error_bars(speedups, colour),
                mode="markers",
                name=name,
                marker={
                    "color": colour,
                    "symbol": [
                        f"{symbol.removesuffix('-open')}-open" if start.state is State.PRUNED else symbol
                        for start in group
                    ],
                    "size": 8,
                },
                text=[describe_start(summary, start) for start in group],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    best = summary.climb
    if best:
        traces.append(
            go.Scatter(
                x=[number for number, _ in best],
                y=[ratio for _, ratio in best],
                mode="lines",
                line={"shape": "hv", "color": GREEN, "width": 1.5, "dash": "dot"},
                name="best so far",
                hoverinfo="skip",
            )
        )
    lost = [start for start in summary.starts if start.state in {State.FAILED, State.INVALID}]
    if lost:
        traces.append(
            go.Scatter(
                x=[start.number for start in lost],
                y=[floor * 1.005] * len(lost),
                mode="markers",
                name="no measurement",
                marker={"symbol": "x-thin-open", "size": 9, "color": RED},
                text=[describe_start(summary, start) for start in lost],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    layout = make_layout(
        height=420,
        showlegend=True,
        shapes=[{**LEVEL, "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1}],
    )
    layout.yaxis.update(axis)
    layout.xaxis.update({"title": {"text": "start number"}, "rangemode": "tozero"})
    return go.Figure(traces, layout)


def describe_start(summary: "Summary", start: Start) -> str:
    """Say what a start was, on hover."""
    lines = [f"start {start.number}, {start.role.value}, {start.state.value}"]
    if start.number in summary.speedups:
        lines.append(say_speedup(summary.speedups[start.number]))
    if start.failure is not None:
        lines.append(as_text(f"{start.failure.kind}: {start.failure.reason[:160]}"))
    changes = summary.space.changes(start.config)
    for name, (_, value) in list(changes.items())[:8]:
        lines.append(as_text(f"{name} {summary.space.show(name, value)}"))
    if len(changes) > 8:  # noqa: PLR2004 - a hover box that fits a screen
        lines.append(f"… and {len(changes) - 8} more")
    return "<br>".join(lines)


def draw_pairs(summary: "Summary") -> go.Figure | None:
    """Draw the ratio of every confirmation pair, and the interval of their mean."""
    pairs = pair_ratios(summary)
    gain = summary.gain
    if not pairs or gain is None:
        return None
    axis = ratio_axis([*pairs.values(), gain.low, gain.high])
    names = [f"pair {index}" for index in range(1, len(pairs) + 1)]
    figure = go.Figure(
        [
            go.Scatter(
                x=list(pairs.values()),
                y=names,
                mode="markers",
                marker={"color": GREEN, "size": 10, "symbol": "diamond"},
                hovertemplate="%{y}: %{x:.3f}×<extra></extra>",
            ),
            go.Scatter(
                x=[gain.ratio],
                y=["together"],
                error_x={
                    "type": "data", "symmetric": False, "thickness": 2, "width": 6, "color": INK,
                    "array": [gain.high - gain.ratio], "arrayminus": [gain.ratio - gain.low],
                },
                mode="markers",
                marker={"color": INK, "size": 11},
                hovertemplate="together: %{x:.3f}×<extra></extra>",
            ),
        ],
        make_layout(
            height=110 + round(min(26, 420 / len(pairs)) * len(pairs)),
            shapes=[{**LEVEL, "yref": "paper", "y0": 0, "y1": 1, "x0": 1, "x1": 1}],
        ),
    )  # fmt: skip
    figure.layout.xaxis.update({**axis, "title": {"text": "winner relative to default"}})
    figure.layout.yaxis.update({"autorange": "reversed", "type": "category"})
    return figure


def pair_ratios(summary: "Summary") -> dict[int, float]:
    """Compute the winner's goodput relative to the default's in every complete pair, by block."""
    sides: dict[int, dict[str, float]] = {}
    for start in summary.starts:
        level = start.log_goodput
        if start.role is Role.CONFIRM and start.counts and start.block is not None and level is not None:
            sides.setdefault(start.block, {})[start.arm] = level
    return {
        block: math.exp(side["winner"] - side["default"])
        for block, side in sorted(sides.items())
        if {"winner", "default"} <= side.keys()
    }


def draw_front(summary: "Summary") -> go.Figure | None:
    """Draw goodput against the cost: every start, and the line of what nobody beats in both."""
    if summary.cost is None or not summary.front:
        return None
    paid = costs(summary.starts, summary.cost)
    both = [start for start in summary.starts if start.number in paid and start.number in summary.speedups]
    ratios = [summary.speedups[start.number].ratio for start in both]
    front = summary.front
    starts = go.Scatter(
        x=[shorten(paid[start.number].ratio) for start in both],
        y=[shorten(ratio) for ratio in ratios],
        mode="markers",
        name="starts",
        marker={"color": make_pale(BLUE), "size": 7},
        text=[describe_start(summary, start) for start in both],
        hovertemplate="%{text}<extra></extra>",
    )
    line = go.Scatter(
        x=[shorten(choice.cost.ratio) for choice in front],
        y=[shorten(choice.goodput.ratio) for choice in front],
        mode="lines+markers+text",
        name="not beaten in both",
        line={"shape": "vh", "color": GREEN, "width": 1.5},
        marker={"color": GREEN, "size": 9, "symbol": "diamond"},
        text=[str(number) for number in range(1, len(front) + 1)],
        textposition="top left",
        hovertemplate="pick %{text}: %{y:.2f}× goodput, %{x:.2f}× cost<extra></extra>",
    )
    figure = go.Figure([starts, line], make_layout(height=380, showlegend=True))
    figure.layout.yaxis.update(
        ratio_axis([*ratios, *(choice.goodput.ratio for choice in front)], title="goodput")
    )
    figure.layout.xaxis.update(
        ratio_axis(
            [*(paid[start.number].ratio for start in both), *(choice.cost.ratio for choice in front)],
            title=as_text(summary.cost),
        )
    )
    return figure
