"""The outline of an nginx configuration: which directives it has, in which block, and where in the text.

It serves patches, which a person reads and `nginx -t` checks before they count: so it takes what it
understands, refuses nothing, and follows no include. The server adapter, which rewrites files that go into
force at once, reads the same syntax strictly, as a tree of words, and says where it is wrong. The core
imports no adapter, and an adapter nothing of the core but ports and errors: that is why there are two.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """One directive."""

    context: tuple[str, ...]
    """Names of the blocks around it; empty at the top (nginx calls that `main`)."""
    name: str
    arguments: tuple[str, ...]
    """As written, quotes included."""
    begin: int
    end: int
    """Offsets from the first sign of the name to behind the `;` or the closing brace."""
    body_end: int = -1
    """Offset of the closing brace; -1 when it is no block."""

    @property
    def line(self) -> str:
        return " ".join((self.name, *self.arguments)) + ";"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A word, or one of `;`, `{`, `}`."""

    text: str
    begin: int
    end: int


def read_outline(text: str) -> tuple[Directive, ...]:
    """List all directives, blocks before what they hold; what is cut off at the end is left out."""
    found: list[Directive] = []
    words: list[Token] = []
    blocks: list[tuple[int, tuple[Token, ...]]] = []
    context: tuple[str, ...] = ()
    for token in read_tokens(text):
        if token.text == ";" and words:
            found.append(make_directive(context, words, token.end))
            words = []
        elif token.text == "{" and words:
            blocks.append((len(found), tuple(words)))
            context = (*context, words[0].text)
            words = []
        elif token.text == "}" and blocks:
            index, opening = blocks.pop()
            context = context[:-1]
            found.insert(index, make_directive(context, opening, token.end, token.begin))
            words = []
        elif token.text not in {";", "{", "}"}:
            words.append(token)
    return tuple(found)


def make_directive(
    context: tuple[str, ...], words: "list[Token] | tuple[Token, ...]", end: int, body_end: int = -1
) -> Directive:
    """Put the words of one directive together."""
    return Directive(
        context=context, name=words[0].text, arguments=tuple(word.text for word in words[1:]),
        begin=words[0].begin, end=end, body_end=body_end,
    )  # fmt: skip


def read_tokens(text: str) -> Iterator[Token]:
    """Split a text as ngx_conf_read_token does: blanks separate, # comments, quotes protect."""
    place = 0
    while place < len(text):
        sign = text[place]
        if sign.isspace():
            place += 1
        elif sign == "#":
            place = find_line_end(text, place)
        elif sign in ";{}":
            yield Token(text=sign, begin=place, end=place + 1)
            place += 1
        else:
            end = find_word_end(text, place)
            yield Token(text=text[place:end], begin=place, end=end)
            place = end


def find_line_end(text: str, begin: int) -> int:
    """Find the end of the line."""
    end = text.find("\n", begin)
    return len(text) if end < 0 else end


def find_word_end(text: str, begin: int) -> int:
    """Find the end of the word that begins here."""
    quote = text[begin] if text[begin] in "\"'" else ""
    place = begin + len(quote)
    while place < len(text):
        sign = text[place]
        if sign == "\\":
            place += 2
        elif quote:
            place += 1
            if sign == quote:
                return place
        elif sign == "$" and text[place + 1 : place + 2] == "{":
            closing = text.find("}", place)
            place = len(text) if closing < 0 else closing + 1
        elif sign.isspace() or sign in ";{}":
            return place
        else:
            place += 1
    return min(place, len(text))
