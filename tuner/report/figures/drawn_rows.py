"""Rows of figures on a terminal of any width, each with a drawing at its end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

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
