"""A measured result in all the forms in which it is shown: screen, JSON, Markdown, CSV and page."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """How one result is shown; each form is made when it is asked for."""

    screen: Callable[[], RenderableType]
    as_json: Callable[[], dict[str, Any]]
    markdown: Callable[[], str] | None = None
    csv: Callable[[], str] | None = None
    page: Callable[[], str] | None = None

    def write_for(self, output: Path) -> str:
        """Return what a file with such a name holds: Markdown or CSV by its ending, else the page."""
        by_ending = {".md": self.markdown, ".csv": self.csv}
        make = by_ending.get(output.suffix) or self.page or self.markdown
        return make() if make else ""
