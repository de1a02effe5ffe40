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
    markdown: Callable[[], str]
    csv: Callable[[], str]
    page: Callable[[], str] | None = None
    """None where a result has no page."""

    def write_for(self, output: Path) -> str:
        """Return what a file with such a name holds: Markdown or CSV by its ending, else the page."""
        by_ending = {".md": self.markdown, ".csv": self.csv}
        return by_ending.get(output.suffix, self.page or self.markdown)()
