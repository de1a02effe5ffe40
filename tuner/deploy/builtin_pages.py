"""The built-in content: a static page, and a page that a PHP program makes of a small SQLite database."""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

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


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinPage:
    """One page, and the files that it is made of."""

    body: bytes
    """What a correct response holds."""
    files: Mapping[str, bytes]


BUILTIN_PAGES: Mapping[str, Callable[[], BuiltinPage]] = {
    "/index.html": lambda: BuiltinPage(body=BUILTIN_PAGE, files={"index.html": BUILTIN_PAGE}),
    "/page.php": lambda: BuiltinPage(
        body=expect_page(), files={"page.php": SCRIPT, "page.sqlite": make_database()}
    ),
}
"""By the path that is requested."""
