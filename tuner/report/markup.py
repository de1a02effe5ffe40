"""The templates' environment, and how foreign text comes into them.

Every string may come from a log or a configuration. HTML and SVG are escaped by Jinja2, JSON by `embed`,
because `</script>` ends a script wherever it stands.
"""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tuner.report.wording import make_lines_printable

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def load_templates() -> "Environment":
    """Return the environment of the templates beside this module."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tuner.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["breakable"] = make_breakable
    return environment


def render_page(name: str, **values: object) -> str:
    """Render a template in which no sign steers a terminal or turns the direction of writing."""
    return make_lines_printable(load_templates().get_template(name).render(**values))


def make_breakable(name: str) -> "Markup":
    """Allow a line break after each part of a name, such as net.core.somaxconn; the text stays the same."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"([._])(?=\w)", r"\1<wbr>", str(escape(name))))  # noqa: S704 - escaped


def embed(texts: Mapping[int, str]) -> str:
    """Write texts as JSON that may stand inside a script element."""
    text = json.dumps({number: make_lines_printable(each) for number, each in texts.items()})
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
