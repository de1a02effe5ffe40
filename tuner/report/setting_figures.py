"""Figures of the settings: a slice per parameter, parallel coordinates, failures by class."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from tuner.ports import Scalar
from tuner.records import Role, Start
from tuner.report.drawing import (
    AMBER,
    BLUE,
    GREEN,
    GREY,
    INK,
    PALE,
    RED,
    ROLES,
    TEXT_ALONE,
    as_text,
    draw_points,
    error_bars,
    make_layout,
    ratio_axis,
    shorten,
)
from tuner.report.value_groups import ValueScale, is_same, make_scale
from tuner.report.wording import say_speedup

if TYPE_CHECKING:
    from tuner.report.summary import Summary

AXES_AT_MOST = 7
GOLDEN = (math.sqrt(5) - 1) / 2
SIDES = {
    "default": (GREY, "square-open"),
    "other": (BLUE, "circle"),
    "winner": (GREEN, "star"),
}
SPECIAL_STEP = 0.25
"""Distance of a special value from the range and from the next one, in widths of the range."""
APART = 0.22
"""Least distance between two values that are written at an axis."""


def place(scale: ValueScale, value: Scalar) -> float:
    """Place a value: numbers from 0 to 1, special values left of them; choices count from 0."""
    position = scale.position(value)
    if not math.isnan(position):
        return position
    index = next((index for index, choice in enumerate(scale.choices) if is_same(choice, value)), 0)
    return -SPECIAL_STEP * (len(scale.choices) - index) if scale.has_range else float(index)


def stretch(scale: ValueScale, value: Scalar) -> float:
    """Compute a value's place from 0 to 1, special values included."""
    at = place(scale, value)
    if not scale.has_range:
        return at / (len(scale.choices) - 1) if len(scale.choices) > 1 else 0.5
    lowest = -SPECIAL_STEP * len(scale.choices)
    return (at - lowest) / (1 - lowest)


def choose_marks(scale: ValueScale, most: int) -> list[Scalar]:
    """Choose the values that are written at a scale: all choices, and up to `most` numbers with both ends."""
    if not scale.has_range:
        return list(scale.choices)
    whole = scale.low.is_integer() and scale.high.is_integer()
    marks: list[float] = []
    for index in range(most):
        mark = scale.value_at(index / (most - 1))
        if 0 < index < most - 1:
            mark = 2.0 ** round(math.log2(mark)) if scale.is_log else float(f"{mark:.2g}")
        marks.append(round(mark) if whole else float(f"{mark:.3g}"))
    low, *middle, high = marks
    kept = [low]
    for mark in middle:
        if scale.position(mark) - scale.position(kept[-1]) >= APART <= 1 - scale.position(mark):
            kept.append(mark)
    if high > low:
        kept.append(high)
    return [*scale.choices, *(int(mark) if whole else mark for mark in kept)]


def varied_parameters(summary: "Summary") -> tuple[str, ...]:
    """Return the parameters that the study varied, what is changed first."""
    varied = {dimension.parameter for dimension in summary.space.dimensions}
    found = summary.explanation
    lines, others = (found.lines, found.others) if found is not None else ((), ())
    told = [*(line.parameter for line in lines), *(each.parameter for each in others)]
    ranked = [name for name in told if name in varied]
    rest = [each.name for each in summary.space.parameters if each.name in varied - set(ranked)]
    return (*ranked, *rest)


def measured_starts(summary: "Summary") -> list[Start]:
    """Return every start with a speedup."""
    return [start for start in summary.starts if start.number in summary.speedups]


def side_of(summary: "Summary", start: Start) -> str:
    """Return whose start it is: the default's, the winner's or another's."""
    if start.role is Role.CONTROL or dict(start.config) == dict(summary.default.config):
        return "default"
    return "winner" if summary.is_winner(start.config) else "other"


def name_start(summary: "Summary", start: Start) -> str:
    """Return number and speedup of a start; the figure over time shows the rest."""
    return f"start {start.number}: {say_speedup(summary.speedups[start.number])}"


def draw_slice(summary: "Summary", name: str) -> go.Figure | None:
    """Draw the speedup of every start against its value of one parameter, where it has one."""
    starts = [start for start in measured_starts(summary) if name in start.config]
    default = summary.default.config.get(name)
    if not starts:
        return None
    winner = summary.winner.config.get(name) if summary.winner is not None else None
    # What another setting switches off has no value there.
    marked = [each for each in (default, winner) if each is not None]
    scale = make_scale(summary.space, name, [*(start.config[name] for start in starts), *marked])
    axis = ratio_axis(summary.speedups[start.number].ratio for start in measured_starts(summary))
    spread = 0.012 if scale.has_range else 0.14
    traces = []
    for side, (colour, symbol) in SIDES.items():
        group = [start for start in starts if side_of(summary, start) == side]
        speedups = [summary.speedups[start.number] for start in group]
        traces.append(
            draw_points(
                [
                    shorten(place(scale, start.config[name]) + spread * jitter(start.number))
                    for start in group
                ],
                [speedup.ratio for speedup in speedups],
                [name_start(summary, start) for start in group],
                error_y=error_bars(speedups, colour) if side == "other" else None,
                marker={"color": colour, "symbol": symbol, "size": 7 if side == "winner" else 6},
            )
        )
    lines = [] if default is None else [vertical_line(place(scale, default), GREY, "dash")]
    if winner is not None and (default is None or not is_same(winner, default)):
        lines.append(vertical_line(place(scale, winner), GREEN, "solid"))
    marks = choose_marks(scale, 3 if scale.choices else 4)
    layout = make_layout(height=220, shapes=lines, margin={"l": 8, "r": 26, "t": 6, "b": 8})
    room = 0.06 if scale.has_range else 0.5
    places = [place(scale, mark) for mark in marks]
    layout.xaxis.update(
        tickvals=places,
        ticktext=[as_text(summary.space.show(name, mark)) for mark in marks],
        tickfont={"size": 11},
        tickangle=0 if scale.has_range else None,
        ticklabeloverflow="allow",
        range=[min(places) - room, max(places) + room],
    )
    layout.yaxis.update({**axis, "title": None, "tickfont": {"size": 11}})
    return go.Figure(traces, layout)


def jitter(number: int) -> float:
    """Return a start's own offset between −1 and 1, so that equal values do not hide each other."""
    return 2 * (number * GOLDEN % 1) - 1


def vertical_line(x: float, colour: str, dash: str) -> dict[str, Any]:
    """Draw a line over the whole height."""
    return {
        "type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": x, "x1": x, "layer": "below",
        "line": {"color": colour, "width": 1.5, "dash": dash},
    }  # fmt: skip


def draw_parallel(summary: "Summary") -> go.Figure | None:
    """Draw every start as a line over the parameters that matter most, coloured by speedup."""
    starts = [start for start in measured_starts(summary) if start.role in {Role.SEARCH, Role.REPEAT}]
    names = [
        name for name in varied_parameters(summary) if any(name in start.config for start in starts)
    ][:AXES_AT_MOST]  # fmt: skip
    if len(names) < 2 or not starts:  # noqa: PLR2004 - lines need two ends
        return None
    scales = {
        name: make_scale(
            summary.space, name, [start.config[name] for start in starts if name in start.config]
        )
        for name in names
    }
    ratios = sorted(summary.speedups[start.number].ratio for start in starts)
    top = ratios[max(0, math.ceil(0.9 * len(ratios)) - 1)]
    groups: tuple[tuple[str, str, float, Callable[[float], bool]], ...] = (
        ("below the default", PALE, 1.0, lambda ratio: ratio < min(1.0, top)),
        ("above the default", BLUE, 1.0, lambda ratio: 1.0 <= ratio < top),
        ("best tenth", GREEN, 2.5, lambda ratio: ratio >= top),
    )
    traces: list[Any] = []
    for title, colour, width, belongs in groups:
        chosen = [start for start in starts if belongs(summary.speedups[start.number].ratio)]
        xs, ys, words = join_lines(summary, chosen, names, scales)
        traces.append(
            go.Scatter(
                x=xs, y=ys, text=words, mode="lines+markers", name=title, connectgaps=False,
                line={"color": colour, "width": width}, marker={"size": 4},
                opacity=0.75, hovertemplate=TEXT_ALONE,
            )
        )  # fmt: skip
    notes, shapes = [], []
    for column, name in enumerate(names):
        shapes.append({**vertical_line(column, INK, "solid"), "line": {"color": INK, "width": 1}})
        notes += [
            {"x": column, "y": stretch(scales[name], mark), "showarrow": False,
             "text": as_text(summary.space.show(name, mark)), "xanchor": "left", "xshift": 4,
             "font": {"size": 11}, "bgcolor": "rgba(255,255,255,0.8)"}
            for mark in choose_marks(scales[name], 2)
        ]  # fmt: skip
    layout = make_layout(height=460, showlegend=True, shapes=shapes, annotations=notes)
    layout.xaxis.update(
        tickvals=list(range(len(names))), ticktext=[as_text(name) for name in names], tickangle=30,
        showgrid=False, range=[-0.15, len(names) - 0.5],
    )  # fmt: skip
    layout.yaxis.update(visible=False, range=[-0.06, 1.06])
    return go.Figure(traces, layout)


def join_lines(
    summary: "Summary", starts: Sequence[Start], names: Sequence[str], scales: dict[str, ValueScale]
) -> tuple[list[int | None], list[float | None], list[str]]:
    """Join the lines of several starts into one trace, with a gap after each."""
    xs: list[int | None] = []
    ys: list[float | None] = []
    words: list[str] = []
    for start in starts:
        word = name_start(summary, start)
        for column, name in enumerate(names):
            value = start.config.get(name)
            xs.append(column)
            ys.append(None if value is None else shorten(stretch(scales[name], value)))
            words.append(word)
        xs.append(None)
        ys.append(None)
        words.append("")
    return xs, ys, words


def draw_failures(summary: "Summary") -> go.Figure | None:
    """Draw how many starts were lost, by class and by stage."""
    lost = [start for start in summary.starts if start.failure is not None]
    if not lost:
        return None
    kinds = [kind for kind, _ in Counter(start.failure.kind for start in lost if start.failure).most_common()]
    traces = []
    for role, (title, _, _) in ROLES.items():
        of_role = Counter(start.failure.kind for start in lost if start.failure and start.role is role)
        counts = [of_role[kind] for kind in kinds]
        if any(counts):
            colour = {Role.CONTROL: GREY, Role.SEARCH: RED}.get(role, AMBER)
            traces.append(
                go.Bar(x=counts, y=[as_text(kind) for kind in kinds], orientation="h", name=title,
                       marker={"color": colour})
            )  # fmt: skip
    figure = go.Figure(traces, make_layout(height=110 + 28 * len(kinds), barmode="stack", showlegend=True))
    figure.layout.xaxis.update(title={"text": "starts"}, dtick=math.ceil(len(lost) / 8), rangemode="tozero")
    figure.layout.yaxis.update(autorange="reversed", type="category")
    return figure
