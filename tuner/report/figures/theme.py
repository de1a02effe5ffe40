"""Colours, fonts and axes that all figures share.

A figure here is the plain data that plotly draws, {"data": […], "layout": {…}}
(https://plotly.com/javascript/reference/). The page needs no more, and objects of plotly's classes take
longer to make than everything else on it; `tuner.figures` makes them for notebooks and scripts.
"""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuner.records import Role
from tuner.report.figures.axes import choose_ratio_ticks
from tuner.report.wording import make_lines_printable, make_printable

Figure = dict[str, Any]
Trace = dict[str, Any]

COLOURS: Mapping[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#11171d"),
    "tint": ("#f3f6f8", "#1a222a"),
    "ink": ("#1c2733", "#e4eaf0"),
    "soft": ("#536069", "#a5b2be"),
    "rule": ("#dde3e8", "#2e3943"),
    "edge": ("#7b8893", "#7d8b98"),
    "good": ("#137044", "#5fcf93"),
    "bad": ("#b3261e", "#ff938a"),
    "open": ("#835400", "#e5b657"),
    "blue": ("#1d5fa8", "#78b6f5"),
    "pale": ("#6292c6", "#4f7db0"),
    "grey": ("#66727d", "#96a3af"),
    "amber": ("#a84c06", "#f0a562"),
}
"""Of light and dark schemes. Figures are made in the light ones; the page's script replaces each."""

ROLES: Mapping[Role, tuple[str, str, str]] = {
    Role.BASELINE: ("baseline", "grey", "square-open"),
    Role.SEARCH: ("search", "blue", "circle"),
    Role.REPEAT: ("repeat", "blue", "diamond"),
    Role.RACE: ("race", "amber", "triangle-up"),
    Role.ABLATION: ("ablation", "amber", "cross"),
    Role.CONFIRM: ("confirmation", "good", "star"),
}
"""Name in the legend, colour and symbol: colour alone never tells two apart."""

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif'
LEAST_RATIO = 0.5
"""A ratio axis goes down to this at least; further only as far as it goes up."""
LONGEST_LABEL = 40


def colour(name: str) -> str:
    """Return a colour of the light scheme."""
    return COLOURS[name][0]


def label(text: str) -> str:
    """Return one printable line for a label, cut where it is too long; plotly reads tags, so none is left."""
    shown = make_printable(text)
    return html.escape(shown if len(shown) <= LONGEST_LABEL else f"{shown[:LONGEST_LABEL]}…")


def tip(text: str) -> str:
    """Return lines for the box at a point."""
    return html.escape(make_lines_printable(text)).replace("\n", "<br>")


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioAxis:
    """A logarithmic axis of ratios with 1 on it.

    It does not follow losers all the way down: values below stand at its edge, so that one trial that nearly
    stood still does not squeeze all others into a strip.
    """

    low: float
    high: float

    @classmethod
    def fit(cls, ratios: Iterable[float]) -> "RatioAxis":
        """Return the axis for these ratios, with some room at its ends."""
        values = [1.0, *(ratio for ratio in ratios if ratio > 0 and math.isfinite(ratio))]
        high = max(values)
        low = max(min(values), min(LEAST_RATIO, 1 / high))
        room = max(1.06, (high / low) ** 0.06)
        return cls(low=low / room, high=high * room)

    def clamp(self, ratio: float) -> float:
        """Return a ratio, or the end of the axis that is nearest."""
        return float(f"{min(max(ratio, self.low), self.high):.6g}")

    def describe(self, title: str = "", **more: object) -> Mapping[str, Any]:
        """Return the axis for the layout."""
        ticks = choose_ratio_ticks(self.low, self.high)
        return {
            **axis(title),
            "type": "log",
            "range": [round(math.log10(self.low), 5), round(math.log10(self.high), 5)],
            "tickvals": ticks,
            "ticktext": [f"{tick:g}×" for tick in ticks],
            **more,
        }


def axis(title: str = "", **more: object) -> Mapping[str, Any]:
    """Return an axis for the layout."""
    return {
        "title": {"text": title, "font": {"size": 12}, "standoff": 8},
        "gridcolor": colour("rule"),
        "linecolor": colour("edge"),
        "zeroline": False,
        "automargin": True,
        **more,
    }


def make_figure(
    title: str, traces: Sequence[Trace], *, height: int, x: Mapping[str, Any], y: Mapping[str, Any],
    **more: object,
) -> Figure:  # fmt: skip
    """Return a figure with two axes, in the light scheme.

    Args:
        title: its heading.
        traces: what is drawn, as plotly's traces.
        height: pixels.
        x: the axis below.
        y: the axis at the left.
        more: further keys of the layout.
    """
    return {
        "data": [*traces],
        "layout": {
            "title": {"text": html.escape(title), "x": 0, "xref": "paper", "font": {"size": 15}},
            "height": height,
            "margin": {"l": 12, "r": 12, "t": 28, "b": 12},
            "font": {"family": FONT, "size": 12, "color": colour("soft")},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "hovermode": "closest",
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": colour("edge"), "activecolor": colour("ink")},
            "hoverlabel": {
                "align": "left",
                "bgcolor": colour("tint"),
                "bordercolor": colour("edge"),
                "font": {"color": colour("ink"), "size": 12},
            },
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "xaxis": dict(x),
            "yaxis": dict(y),
            **more,
        },
    }


def marker(tone: str, symbol: str = "circle", size: int = 8) -> Mapping[str, Any]:
    """Return how points look."""
    return {
        "color": colour(tone),
        "symbol": symbol,
        "size": size,
        "line": {"width": 1.4, "color": colour(tone)},
    }


def error(
    values: Sequence[float], intervals: Sequence[tuple[float, float]], tone: str = "soft", **more: object
) -> Mapping[str, Any]:
    """Return the intervals of points as error bars."""
    pairs = [*zip(values, intervals, strict=True)]
    return {
        "type": "data",
        "symmetric": False,
        "array": [round(max(high - value, 0.0), 5) for value, (_, high) in pairs],
        "arrayminus": [round(max(value - low, 0.0), 5) for value, (low, _) in pairs],
        "color": colour(tone),
        "thickness": 1.2,
        "width": 3,
        **more,
    }


def level(
    at: float, *, is_upright: bool = False, tone: str = "edge", dash: str = "solid"
) -> Mapping[str, Any]:
    """Return a line across a figure at a value, as a shape of the layout."""
    along, across = ("x", "y") if is_upright else ("y", "x")
    return {
        "type": "line", "layer": "below", f"{along}0": at, f"{along}1": at,
        f"{across}ref": "paper", f"{across}0": 0, f"{across}1": 1,
        "line": {"color": colour(tone), "width": 1.2, "dash": dash},
    }  # fmt: skip
