"""What the report's figures share: colours, axes, layout, points; plain lists, the same for the same summary.

Names and reasons come from configurations and logs: whatever becomes text in a figure goes through
`as_text`, because plotly reads a small part of HTML in labels.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from tuner.records import Role
from tuner.report.wording import make_printable

if TYPE_CHECKING:
    from tuner.statistics.control_level import Speedup

INK, SOFT, RULE = "#1c2733", "#55636f", "#dfe4e9"
BLUE, GREY, GREEN, AMBER, RED, PALE = "#1d5fa8", "#7d8995", "#157347", "#b45309", "#b3261e", "#9dbcdf"
TEXT_ALONE = "%{text}<extra></extra>"
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
    """Return the layout that all figures share."""
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
    """Round to the digits that can be seen: a page holds tens of thousands of numbers."""
    return float(f"{number:.4g}")


def make_pale(colour: str) -> str:
    """Make a colour of the form #rrggbb half transparent."""
    red, green, blue = (int(colour[index : index + 2], 16) for index in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.45)"


def draw_points(
    xs: Sequence[float], ratios: Sequence[float], texts: Sequence[str], **more: object
) -> go.Scatter:
    """Draw one point per start, with its text when the mouse is over it."""
    ys = [shorten(ratio) for ratio in ratios]
    return go.Scatter(x=xs, y=ys, mode="markers", text=texts, hovertemplate=TEXT_ALONE, **more)
