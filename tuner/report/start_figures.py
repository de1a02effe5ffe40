"""The report's figures of starts: all over time, the confirmation's pairs, goodput against its cost."""

import math
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from tuner.records import Role, Start, State
from tuner.report.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    RED,
    ROLES,
    TEXT_ALONE,
    as_text,
    draw_points,
    error_bars,
    make_layout,
    make_pale,
    ratio_axis,
    shorten,
)
from tuner.report.wording import say_speedup
from tuner.statistics.pareto import costs

if TYPE_CHECKING:
    from tuner.report.summary import Summary

LEVEL = {"type": "line", "line": {"color": GREY}}
"""The line of no change."""


def draw_timeline(summary: "Summary") -> go.Figure:
    """Draw the speedup of every start in the order in which they were made."""
    measured = [start for start in summary.starts if start.number in summary.speedups]
    ratios = [summary.speedups[start.number].ratio for start in measured]
    axis = ratio_axis(ratios)
    floor = 10 ** axis["range"][0]
    traces: list[go.Scatter] = []
    for role, (name, colour, symbol) in ROLES.items():
        group = [start for start in measured if start.role is role]
        if not group:
            continue
        speedups = [summary.speedups[start.number] for start in group]
        pruned = f"{symbol.removesuffix('-open')}-open"
        symbols = [pruned if start.state is State.PRUNED else symbol for start in group]
        traces.append(
            draw_points(
                [start.number for start in group],
                [speedup.ratio for speedup in speedups],
                [describe_start(summary, start) for start in group],
                name=name,
                error_y=error_bars(speedups, colour),
                marker={"color": colour, "symbol": symbols, "size": 8},
            )
        )
    if summary.climb:
        numbers, best = zip(*summary.climb, strict=True)
        line = {"shape": "hv", "color": GREEN, "width": 1.5, "dash": "dot"}
        traces.append(
            go.Scatter(x=numbers, y=best, mode="lines", line=line, name="best so far", hoverinfo="skip")
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
                hovertemplate=TEXT_ALONE,
            )
        )
    level = {**LEVEL, "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1}
    layout = make_layout(height=420, showlegend=True, shapes=[level])
    layout.yaxis.update(axis)
    layout.xaxis.update({"title": {"text": "start number"}, "rangemode": "tozero"})
    return go.Figure(traces, layout)


def describe_start(summary: "Summary", start: Start) -> str:
    """Return what is shown of a start on hover."""
    lines = [f"start {start.number}, {start.role.value}, {start.state.value}"]
    if start.number in summary.speedups:
        lines.append(say_speedup(summary.speedups[start.number]))
    if start.failure is not None:
        lines.append(as_text(f"{start.failure.kind}: {start.failure.reason[:160]}"))
    changes = summary.show_changes(start.config)
    lines += map(as_text, changes[:8])
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
    each = go.Scatter(
        x=list(pairs.values()),
        y=[f"pair {index}" for index in range(1, len(pairs) + 1)],
        mode="markers",
        marker={"color": GREEN, "size": 10, "symbol": "diamond"},
        hovertemplate="%{y}: %{x:.3f}×<extra></extra>",
    )
    together = go.Scatter(
        x=[gain.ratio],
        y=["together"],
        error_x={
            "type": "data", "symmetric": False, "thickness": 2, "width": 6, "color": INK,
            "array": [gain.high - gain.ratio], "arrayminus": [gain.ratio - gain.low],
        },
        mode="markers",
        marker={"color": INK, "size": 11},
        hovertemplate="together: %{x:.3f}×<extra></extra>",
    )  # fmt: skip
    level = {**LEVEL, "yref": "paper", "y0": 0, "y1": 1, "x0": 1, "x1": 1}
    height = 110 + round(min(26, 420 / len(pairs)) * len(pairs))
    figure = go.Figure([each, together], make_layout(height=height, shapes=[level]))
    figure.layout.xaxis.update({**axis, "title": {"text": "winner relative to default"}})
    figure.layout.yaxis.update({"autorange": "reversed", "type": "category"})
    return figure


def pair_ratios(summary: "Summary") -> dict[int, float]:
    """Compute the winner's goodput relative to the default's in every complete pair, by block."""
    sides: dict[int, dict[str, float]] = {}
    for start in summary.starts:
        level = start.log_value
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
    prices = [paid[start.number].ratio for start in both]
    front = summary.front
    starts = draw_points(
        [shorten(price) for price in prices],
        ratios,
        [describe_start(summary, start) for start in both],
        name="starts",
        marker={"color": make_pale(BLUE), "size": 7},
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
    ratios += [choice.goodput.ratio for choice in front]
    prices += [choice.cost.ratio for choice in front]
    figure.layout.yaxis.update(ratio_axis(ratios, title="goodput"))
    figure.layout.xaxis.update(ratio_axis(prices, title=as_text(summary.cost)))
    return figure
