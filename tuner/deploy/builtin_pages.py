"""The built-in contents, made here and the same everywhere: texts, pages, images, and a program's page."""

import hashlib
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from html import escape

from tuner.study.loads.builtin_loads import GALLERY, HTML, IMAGE_BYTES, INDEX, PROGRAM, TINY

TINY_TEXT = b"It is up, and says so in forty-four bytes.\r\n"
HTML_BYTES = 4300
SECTIONS = 7
BUILTIN_PAGE = b"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>A page to measure</title>
<style>
body { font-family: sans-serif; margin: 4em auto; max-width: 36em; }
</style>
</head>
<body>
<h1>A page to measure</h1>
<p>tuner serves this page from a private instance of the web server while it
looks for settings that serve it better. It is about as long as the page that
web servers show after installation, so results can be compared with
what others have published.</p>
<p>It never changes: every response has the same length, and a response of
another length is counted as a failure.</p>
</body>
</html>
"""
"""As long as nginx's index.html (612 to 615 bytes, by version): the page of most published comparisons."""
HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
</head>
<body>
"""
ARTICLES = 120
LISTED = 10
"""Of the articles, the last ones."""
FILLER = "What is measured is the way from the socket through the program to the database and back. "

SCRIPT = b"""\
<?php
$database = new SQLite3(__DIR__ . '/page.sqlite', SQLITE3_OPEN_READONLY);
$articles = $database->query(
    'SELECT number, title, length(body) AS size FROM article ORDER BY number DESC LIMIT 10'
);
?>
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>A page of a program to measure</title>
</head>
<body>
<h1>Articles</h1>
<ul>
<?php while ($article = $articles->fetchArray(SQLITE3_ASSOC)): ?>
<li><?= "$article[number]: " . htmlspecialchars($article['title']) ?>, <?= $article['size'] ?> characters</li>
<?php endwhile ?>
</ul>
</body>
</html>
"""
"""PHP leaves out the end of line right behind `?>`."""


def title_of(number: int) -> str:
    """Return the title of an article of the database."""
    return f"Article {number:03} & what it is about"


def body_of(number: int) -> str:
    """Return the text of an article; they differ in length."""
    return FILLER * (4 + number % 3)


def make_database() -> bytes:
    """Make the database file: some 60 KB, as in the experiment that this page is taken from."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE TABLE article (number INTEGER PRIMARY KEY, title TEXT, body TEXT)")
        rows = ((number, title_of(number), body_of(number)) for number in range(1, ARTICLES + 1))
        connection.executemany("INSERT INTO article VALUES (?, ?, ?)", rows)
        connection.commit()
        return connection.serialize()
    finally:
        connection.close()


def expect_page() -> bytes:
    """Return what the program sends, byte for byte."""
    head, _, tail = SCRIPT.decode().partition("?>\n")[2].partition("<?php while")
    tail = tail.partition("<?php endwhile ?>\n")[2]
    rows = (
        f"<li>{number}: {escape(title_of(number))}, {len(body_of(number))} characters</li>\n"
        for number in range(ARTICLES, ARTICLES - LISTED, -1)
    )
    return "".join((head, *rows, tail)).encode()


def make_article() -> bytes:
    """Make an HTML page of HTML_BYTES: headings and paragraphs, the last one as long as there is room."""
    sections = (f"<h2>Part {number}</h2>\n<p>{body_of(number)}</p>\n" for number in range(1, SECTIONS + 1))
    begun = f"{HEAD.format(title='An article to measure')}{''.join(sections)}<h2>The rest</h2>\n<p>"
    tail = "</p>\n</body>\n</html>\n"
    room = HTML_BYTES - len(begun) - len(tail)
    return f"{begun}{(FILLER * room)[:room]}{tail}".encode()


def make_gallery() -> bytes:
    """Make the HTML page that shows all images."""
    images = "".join(f'<img src="{path}" alt="{size} bytes">\n' for path, size in IMAGE_BYTES.items())
    return f"{HEAD.format(title='Images to measure')}{images}</body>\n</html>\n".encode()


def make_image(path: str) -> bytes:
    """Make what stands for an image: bytes that no compression makes shorter, as a JPEG's are."""
    return hashlib.shake_256(path.encode()).digest(IMAGE_BYTES[path])


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinPage:
    """One page, and the files that it is made of."""

    body: bytes
    """What a correct response holds."""
    files: Mapping[str, bytes]


def _make_file(path: str, make: Callable[[], bytes]) -> BuiltinPage:
    """Return a page that is a file and served as it is."""
    body = make()
    return BuiltinPage(body=body, files={path.lstrip("/"): body})


def _make_program() -> BuiltinPage:
    files = {PROGRAM.lstrip("/"): SCRIPT, "page.sqlite": make_database()}
    return BuiltinPage(body=expect_page(), files=files)


BUILTIN_PAGES: Mapping[str, Callable[[], BuiltinPage]] = {
    INDEX: partial(_make_file, INDEX, lambda: BUILTIN_PAGE),
    PROGRAM: _make_program,
    TINY: partial(_make_file, TINY, lambda: TINY_TEXT),
    HTML: partial(_make_file, HTML, make_article),
    GALLERY: partial(_make_file, GALLERY, make_gallery),
    **{path: partial(_make_file, path, partial(make_image, path)) for path in IMAGE_BYTES},
}
"""By the path that is requested."""
