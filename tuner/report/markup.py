"""The templates' environment, and how foreign text comes into them.

Every string may come from a log or a configuration. HTML is escaped by Jinja2, JSON by `embed`, because
`</script>` ends a script wherever it stands.
"""

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from tuner.report.figures.theme import COLOURS
from tuner.report.wording import EXACT, make_lines_printable, say_number

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SCRIPT = "plotly.min.js"
"""File beside a page that draws its figures; the plotly package's own."""


SCRIPT_TAG = f'<script src="{SCRIPT}" defer></script>'


def read_script() -> str:
    """Return the script that draws figures, as the installed plotly package has it (4.8 MB)."""
    return (files("plotly") / "package_data" / SCRIPT).read_text(encoding="utf-8")


def load_templates() -> "Environment":
    """Return the environment of the templates beside this module."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("tuner.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["breakable"] = make_breakable
    environment.filters["code"] = mark_code
    environment.filters["counted"] = lambda rows, what: say_number(len(rows), what)
    environment.filters["embed"] = embed
    environment.filters["exact"] = keep_exact
    environment.globals["colours"] = dict(COLOURS)
    environment.globals["pairs_of_colours"] = dict(COLOURS.values())
    environment.globals["script_tag"] = Markup(SCRIPT_TAG)  # noqa: S704 - our own
    return environment


def render_page(name: str, **values: object) -> str:
    """Render a template in which no sign steers a terminal or turns the direction of writing."""
    return make_lines_printable(load_templates().get_template(name).render(**values))


def embed_script(page: str) -> str:
    """Return a page that brings the script which draws its figures, instead of a file beside it."""
    # No foreign text has such a tag: there its signs are escaped.
    return page.replace(SCRIPT_TAG, f"<script>{read_script()}</script>")


def make_breakable(name: str) -> "Markup":
    """Allow a line break after each part of a name, such as net.core.somaxconn; the text stays the same."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"([._])(?=\w)", r"\1<wbr>", str(escape(name))))  # noqa: S704 - escaped


def mark_code(text: str) -> "Markup":
    """Write what stands between backticks as code, without them."""
    from markupsafe import Markup, escape

    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def keep_exact(text: str) -> "Markup":
    """Write text that is copied out of a page: browsers read a plain carriage return as a line end."""
    from markupsafe import Markup, escape

    kept = "".join(f"&#{ord(sign)};" if sign in EXACT else sign for sign in str(escape(text)))
    return Markup(kept)  # noqa: S704 - escaped


def embed(value: object) -> "Markup":
    """Write plain data as JSON that may stand inside a script element."""
    from markupsafe import Markup

    text = json.dumps(value, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - no sign is left that ends the element
