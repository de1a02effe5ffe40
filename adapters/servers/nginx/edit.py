"""Change single words of nginx's configuration files; everything else stays byte for byte."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from tuner.adapters.servers.nginx.syntax import ENCODING, Directive
from tuner.errors import ConfigRejected
from tuner.ports import Files

# What is one word for nginx, whatever stands around it.
_PLAIN = re.compile(r"[A-Za-z0-9_./:=-]+")
_BLANKS = " \t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A piece of a file, and what comes in its place."""

    path: PurePosixPath
    begin: int
    end: int
    text: str


def apply_edits(edits: Iterable[Edit], files: Files) -> dict[PurePosixPath, bytes]:
    """Give the files that change."""
    by_path: dict[PurePosixPath, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    return {
        path: _apply(some, files[path].decode(ENCODING)).encode(ENCODING) for path, some in by_path.items()
    }


def change_arguments(directive: Directive, arguments: Sequence[str], text: str) -> list[Edit]:
    """Replace, add and drop arguments of a directive; those that stay keep their quotes and comments."""
    old, new = directive.words, [directive.name, *arguments]
    path = directive.path
    edits: list[Edit] = []
    matcher = SequenceMatcher(None, [word.value for word in old], new, autojunk=False)
    for what, first, last, new_first, new_last in matcher.get_opcodes():
        if what == "equal":
            continue
        replaced = min(last - first, new_last - new_first)
        edits += [
            Edit(path=path, begin=word.begin, end=word.end, text=join_words([value]))
            for word, value in zip(old[first:last], new[new_first:new_last], strict=False)
        ]
        edits += [
            Edit(path=path, begin=_skip_blanks_back(text, word.begin), end=word.end, text="")
            for word in old[first + replaced : last]
        ]
        if added := new[new_first + replaced : new_last]:
            place = old[first + replaced - 1].end
            edits.append(Edit(path=path, begin=place, end=place, text=f" {join_words(added)}"))
    return edits


def add_directive(block: Directive, words: Sequence[str], text: str) -> Edit:
    """Add a directive at the end of a block."""
    indent = "    "
    # One that an include brought stands in another file.
    if own := [child for child in block.children if child.path == block.path]:
        begin = _line_begin(text, own[0].begin)
        lead = text[begin : own[0].begin]
        indent = lead if begin > block.begin and not lead.strip(_BLANKS) else indent
    return _add_line(block.path, text, block.body_end or 0, indent, words)


def add_before(directive: Directive, words: Sequence[str], text: str) -> Edit:
    """Add a directive before another one."""
    return _add_line(directive.path, text, directive.begin, "", words)


def remove_directive(directive: Directive, text: str) -> Edit:
    """Take a directive out, and its line when nothing else stands there."""
    begin, end = _line_begin(text, directive.begin), text.find("\n", directive.end) + 1
    if end and not (text[begin : directive.begin] + text[directive.end : end]).strip(_BLANKS + "\r\n"):
        return Edit(path=directive.path, begin=begin, end=end, text="")
    return Edit(path=directive.path, begin=directive.begin, end=directive.end, text="")


def join_words(words: Sequence[str]) -> str:
    """Write words side by side. Raises ConfigRejected for what nginx would not read as just these words."""
    for word in words:
        if not _PLAIN.fullmatch(word):
            raise ConfigRejected(
                f"nginx: {word[:80]!r} is not one plain word, so tuner does not write this value to a file."
            )
    return " ".join(words)


def _add_line(path: PurePosixPath, text: str, place: int, indent: str, words: Sequence[str]) -> Edit:
    line = f"{join_words(words)};"
    begin = _line_begin(text, place)
    if text[begin:place].strip(_BLANKS):
        return Edit(path=path, begin=place, end=place, text=f"{line} ")
    end_of_line = "\r\n" if text[:begin].endswith("\r\n") else "\n"
    return Edit(path=path, begin=begin, end=begin, text=f"{indent}{line}{end_of_line}")


def _apply(edits: Sequence[Edit], text: str) -> str:
    pieces: list[str] = []
    place = 0
    for edit in sorted(edits, key=lambda edit: edit.begin):
        pieces += [text[place : edit.begin], edit.text]
        place = edit.end
    return "".join((*pieces, text[place:]))


def _line_begin(text: str, place: int) -> int:
    return text.rfind("\n", 0, place) + 1


def _skip_blanks_back(text: str, place: int) -> int:
    while place and text[place - 1] in _BLANKS:
        place -= 1
    return place
