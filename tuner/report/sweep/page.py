"""The figure and the page of a sweep: the response curve with its intervals."""

from tuner.report.figures.axes import choose_ratio_ticks
from tuner.report.figures.theme import (
    Figure,
    Trace,
    axis,
    colour,
    error,
    label,
    level,
    make_figure,
    marker,
    tip,
)
from tuner.report.markup import render_page
from tuner.report.sweep import (
    Sweep,
    advise,
    list_faults,
    list_followers,
    name_best,
    say_effort,
    say_tolerance,
)
from tuner.report.sweep.rows import list_rows
from tuner.report.wording import capitalize, say_estimate, say_metric
from tuner.statistics.curves.sweep import Tried, places_of

SWEEP_PX = 380
SPECIAL_STEP = 0.2
"""Distance of a value that lies on no scale from the range and from the next one, in widths of the range."""
LOOKS = {
    "other": ("blue", "circle-open", "measured"),
    "near": ("blue", "circle", "within 3 % of the best"),
    "best": ("good", "diamond", "best"),
    "fault": ("bad", "x", "failed"),
}
"""Colour, symbol and name in the legend."""


def render_sweep(sweep: Sweep) -> str:
    """Render one page, the same bytes for the same sweep."""
    return render_page(
        "sweep_page.html.j2",
        sweep=sweep, title=name_best(sweep), advice=advise(sweep), tolerance=say_tolerance(sweep),
        effort=say_effort(sweep), rows=list_rows(sweep), faults=list_faults(sweep),
        followers=[(name, *shown) for name, shown in list_followers(sweep).items()],
        labels=[sweep.show(value) for value in sweep.values],
        figures={"sweep": draw_sweep(sweep)},
    )  # fmt: skip


def draw_sweep(sweep: Sweep) -> Figure:
    """Draw the ratio of each value to what the parameter is without a sweep."""
    places = _place(sweep)
    ends = [1.0, *(end for each in sweep.estimates if each for end in (each.low, each.high))]
    room = 0.06 * (max(ends) - min(ends)) or 0.05
    low, high = max(min(ends) - room, 0.0), max(ends) + room
    known = [(place, each.ratio) for place, each in zip(places, sweep.estimates, strict=True) if each]
    curve: Trace = {
        "type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False,
        "x": [place for place, _ in known], "y": [round(ratio, 5) for _, ratio in known],
        "line": {"color": colour("pale"), "width": 1.5},
    }  # fmt: skip
    traces = [] if sweep.plan.special else [curve]
    for kind in LOOKS:
        group = [each for each in sweep.sweeping.tried if _kind(sweep, each) == kind]
        if group:
            traces.append(_draw_values(sweep, group, kind, places, low))
    ticks = [each for each in choose_ratio_ticks(low, high) if low <= each <= high]
    return make_figure(
        f"{sweep.parameter} at the {sweep.plan.at}", traces, height=SWEEP_PX,
        x=axis(label(sweep.parameter), tickvals=places,
               ticktext=[label(sweep.show(value)) for value in sweep.values], showgrid=False),
        y=axis(f"{capitalize(say_metric(sweep.metric))} relative to {label(sweep.show(sweep.baseline))}",
               range=[low, high], tickvals=ticks, ticktext=[f"{each:g}×" for each in ticks]),
        shapes=[level(1, dash="dash")],
    )  # fmt: skip


def _draw_values(sweep: Sweep, group: list[Tried], kind: str, places: list[float], low: float) -> Trace:
    tone, symbol, name = LOOKS[kind]
    at = [low if each.estimate is None else round(each.estimate.ratio, 5) for each in group]
    ends = [
        (value, value) if each.estimate is None else (each.estimate.low, each.estimate.high)
        for value, each in zip(at, group, strict=True)
    ]
    return {
        "type": "scatter", "mode": "markers", "name": name, "hoverinfo": "text",
        "x": [places[each.index] for each in group], "y": at,
        "hovertext": [tip(_describe(sweep, each)) for each in group],
        "marker": marker(tone, symbol, 9), "error_y": error(at, ends, tone),
    }  # fmt: skip


def _describe(sweep: Sweep, tried: Tried) -> str:
    said = say_estimate(tried.estimate) if tried.estimate else "no measurement"
    told = f"{sweep.show(sweep.values[tried.index])}: {said}, {tried.trials} trials"
    return f"{told}; {tried.fault}" if tried.fault else told


def _kind(sweep: Sweep, tried: Tried) -> str:
    if tried.fault or tried.estimate is None:
        return "fault"
    return "best" if tried.index == sweep.sweeping.best else "near" if tried.is_tolerated else "other"


def _place(sweep: Sweep) -> list[float]:
    """Return where each value stands: numbers from 0 to 1, right of them what lies on no scale."""
    places = places_of(sweep.plan)
    apart = [index for index, place in enumerate(places) if place is None or index in sweep.plan.special]
    if len(apart) == len(places):
        return [float(index) for index in range(len(places))]
    return [
        round(1 + SPECIAL_STEP * (apart.index(index) + 1) if index in apart else place or 0.0, 4)
        for index, place in enumerate(places)
    ]
