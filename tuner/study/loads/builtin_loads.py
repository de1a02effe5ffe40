"""Built-in contents by name: the pages that private servers serve, and how they are asked for.

`tuner.deploy.builtin_pages` makes the pages.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tuner.ports import RequestKind
from tuner.space.problems import problem, quote

BUILTIN = "builtin"
"""The `content:` of a study that serves no document root of its own."""
LEAST_IMAGE_BYTES, MOST_IMAGE_BYTES = 10_000, 1_000_000
IMAGES = 20
SKEW = 1.6
"""Of the images' sizes on a logarithmic scale: 1 spreads them evenly, more makes most of them small."""


def _size_images() -> Mapping[str, int]:
    """Return path → bytes of each image, the smallest first; no two are alike in size."""
    ratio = MOST_IMAGE_BYTES / LEAST_IMAGE_BYTES
    sizes = (round(LEAST_IMAGE_BYTES * ratio ** ((index / (IMAGES - 1)) ** SKEW)) for index in range(IMAGES))
    return {f"/images/{number:02}.jpg": size for number, size in enumerate(sizes, start=1)}


IMAGE_BYTES: Mapping[str, int] = MappingProxyType(_size_images())
"""Most are some tens of kilobytes, a few are large: half of all bytes are in the two largest."""
TINY, INDEX, HTML, GALLERY, PROGRAM = "/tiny.txt", "/index.html", "/page.html", "/images.html", "/page.php"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinLoad:
    """One built-in content: what is asked for, and why anybody would."""

    name: str
    path: str
    """What is asked for; of a mix, the page that is waited for."""
    title: str
    why: str
    requests: tuple[RequestKind, ...] = ()
    """The mix; empty for the path alone."""
    is_program: bool = False
    """Whether a program behind the web server makes it."""


BUILTIN_LOADS: Mapping[str, BuiltinLoad] = MappingProxyType(
    {
        each.name: each
        for each in (
            BuiltinLoad(
                name="index",
                path=INDEX,
                title="an HTML page of 615 bytes",
                why="As large as the page of most published comparisons.",
            ),
            BuiltinLoad(
                name="tiny",
                path=TINY,
                title="a text of 44 bytes",
                why="As small as the response to a health check: most work is connections and headers.",
            ),
            BuiltinLoad(
                name="html",
                path=HTML,
                title="an HTML page of 4,300 bytes",
                why="As large as an article without its images.",
            ),
            BuiltinLoad(
                name="images",
                path=GALLERY,
                title=f"an HTML page and its {IMAGES} images of 10 KB to 1 MB, 3.4 MB in all",
                why="Requested as by browsers with an empty cache: each file once per page view.",
                requests=tuple(RequestKind(path=path) for path in (GALLERY, *IMAGE_BYTES)),
            ),
            BuiltinLoad(
                name="php",
                path=PROGRAM,
                title="a PHP page of 819 bytes, made from an SQLite database of 70 KB",
                why="A PHP program runs for each request, in a PHP server behind the web server.",
                is_program=True,
            ),
        )
    }
)


def find_builtin_load(name: str, where: str) -> BuiltinLoad:
    """Return a built-in content by its name. Raises UsageError naming those that there are."""
    if name not in BUILTIN_LOADS:
        known = ", ".join(BUILTIN_LOADS)
        raise problem(where, f"there is no built-in content {quote(name)}", f"Known are {known}.")
    return BUILTIN_LOADS[name]
