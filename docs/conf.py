"""The site of the documentation: Sphinx reads docs/*.md with MyST, Furo is the theme; `make docs` builds it.

Pages are plain Markdown, as a forge shows them, so that what only a site has stands here: the navigation, the
reference (docs/generate), and pages that lie elsewhere in the repository.
"""

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.generate import commands, elsewhere, spaces
from tuner import __version__

NAVIGATION = {
    "": ["Start <self>"],
    "How to": ["studies", "commands", "exports", "verify-and-gate", "managed", "optimizer", "recipes"],
    "How it knows": ["how-it-knows", "measurement", *elsewhere.pages_of("benchmarks")],
    "Reference": ["reference/commands", "reference/spaces/index", "spaces", "own-servers", "glossary"],
    "Develop": [*elsewhere.pages_of("CONTRIBUTING.md"), "architecture", "adding-a-server"],
    "More": ["faq", "comparison", *elsewhere.pages_of("SECURITY.md"), *elsewhere.pages_of("CHANGELOG.md")],
}
"""Heading → pages below it, in the order of the sidebar. A page that is nowhere fails the build."""

project = "tuner"
version = release = __version__
extensions = ["myst_parser"]
smartquotes = False  # two dashes are an option
source_suffix = {".md": "markdown"}
# Every heading of the pages can be linked to; one that is not there is a warning, and fails the build.
myst_heading_anchors = 4
myst_enable_extensions = ["fieldlist"]

html_theme = "furo"
html_title = "tuner"
html_static_path = ["generate/static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
templates_path = ["generate/templates"]
html_copy_source = False
html_show_copyright = False
html_use_index = False
# Summaries of what is found are fetched, which browsers refuse to pages that are opened as files.
html_show_search_summary = False


def setup(app: Sphinx) -> None:
    """Write the generated pages before Sphinx looks which there are."""
    docs = Path(app.srcdir)
    commands.write_page(docs / "reference")
    spaces.write_pages(docs / "reference/spaces")
    elsewhere.write_pages(docs)
    app.connect("source-read", _complete)


def _complete(app: Sphinx, page: str, source: list[str]) -> None:
    """Correct the links of a page to what lies elsewhere; give the first one the navigation."""
    source[0] = elsewhere.relink(source[0], Path(app.srcdir) / f"{page}.md")
    if page == app.config.root_doc:
        source[0] += "".join(map(_write_toctree, NAVIGATION, NAVIGATION.values()))


def _write_toctree(caption: str, pages: list[str]) -> str:
    lines = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *pages, "```"]
    return "\n\n" + "\n".join(lines) + "\n"
