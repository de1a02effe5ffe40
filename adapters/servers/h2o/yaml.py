"""Find the settings at the top of a YAML file with their places in the text, and change them there.

As h2o reads it, a key may be given again, and `!file PATH` stands for what is in another file.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import yaml

from tuner.errors import TargetError
from tuner.ports import Files

FILE = "!file"
MERGE = "<<"
# h2o is started in this folder, where relative paths begin.
_START = PurePosixPath("/")

Plain = str | list["Plain"] | dict[str, "Plain"]


class Document:
    """A YAML file that is one mapping, with the files that it includes."""

    def __init__(self, files: Files, path: PurePosixPath) -> None:
        """Read it. Raises TargetError naming a file that is no YAML, or where it is no such mapping."""
        self._files = files
        self._text = files[path].decode(errors="replace")
        self.wanted: dict[PurePosixPath, None] = {}
        """Included files that are not among the given ones."""
        root = self._compose(path)
        if not isinstance(root, yaml.MappingNode) or not root.value:
            raise TargetError(f"{path}: this file sets nothing. Correct the file until `h2o -t` accepts it.")
        self._root = root
        plain = self._plain(root, ())
        self._said = plain if isinstance(plain, dict) else {}

    def _compose(self, path: PurePosixPath) -> yaml.Node | None:
        try:
            return yaml.compose(self._files[path].decode(), Loader=yaml.SafeLoader)
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            reason = " ".join(str(error).split())
            raise TargetError(
                f"{path}: this file is no YAML: {reason}. Correct the file until `h2o -t` accepts it."
            ) from error

    def _plain(self, node: yaml.Node, within: tuple[PurePosixPath, ...]) -> Plain:
        """Return what a node says; a key that is given again has all its values, as in a list."""
        if node.tag == FILE and isinstance(node, yaml.ScalarNode):
            path = _START / node.value
            if path not in self._files:
                self.wanted[path] = None
            elif path not in within and (inner := self._compose(path)) is not None:
                return self._plain(inner, (*within, path))
        elif isinstance(node, yaml.MappingNode):
            found: dict[str, list[Plain]] = {}
            for key, value in self._pairs(node, within):
                found.setdefault(key, []).append(value)
            return {key: values if len(values) > 1 else values[0] for key, values in found.items()}
        elif isinstance(node, yaml.SequenceNode):
            return [self._plain(value, within) for value in node.value]
        return str(node.value)

    def _pairs(
        self, node: yaml.MappingNode, within: tuple[PurePosixPath, ...]
    ) -> Iterator[tuple[str, Plain]]:
        for key, inner in node.value:
            value = self._plain(inner, within)
            merged = value if isinstance(value, list) else [value]
            if key.value == MERGE and all(isinstance(each, dict) for each in merged):
                yield from (pair for each in merged if isinstance(each, dict) for pair in each.items())
            else:
                yield str(key.value), value

    def read(self) -> dict[str, Plain]:
        """Give what it says, scalars as they are written."""
        return self._said

    def find_values(self) -> dict[str, str]:
        """Give those settings whose value is one word in its own place, once, or `{KEY: WORD}`."""
        found = self.read()
        return {name: join_words(found[name]) for name in self._find_places()}

    def has(self, name: str) -> bool:
        return name in self.read()

    def change(self, values: Mapping[str, str]) -> bytes:
        """Put words in the place of others, new settings first; the rest stays byte for byte."""
        text = self._text
        places = self._find_places()
        replaced = [(*places[name], value) for name, value in values.items() if name in places]
        for begin, end, value in sorted(replaced, reverse=True):
            text = text[:begin] + value + text[end:]
        added = {name: value for name, value in values.items() if name not in places}
        mark = self._root.value[0][0].start_mark
        return (text[: mark.index] + self._write_new(added, mark.column) + text[mark.index :]).encode()

    def _write_new(self, added: Mapping[str, str], column: int) -> str:
        if self._root.flow_style:
            return "".join(f"{name}: {value}, " for name, value in added.items())
        end_of_line = ("\r\n" if "\r\n" in self._text else "\n") + " " * column
        return "".join(f"{name}: {value}{end_of_line}" for name, value in added.items())

    def _find_places(self) -> dict[str, tuple[int, int]]:
        """Find where the values begin and end that are one word, or a mapping of one."""
        found: dict[str, tuple[int, int]] = {}
        for key, node in self._root.value:
            end = _find_end(key, node)
            if end is not None and not isinstance(self._said.get(key.value), list | None):
                found[key.value] = (node.start_mark.index, end)
        return found


def _find_end(key: yaml.Node, node: yaml.Node) -> int | None:
    """Find where a value of one word ends; None for another value, and an alias, whose place is elsewhere."""
    if node.start_mark.index < key.end_mark.index or node.tag == FILE:
        return None
    if isinstance(node, yaml.MappingNode) and len(node.value) == 1:
        inner = _find_end(*node.value[0]) if isinstance(node.value[0][1], yaml.ScalarNode) else None
        # The mark behind a block is where the next one begins.
        return node.end_mark.index if inner is not None and node.flow_style else inner
    is_plain = isinstance(node, yaml.ScalarNode) and node.style not in {"|", ">"}
    return node.end_mark.index if is_plain else None


def join_words(value: Plain) -> str:
    """Return a word, or a mapping of one as it is written in one line."""
    if isinstance(value, dict):
        return "".join(f"{{{key}: {word}}}" for key, word in value.items())
    return str(value)
