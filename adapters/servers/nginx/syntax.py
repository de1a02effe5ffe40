"""Read nginx's configuration syntax strictly: directives as a tree, with their words and places in the text.

Files that are rewritten by it go into force at once. So what nginx would not read is refused, and nothing is
guessed.

A text is the file's bytes read as Latin-1: a place in it is a place in the file, and every byte survives.
The rules are those of ngx_conf_read_token (src/core/ngx_conf_file.c).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.errors import TargetError

ENCODING = "latin-1"

# A `}` or a quote inside a word is an ordinary letter, and `${` opens no block.
_TOKEN = re.compile(
    r"""
      [ \t\r\n]+
    | \#[^\n]*
    | (?P<mark>[;{}])
    | (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<word>(?:\\.|\$\{*|[^ \t\r\n;{}"'\#\\$])(?:\\.|\$\{*|[^ \t\r\n;{\\$])*)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"""\\(["'\\trn])""")
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n"}
# The body of a *_by_lua_block is Lua: only its braces outside strings and comments count.
_LUA = re.compile(
    r"""--\[(?P<c>=*)\[.*?\](?P=c)\]|--[^\n]*|\[(?P<s>=*)\[.*?\](?P=s)\]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?P<brace>[{}])""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word of a directive."""

    text: str
    """As it is written, quotes included."""
    begin: int
    end: int

    @property
    def value(self) -> str:
        """What nginx reads."""
        text = self.text[1:-1] if self.text[0] in "\"'" else self.text
        if "\\" not in text:
            return text
        return _ESCAPED.sub(lambda escaped: _ESCAPES.get(escaped[1], escaped[1]), text)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Directive:
    """One directive, with what is in its block if it has one; equal to itself alone."""

    path: PurePosixPath
    words: tuple[Word, ...]
    end: int
    """Behind the `;` or the closing brace."""
    body_end: int | None = None
    """Place of the closing brace; None when it is no block."""
    children: tuple["Directive", ...] = ()

    @property
    def name(self) -> str:
        return self.words[0].value

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(word.value for word in self.words[1:])

    @property
    def begin(self) -> int:
        return self.words[0].begin

    def inside(self, name: str) -> tuple["Directive", ...]:
        """Give the directives of this name directly in the block."""
        return tuple(child for child in self.children if child.name == name)

    def walk(self) -> Iterator["Directive"]:
        """Yield all that is inside, at any depth."""
        for child in self.children:
            yield child
            yield from child.walk()


def read_directives(text: str, path: PurePosixPath) -> tuple[Directive, ...]:
    """Read the directives of one file; includes are left as they are.

    Raises TargetError naming file and line where the text is not nginx's syntax.
    """
    levels: list[list[Directive]] = [[]]
    openings: list[tuple[Word, ...]] = []
    words: list[Word] = []
    place = 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise _broken(text, place, path)
        place = token.end()
        if token["quoted"] or token["word"]:
            words.append(Word(text=token[0], begin=token.start(), end=place))
        elif token["mark"] == ";" and words:
            levels[-1].append(Directive(path=path, words=tuple(words), end=place))
            words = []
        elif token["mark"] == "{" and words:
            openings.append(tuple(words))
            levels.append([])
            words = []
            if openings[-1][0].value.endswith("_by_lua_block"):
                place = _find_end_of_lua(text, place, path)
        elif token["mark"] == "}" and openings and not words:
            inside = tuple(levels.pop())
            block = Directive(
                path=path, words=openings.pop(), end=place, body_end=token.start(), children=inside
            )
            levels[-1].append(block)
        elif token["mark"]:
            raise _broken(text, token.start(), path)
    if words or openings:
        raise _broken(text, len(text), path)
    return tuple(levels[0])


def line_of(text: str, place: int) -> int:
    """Count lines from 1."""
    return text.count("\n", 0, place) + 1


def _find_end_of_lua(text: str, place: int, path: PurePosixPath) -> int:
    depth = 1
    for found in _LUA.finditer(text, place):
        depth += {"{": 1, "}": -1}.get(found["brace"] or "", 0)
        if not depth:
            return found.start()
    raise _broken(text, place, path)


def _broken(text: str, place: int, path: PurePosixPath) -> TargetError:
    shown = repr(text[place : place + 40]) if place < len(text) else "the file ends too early"
    unclear = f"{path}:{line_of(text, place)}: this is not nginx's syntax: {shown}."
    return TargetError(f"{unclear} Correct the file until `nginx -t` accepts it.")
