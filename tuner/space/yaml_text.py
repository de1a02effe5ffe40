"""Reads YAML into plain data, with the line of every key and value.

Parser events are read and no objects constructed. No scalar becomes a boolean or a date here: an unquoted one
is marked `Plain`, and read by the kind of the value (`on` is true for a bool, a text in a choice; `1.20` is
a version, not 1.2).
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import yaml

from tuner.errors import UsageError
from tuner.space.problems import Place, Refused, problem, quote

LARGEST_FILE_BYTES = 256 * 1024
DEEPEST_NESTING = 12

A_SPACE = "Begin with `space:`, `server:` and `parameters:`"

Path = tuple[str | int, ...]
Data = str | list["Data"] | dict[str, "Data"]


class Plain(str):
    """A scalar that stood without quotes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One source of a space: its data, and the line of each key path when it came from a file."""

    source: str
    data: Mapping[str, object]
    lines: Mapping[Path, int]

    def below(self, path: Path) -> "Document":
        """Return the mapping at a path as a document of its own, which keeps its lines.

        Raises UsageError when there is no mapping.
        """
        data: object = self.data
        for part in path:
            if isinstance(data, Mapping) and isinstance(part, str):
                data = data.get(part)
            elif isinstance(data, list) and isinstance(part, int) and part < len(data):
                data = data[part]
            else:
                data = None
        if not isinstance(data, Mapping):
            raise problem(self.place(path), f"{quote(data)} does not hold `key: value`", "Write a mapping")
        lines = {key[len(path) :]: line for key, line in self.lines.items() if key[: len(path)] == path}
        return Document(source=self.source, data=data, lines=lines)

    def place(self, path: Path) -> Place:
        """Return where a path of keys stands; the nearest known one above it if it does not."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        return Place(source=self.source, line=self.lines.get(known), key=_join(path))

    @contextmanager
    def placing(self, *path: str | int) -> Iterator[None]:
        """Say where it is of whatever is refused within, below this path. Raises UsageError."""
        try:
            yield
        except Refused as refused:
            raise problem(self.place((*path, *refused.at)), refused.wrong, refused.remedy) from refused


def read_yaml(content: bytes, source: str, *, begin: str = A_SPACE) -> Document:
    """Read one YAML mapping. Raises UsageError for whatever is not one.

    Args:
        content: of the file.
        source: the file as the user named it.
        begin: what such a file begins with, for who has none of it yet.
    """
    if len(content) > LARGEST_FILE_BYTES:
        raise problem(source, f"the file is larger than {LARGEST_FILE_BYTES // 1024} KiB", "Split it")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wrong = f"byte {content[error.start]:#04x} is not UTF-8"
        raise problem(Place(source=source, line=line), wrong, "Save the file as UTF-8") from error
    try:
        return _Reader(source, text, begin).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(source=source, line=mark.line + 1 if mark else None)
        if mark is not None and _is_tab(text, mark):
            raise problem(
                place, "the file is not valid YAML: a line begins with a tab", "Indent with spaces"
            ) from error
        raise problem(
            place, (f"the file is not valid YAML: {error.problem or error.context}"), _LOOK
        ) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # e.g. "\UFFFFFFFF" in the Python scanner
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise problem(source, f"the file is not valid YAML: {what}", _LOOK) from error


BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line of YAML."""
_LOOK = "Check indentation, quotes and brackets in that line and in the line before"


def _is_tab(text: str, mark: yaml.Mark) -> bool:
    """Return whether a mark is at a tab before the first letter of its line."""
    lines = BREAK.split(text)
    before = lines[mark.line][: mark.column + 1] if mark.line < len(lines) else ""
    return before.isspace() and "\t" in before


class _Reader:
    """Reads the events of one document as nested data."""

    def __init__(self, source: str, text: str, begin: str) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is eight times as fast
        self._events: Iterator[yaml.Event] = iter(yaml.parse(text, Loader=loader))
        self._source = source
        self._begin = begin
        self._lines: dict[Path, int] = {}

    def document(self) -> Document:
        structural = (yaml.StreamStartEvent, yaml.DocumentStartEvent)
        first = next(event for event in self._events if not isinstance(event, structural))
        if isinstance(first, yaml.StreamEndEvent):
            raise problem(self._source, "the file is empty", self._begin)
        if not isinstance(first, yaml.MappingStartEvent):
            wrong = "the file does not hold `key: value` lines at its top"
            raise problem(Place(source=self._source, line=_line(first)), wrong, self._begin)
        self._refuse_marks(first, ())
        data = self._mapping(())
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                raise self._wrong(event, (), "a second document begins", "Keep one document in each file")
        return Document(source=self._source, data=data, lines=self._lines)

    def _refuse_marks(self, event: yaml.Event, path: Path) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            wrong = "anchors and aliases (& and *) are not supported"
            raise self._wrong(event, path, wrong, "Write the value itself in each place")
        tag = getattr(event, "tag", None)
        if tag not in {None, "!"}:  # a quoted scalar's implied tag
            raise self._wrong(event, path, f"the tag {tag} is not supported", "Write the value without a tag")

    def _value(self, event: yaml.Event, path: Path) -> Data:
        self._refuse_marks(event, path)
        if len(path) > DEEPEST_NESTING:
            raise self._wrong(event, path[:3], "values are nested too deeply", "Use fewer levels")
        if isinstance(event, yaml.ScalarEvent):
            return event.value if event.style else Plain(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        return self._mapping(path)

    def _sequence(self, path: Path) -> list[Data]:
        items: list[Data] = []
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            here = (*path, len(items))
            self._lines[here] = _line(event)
            items.append(self._value(event, here))
        return items

    def _mapping(self, path: Path) -> dict[str, Data]:
        entries: dict[str, Data] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if not isinstance(event, yaml.ScalarEvent):
                wrong = "a key is not a plain word"
                raise self._wrong(event, path, wrong, "Quote a key that contains [ ] { } & or *")
            key = str(self._value(event, path))
            here = (*path, key)
            if key in entries:
                wrong = f"{quote(key)} is given a second time (first at line {self._lines[here]})"
                raise self._wrong(event, path, wrong, "Keep one of these keys")
            value = next(self._events)
            self._lines[here] = _line(value if isinstance(value, yaml.ScalarEvent) else event)
            entries[key] = self._value(value, here)
        return entries

    def _wrong(self, event: yaml.Event, path: Path, wrong: str, remedy: str) -> UsageError:
        place = Place(source=self._source, line=_line(event), key=_join(path))
        return problem(place, wrong, remedy)


def _join(path: Path) -> str:
    words = map(str, path)
    return ".".join(word if word.isprintable() else repr(word) for word in words)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
