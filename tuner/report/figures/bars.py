"""Figures that are tables: a row per thing, a bar or an interval in it, and the same numbers as text."""

from dataclasses import dataclass

from tuner.report.figures.axes import Label

BARS_PX = 105
"""Width of the bars' column in a window of 390 pixels."""


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
