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
RIDDLE = re.compile(
    r"(?i)\b(?:of which|so much|for so long|anew|at the most|what follows|is called so|for good|put back"
    r"|in force|passed over|given last|other loads|default against itself|keepers?|leases?"
    r"|the control(?! (?:group|character)))\b"
)
NO_PROSE = re.compile(r"^```.*?^```$|^<.*?>$|^#.*?$|^\|[-|: ]+\|$", re.MULTILINE | re.DOTALL)
CODE, LINK = re.compile(r"(`+).*?\1", re.DOTALL), re.compile(r"!?\[([^]]*)\]\([^)]*\)")
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|>]|\d+\.) )|(?<!\\)\|")
END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[\"(*_]*(?:[A-Z0-9]|tuner\b))")


def read_page(path: Path) -> Iterator[str]:
    """Yield paragraphs, items and cells of a page; code, headings and addresses are none."""
    yield from BLOCK.split(LINK.sub(r"\1", CODE.sub("CODE", NO_PROSE.sub("\n\n", path.read_text()))))


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
    """Yield the text of every error; a value in it counts as one word."""
    for path in (*sorted((ROOT / "tuner").rglob("*.py")), *sorted((ROOT / "adapters").rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith(("Error", "problem")):
                for text in node.args:
                    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
                    yield "".join(
                        str(each.value) if isinstance(each, ast.Constant) else "X" for each in parts
                    )


PAGES = {
    str(path.relative_to(ROOT)): path
    for folder in (".", "docs", "benchmarks")
    for path in (ROOT / folder).glob("*.md")
    if path.name != "optimizer-table.md"  # a program writes it
}
SPACES = {str(path.relative_to(ROOT)): path for path in ROOT.glob("search_spaces/**/*.yaml")}
PLACES = sorted({*PAGES, *SPACES, "help", "errors"})


def find_faults(text: str) -> Iterator[str]:
    """Yield each sentence that a reader would have to read twice."""
    for sentence in (" ".join(each.split()) for each in END.split(text.strip())):
        is_long = len(re.findall(r"\S*\w\S*", sentence)) > LONGEST
        if is_long or RIDDLE.search(sentence) or (OPENING.match(sentence) and "?" not in sentence):
            yield sentence


@pytest.mark.parametrize("place", PLACES)
def test_every_sentence_is_in_plain_words(place: str):
    if place in PAGES:
        texts = read_page(PAGES[place])
    elif place in SPACES:
        texts = read_space(yaml.safe_load(SPACES[place].read_text()))
    else:
        texts = read_help() if place == "help" else read_errors()

    assert "\n".join(fault for text in texts for fault in find_faults(text)) == ""


def test_an_entry_of_the_changelog_has_20_words():
    entries = re.findall(r"^- (.*(?:\n  .*)*)", PAGES["CHANGELOG.md"].read_text(), re.MULTILINE)

    assert [entry for entry in entries if len(entry.split()) > 20] == []
