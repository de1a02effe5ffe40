"""The figure of a sweep: the response curve with its intervals, as SVG for a page, the report or a notebook.

Across, places are percentages of the width, so that the figure fits any window; what is written stays as
large as it is.
"""

from dataclasses import dataclass
from itertools import pairwise

from tuner.report.figures.axes import choose_ratio_ticks
from tuner.report.markup import load_templates, render_page
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
from tuner.report.wording import say_estimate
from tuner.statistics.curves.sweep import Tried, places_of
from tuner.statistics.response_curve import Estimate

HEIGHT = 300
MARGIN_PERCENT = 5.0
"""Left and right of the outermost values."""
SPECIAL_PERCENT = 14.0
"""Width of each value that lies on no scale, beside those that do."""
LABEL_PERCENT = 8.0
"""Nearer to each other than that, labels stand in two rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One value in the figure; x in percent, y in pixels from the top."""

    x: float
    label: str
    row: int
    """Of its label, 0 or 1."""
    tone: str
    """best, near, other or fault."""
    tip: str
    y: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A ratio on the axis at the left."""

    y: float
    label: str


def render_sweep(sweep: Sweep) -> str:
    """Render one self-contained page, the same bytes for the same sweep."""
    return render_page(
        "sweep_page.html.j2",
        sweep=sweep, title=name_best(sweep), advice=advise(sweep), tolerance=say_tolerance(sweep),
        effort=say_effort(sweep), rows=list_rows(sweep), faults=list_faults(sweep),
        followers=[(name, *shown) for name, shown in list_followers(sweep).items()],
        labels=[sweep.show(value) for value in sweep.values],
        figure=draw_figure(sweep),
    )  # fmt: skip


def draw_figure(sweep: Sweep) -> str:
    """Return the figure as HTML that brings its own colours, light and dark."""
    marks, ticks = draw_marks(sweep), draw_ticks(sweep)
    curve = [mark for mark in marks if mark.y is not None and not sweep.plan.special]
    return load_templates().get_template("sweep_figure.html.j2").render(
        sweep=sweep, marks=marks, ticks=ticks, height=HEIGHT, lines=list(pairwise(curve)),
        level=_Axis.fit(sweep).y(1.0), title=name_best(sweep),
    )  # fmt: skip


def draw_marks(sweep: Sweep) -> list[Mark]:
    """Place every value: numbers on their scale, and beside them what lies on none."""
    axis, shares = _Axis.fit(sweep), _spread(sweep)
    marks: list[Mark] = []
    above: list[float] = []
    for tried, x in zip(sweep.sweeping.tried, shares, strict=True):
        crowded = bool(above) and x - above[-1] < LABEL_PERCENT
        row = 1 if crowded and not (marks and marks[-1].row) else 0
        above.append(x)
        label, estimate = sweep.show(sweep.values[tried.index]), tried.estimate
        said = say_estimate(estimate) if estimate else "no measurement"
        marks.append(
            Mark(
                x=x, label=label, row=row, tone=_tone(sweep, tried),
                tip=f"{label}: {said}, {tried.trials} trials" + (f"; {tried.fault}" if tried.fault else ""),
                y=None if estimate is None else axis.y(estimate.ratio),
                low=None if estimate is None else axis.y(estimate.low),
                high=None if estimate is None else axis.y(estimate.high),
            )
        )  # fmt: skip
    return marks


def _tone(sweep: Sweep, tried: Tried) -> str:
    if tried.fault:
        return "fault"
    return "best" if tried.index == sweep.sweeping.best else "near" if tried.is_tolerated else "other"


def _spread(sweep: Sweep) -> list[float]:
    """Return where each value stands, in percent of the width."""
    places = places_of(sweep.plan)
    apart = [index for index, place in enumerate(places) if place is None or index in sweep.plan.special]
    if len(apart) == len(places):
        return [100 * (index + 0.5) / len(places) for index in range(len(places))]
    room = 100 - 2 * MARGIN_PERCENT - SPECIAL_PERCENT * len(apart)
    return [
        round(MARGIN_PERCENT + room * (place or 0.0), 2)
        if index not in apart
        else round(MARGIN_PERCENT + room + SPECIAL_PERCENT * (apart.index(index) + 1), 2)
        for index, place in enumerate(places)
    ]


def draw_ticks(sweep: Sweep) -> list[Tick]:
    """Return round ratios on the axis."""
    axis = _Axis.fit(sweep)
    inside = [each for each in choose_ratio_ticks(axis.low, axis.high) if axis.low <= each <= axis.high]
    return [Tick(y=axis.y(each), label=f"{each:g}×") for each in inside]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """A scale of ratios from the top to the bottom of the figure."""

    low: float
    high: float

    @classmethod
    def fit(cls, sweep: Sweep) -> "_Axis":
        known: list[Estimate] = [each for each in sweep.estimates if each is not None]
        low = min([1.0, *(each.low for each in known)])
        high = max([1.0, *(each.high for each in known)])
        room = 0.06 * (high - low) or 0.05
        return cls(low=max(low - room, 0.0), high=high + room)

    def y(self, ratio: float) -> float:
        return round(HEIGHT * (self.high - ratio) / (self.high - self.low), 1)
