"""Rows of figures on a terminal of any width, each with a drawing at its end."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tuner.report.wording import say_ratio
from tuner.statistics.response_curve import Estimate

GAP = "  "
Columns = Sequence[Sequence[str]]
"""Each begins with its title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRows:
    """A head and rows; of several sets of columns the first is shown that leaves room for the drawing."""

    sets: Sequence[Columns]
    """The last one is shown when none leaves room."""
    draw: Callable[[int], Sequence[str]]
    """Draws the scale above the rows, and each row, in so many signs."""
    styles: Sequence[str]
    """Of each row."""
    least: int
    """Signs of the drawing: with fewer it shows nothing."""
    most: int
    """With more it shows nothing more."""
    left: int | None = None
    """The column in which texts stand at the left."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.lines(options.max_width)

    def lines(self, width: int) -> list[Text]:
        """Return the lines, none longer than a width."""
        rooms = [width - sum(_width(each) + len(GAP) for each in columns) for columns in self.sets]
        chosen = next((at for at, room in enumerate(rooms) if room >= self.least), len(rooms) - 1)
        drawn = self.draw(min(rooms[chosen], self.most))
        return [
            Text((self._write(self.sets[chosen], row) + drawn[row])[:width].rstrip(), style=style)
            for row, style in enumerate(("dim", *self.styles))
        ]

    def _write(self, columns: Columns, row: int) -> str:
        cells = []
        for at, column in enumerate(columns):
            blank = " " * (_width(column) - cell_len(column[row]))
            cells.append(f"{column[row]}{blank}{GAP}" if at == self.left else f"{blank}{column[row]}{GAP}")
        return "".join(cells)


def _width(column: Sequence[str]) -> int:
    return max(map(cell_len, column))


def shorten(label: str, most: int) -> str:
    """Return a label with no more signs than that."""
    return label if cell_len(label) <= most else f"{label[: most - 1]}…"


LEAST_BAR, MOST_BAR = 16, 60
"""Columns of the drawing: narrower it shows nothing, wider nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBar:
    """A logarithmic scale of ratios over some columns."""

    low: float
    high: float
    columns: int

    @classmethod
    def fit(cls, estimates: list[Estimate], columns: int) -> "IntervalBar":
        low = min([1.0, *(each.low for each in estimates)])
        high = max([1.0, *(each.high for each in estimates)])
        return cls(low=low / 1.01, high=high * 1.01, columns=max(columns, 1))

    def at(self, ratio: float) -> int:
        """Return the column of a ratio."""
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return min(max(round(share * (self.columns - 1)), 0), self.columns - 1)

    def scale(self) -> str:
        """Return the ends of the scale and 1×, as far as they do not overlap."""
        signs = [" "] * self.columns
        for ratio, shift in ((1.0, 0.5), (self.low, 0.0), (self.high, 1.0)):
            text = say_ratio(ratio) if ratio != 1.0 else "1×"
            first = min(max(self.at(ratio) - round(shift * (len(text) - 1)), 0), self.columns - len(text))
            around = signs[max(first - 1, 0) : first + len(text) + 1]
            if first >= 0 and not "".join(around).strip():
                signs[first : first + len(text)] = text
        return "".join(signs)

    def draw(self, estimate: Estimate, symbol: str) -> str:
        """Return an interval, its ratio, and the line of no change."""
        signs = [" "] * self.columns
        low, high = self.at(estimate.low), self.at(estimate.high)
        signs[low : high + 1] = "─" * (high - low + 1)
        if signs[self.at(1.0)] == " ":
            signs[self.at(1.0)] = "│"
        signs[self.at(estimate.ratio)] = symbol
        return "".join(signs)


def draw_estimates(estimates: Sequence[Estimate | None], symbols: Sequence[str], columns: int) -> list[str]:
    """Return the scale and each estimate with its interval; a sentence where there is none."""
    bar = IntervalBar.fit([each for each in estimates if each], columns)
    drawn = (
        bar.draw(each, symbol) if each else "no measurement"
        for each, symbol in zip(estimates, symbols, strict=True)
    )  # fmt: skip
    return [bar.scale(), *drawn]
