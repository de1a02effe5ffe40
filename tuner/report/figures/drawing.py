"""Parts of the report's figures: points, lines and bars at places; the page's template writes them as SVG.

Why no plotting library: plotly.js alone is 4.8 MB, its Python half needs seconds for the fifty figures of a
study, and neither follows a reader's colour scheme or lays labels out for a narrow screen. What the figures
need is a dozen shapes at known places: static SVG, styled by the page, drawn without any script.

x is a percentage of a figure's width, so that it fits any window; y is in pixels from its top.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuner.records import Role
from tuner.report.figures.axes import Axis, Label
from tuner.statistics.baseline_level import Speedup

ROLES: Mapping[Role, tuple[str, str, str]] = {
    Role.BASELINE: ("baseline (the default)", "grey", "square"),
    Role.SEARCH: ("search", "blue", "circle"),
    Role.REPEAT: ("repeat", "blue", "diamond"),
    Role.RACE: ("race", "amber", "triangle"),
    Role.ABLATION: ("ablation", "amber", "plus"),
    Role.CONFIRM: ("confirm", "good", "star"),
}
"""Name in the legend, colour and symbol: never told apart by colour alone."""


BARS_PX = 105
"""Width of the bars' column in a window of 390 pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One symbol, and what is shown when it is pointed at."""

    x: float
    y: float
    trial: int | None = None
    """Number of the trial that it stands for; the page describes each trial once."""
    tip: str = ""
    """The description, where it is no single trial."""
    is_hollow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """A straight line; its ends are x in percent and y in pixels."""

    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points and lines of one kind."""

    tone: str
    """The colour, by its name in the style sheet."""
    symbol: str = "circle"
    name: str = ""
    """Name in the legend; empty for none."""
    points: tuple[Point, ...] = ()
    lines: tuple[Stroke, ...] = ()
    style: str = "thin"
    """How its lines are drawn: thin, bold, faint, dotted or dashed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A text within a figure."""

    x: float
    y: float
    text: str
    anchor: str = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One figure with two axes."""

    name: str
    title: str
    height: int
    series: tuple[Series, ...]
    caption: str = ""
    x_labels: tuple[Label, ...] = ()
    x_title: str = ""
    y_labels: tuple[Label, ...] = ()
    """Their places are percentages of the height, from the bottom."""
    y_title: str = ""
    notes: tuple[Note, ...] = ()
    table: str = "The table of trials at the end of the page has the same numbers."
    """Where the same is to be read."""

    @property
    def legend(self) -> tuple[Series, ...]:
        """Return the series that have a name."""
        return tuple(each for each in self.series if each.name)

    @property
    def label_rows(self) -> int:
        """Return how many rows of labels stand below the figure."""
        return 1 + max((label.row for label in self.x_labels), default=-1)

    @property
    def left_characters(self) -> int:
        """Return how many characters of room the labels at the left need."""
        return max((len(label.text) for label in self.y_labels), default=0)

    @property
    def count(self) -> int:
        """Return how many points it has."""
        return sum(len(each.points) for each in self.series)


def height_of(axis: Axis, value: float, height: int) -> float:
    """Return how far below the figure's top a value stands, in pixels."""
    return round(height * (1 - axis.share(value)), 1)


def level_line(axis: Axis, value: float, height: int, *, tone: str = "grey", style: str = "thin") -> Series:
    """Draw a line across the whole width."""
    y = height_of(axis, value, height)
    return Series(tone=tone, style=style, lines=(Stroke(x1=0, y1=y, x2=100, y2=y),))


def upright_line(x: float, height: int, *, tone: str = "grey", style: str = "thin") -> Series:
    """Draw a line over the whole height."""
    return Series(tone=tone, style=style, lines=(Stroke(x1=x, y1=0, x2=x, y2=height),))


def interval_lines(
    xs: Sequence[float], speedups: Sequence[Speedup], axis: Axis, height: int
) -> tuple[Stroke, ...]:
    """Draw the 95 % interval of each speedup."""
    lines = []
    for x, speedup in zip(xs, speedups, strict=True):
        low, high = speedup.interval()
        y1, y2 = height_of(axis, low, height), height_of(axis, high, height)
        lines.append(Stroke(x1=x, y1=y1, x2=x, y2=y2))
    return tuple(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One row; every place is a percentage of the width."""

    label: str
    cells: tuple[str, ...] = ()
    """The texts behind the bar; numbers first."""
    detail: str = ""
    """A smaller line below the label."""
    tone: str = "blue"
    begin: float | None = None
    """The bar's ends, in either order; None for a row without one."""
    end: float | None = None
    low: float | None = None
    """The interval's ends; None for a row without one."""
    high: float | None = None
    dot: float | None = None
    symbol: str = "circle"
    mark: float | None = None
    """An upright mark, such as what chance alone would give."""

    @property
    def left(self) -> float:
        """Return where the bar begins."""
        return min(self.begin or 0.0, self.end or 0.0)

    @property
    def width(self) -> float:
        """Return how wide the bar is."""
        return round(abs((self.end or 0.0) - (self.begin or 0.0)), 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Rows with bars over one axis."""

    name: str
    title: str
    columns: tuple[str, ...]
    """Titles of the first column and of those behind the bars."""
    bars: tuple[Bar, ...]
    origin: float | None = None
    """Where the line of no change stands, in percent."""
    labels: tuple[Label, ...] = ()
    numbers: int = 1
    """How many of the columns behind the bars hold numbers; the others hold sentences."""
    caption: str = ""
