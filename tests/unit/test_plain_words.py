"""People read plain words: short sentences, one word for one thing, no riddle as an opening."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from tuner.cli import app

ROOT = Path(__file__).parents[2]
LONGEST = 30
OPENING = re.compile(r"\W*(?:What|Where|Who|Whoever|Of|Behind|Beside) ")
"""Of statements; questions may begin so."""
RIDDLES = re.compile(
    r"(?i)\b(?:of which|so much|for so long|anew|at the most|what follows|is called so|for good|put back|in force"
    r"|passed over|given last|other loads|what .{,30} is worth|default against itself|the control(?! (?:group|character))"
    r"|keepers?|leases?|crews?)\b"
)
NOT_YET: set[str] = set()
"""Pages and spaces that are not written in plain words so far."""
NO_PROSE = re.compile(r"^```.*?^```$|^<.*?>$|^#.*?$|^\|[-|: ]+\|$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|>]|\d+\.) )|(?<!\\)\|")
END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[\"(*_]*[A-Z`0-9])")


def read_page(path: Path) -> Iterator[str]:
    """Yield paragraphs, items and cells of a page; code, headings and addresses are none."""
    text = NO_PROSE.sub("\n\n", path.read_text())
    text = re.sub(r"(`+).*?\1", "code", text, flags=re.DOTALL)
    yield from BLOCK.split(re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text))


def read_space(value: object) -> Iterator[str]:
    """Yield every `why:` and `also:` of a search space."""
    if isinstance(value, dict):
        yield from (text for key, text in value.items() if key in {"why", "also"} and isinstance(text, str))
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from read_space(each)


def read_help() -> Iterator[str]:
    """Yield the help of every command and option."""
    group: Any = typer.main.get_command(app)
    for command in (group, *group.commands.values()):
        helps = (command.help, *(getattr(parameter, "help", None) for parameter in command.params))
        yield from (block for text in helps if text for block in text.split("\n\n"))


def read_errors() -> Iterator[str]:
    """Yield the text of every error that the code raises; a value in it counts as one word."""
    for top in ("tuner", "adapters"):
        for path in (path for path in sorted((ROOT / top).rglob("*.py")) if "/." not in str(path)):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    yield from map(read_string, node.exc.args)


def read_string(node: ast.expr) -> str:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)


PAGES = {str(path.relative_to(ROOT)): path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))}
SPACES = {str(path.relative_to(ROOT)): path for path in ROOT.glob("search_spaces/**/*.yaml")}
PLACES = sorted({*PAGES, *SPACES, "help", "errors"} - NOT_YET)


def find_faults(text: str) -> Iterator[str]:
    """Yield each sentence that a reader would have to read twice."""
    for sentence in (" ".join(each.split()) for each in END.split(text.strip())):
        too_long = len(re.findall(r"\S*\w\S*", sentence)) > LONGEST
        if too_long or RIDDLES.search(sentence) or (OPENING.match(sentence) and "?" not in sentence):
            yield sentence


@pytest.mark.parametrize("place", PLACES)
def test_every_sentence_is_in_plain_words(place: str):
    if place in PAGES:
        texts = read_page(PAGES[place])
    elif place in SPACES:
        texts = read_space(yaml.safe_load(SPACES[place].read_text()))
    else:
        texts = read_help() if place == "help" else read_errors()

    assert [fault for text in texts for fault in find_faults(text)] == []


def test_an_entry_of_the_changelog_has_20_words():
    entries = re.split(r"\n(?=- |#|\n)", PAGES["CHANGELOG.md"].read_text())

    assert [entry for entry in entries if entry.startswith("- ") and len(entry.split()) > 21] == []
