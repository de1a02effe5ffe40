"""The site of the documentation: Sphinx reads docs/*.md with MyST, Furo is the theme; `make docs` builds it.

Pages are plain Markdown, as a forge shows them, so that what only a site has stands here: the navigation, the
reference (docs/generate), and pages that lie elsewhere in the repository.
"""

import os
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.generate import advice, commands, elsewhere, python_api, spaces, study_file
from tuner import __version__

NAVIGATION = {
    "": ["Start <self>", "install"],
    "Tutorials": [
        "tutorial-first-study",
        "tutorial-nginx-tls",
        "tutorial-php",
        "tutorial-my-traffic",
        "tutorial-several-hosts",
    ],
    "How-to": [
        "advise",
        "studies",
        "commands",
        "managed",
        "exports",
        "roll-back",
        "resume",
        "verify",
        "ci-gate",
        "containers",
        "workers",
        "corpus",
        "own-servers",
        "python",
        "optimizer",
        "recipes",
        "troubleshooting",
    ],
    "Reference": [
        "reference/study-file",
        "reference/commands",
        "exit-codes",
        "json-output",
        "reference/python",
        "reference/spaces/index",
        "reference/advice",
        "spaces",
        "glossary",
    ],
    "Explanation": ["how-it-knows", "measurement", "hints", *elsewhere.pages_of("benchmarks")],
    "Develop": [*elsewhere.pages_of("CONTRIBUTING.md"), "architecture", "adding-a-server"],
    "More": ["faq", "comparison", *elsewhere.pages_of("SECURITY.md"), *elsewhere.pages_of("CHANGELOG.md")],
}
"""Heading → pages below it, in the order of the sidebar. A page that is nowhere fails the build."""

SOUGHT = {
    "Ubuntu": "install#ubuntu",
    "confidence interval": "glossary#measuring",
    "percentile": "glossary#measuring",
    "resume": "resume",
    "continue": "resume",
    "roll back": "roll-back",
    "rollback": "roll-back",
    "undo": "roll-back",
    "SLO": "recipes#meet-an-slo",
    "upstream": "studies#put-servers-behind-each-other",
}
"""What people search for → the page, and its heading, that they find first."""

REPOSITORY = os.environ.get("REPOSITORY", "").rstrip("/")
"""Address of the forge, such as https://forge.example/owner/tuner; with it, pages link to their source."""

project = "tuner"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
default_role = "literal"  # what docstrings have between backquotes
add_module_names = False
autodoc_class_signature = "separated"  # nobody makes a result
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
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
# Names of versions whose sites lie beside this one, in folders of these names.
html_context = {"versions": os.environ.get("VERSIONS", "").split()}
# Summaries of what is found are fetched, which browsers refuse to pages that are opened as files.
html_show_search_summary = False


def setup(app: Sphinx) -> None:
    """Write the generated pages before Sphinx looks which there are."""
    docs = Path(app.srcdir)
    advice.write_page(docs / "reference")
    commands.write_page(docs / "reference")
    study_file.write_page(docs / "reference")
    python_api.write_page(docs / "reference")
    spaces.write_pages(docs / "reference/spaces")
    elsewhere.write_pages(docs)
    app.connect("source-read", _complete)
    app.connect("autodoc-process-docstring", _keep_whole, priority=400)  # before napoleon
    app.connect("doctree-read", _write_colons)
    app.connect("doctree-read", _name_sought)
    app.connect("html-page-context", _link_source)


def _complete(app: Sphinx, page: str, source: list[str]) -> None:
    """Correct the links of a page to what lies elsewhere; give the first one the navigation."""
    source[0] = elsewhere.relink(source[0], Path(app.srcdir) / f"{page}.md")
    if page == app.config.root_doc:
        source[0] += "".join(map(_write_toctree, NAVIGATION, NAVIGATION.values()))


def _keep_whole(
    _app: Sphinx, what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Name no type before the first colon: napoleon takes what stands before that for one."""
    if what in {"attribute", "property"} and lines:
        lines[0] = f": {lines[0]}"


def _write_colons(_: Sphinx, tree: nodes.document) -> None:
    """Write a colon between an argument and its meaning, where Sphinx has two dashes for smart quotes."""
    for text in [each for each in tree.findall(nodes.Text) if each == " -- "]:
        text.parent.replace(text, nodes.Text(": "))


def _name_sought(app: Sphinx, tree: nodes.document) -> None:
    """Give a page the words with which people search for it."""
    places = {word: place.partition("#") for word, place in SOUGHT.items()}
    entries = [
        ("single", word, heading, "main", None)
        for word, (page, _, heading) in places.items()
        if page == app.env.docname
    ]
    if entries:
        tree.insert(0, addnodes.index(entries=entries))


def _link_source(
    _app: Sphinx, page: str, _template: str, context: dict[str, object], _tree: nodes.document | None
) -> None:
    """Let a page link to the file from which it is made, where somebody can edit it."""
    if REPOSITORY and (source := elsewhere.source_of(page)):
        context["theme_source_edit_link"] = f"{REPOSITORY}/edit/main/{source}"


def _write_toctree(caption: str, pages: list[str]) -> str:
    lines = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *pages, "```"]
    return "\n\n" + "\n".join(lines) + "\n"
