"""Pages that lie elsewhere in the repository and belong on the site, and the links to them."""

import re
from os.path import relpath
from pathlib import Path

from docs.generate.markdown import put

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDER = "project"
"""Of the site."""
SOURCES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/optimizer.md",
    "benchmarks/optimizer-table.md",
    "benchmarks/campaign.md",
    "benchmarks/robust.md",
    "benchmarks/explaining.md",
    "benchmarks/fleet.md",
    "benchmarks/fleet_faults.md",
    "benchmarks/transfer.md",
    "benchmarks/advice.md",
)
_LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def pages_of(start: str) -> list[str]:
    """Return the pages of the site that come from a file, or from a folder."""
    return [_place(source) for source in SOURCES if source.startswith(start)]


def _place(source: str) -> str:
    return f"{FOLDER}/{Path(source).stem.lower()}"


def source_of(page: str) -> str | None:
    """Return the file that a page of the site is made from; None if a program writes the page."""
    places = {_place(source): source for source in SOURCES}
    return None if page.startswith("reference/") else places.get(page, f"docs/{page}.md")


def write_pages(docs: Path) -> None:
    """Write a copy of each, whose links lead from its place on the site to where they led from its own."""
    for source in SOURCES:
        page = docs / f"{_place(source)}.md"
        put(page, relink((ROOT / source).read_text(), page, was=ROOT / source))


def relink(text: str, page: Path, was: Path | None = None) -> str:
    """Return the text of a page with links to where files are on the site; `was` is where it came from."""
    moved = {ROOT / source: DOCS / f"{_place(source)}.md" for source in SOURCES}

    def lead(link: re.Match[str]) -> str:
        target = ((was or page).parent / link[1]).resolve()
        stays = was is None and target not in moved
        return link[1] if stays else relpath(moved.get(target, target), page.parent)

    parts = _FENCED.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(lead, part) for part in parts)
