"""Find the settings at the top of a YAML file with their places in the text, and change them there."""

from collections.abc import Mapping
from pathlib import PurePosixPath

import yaml

from tuner.errors import TargetError

Plain = str | list["Plain"] | dict[str, "Plain"]


class Document:
    """A YAML file that is one mapping."""

    def __init__(self, content: bytes, path: PurePosixPath) -> None:
        """Read it. Raises TargetError naming the file where it is no such mapping."""
        try:
            self._text = content.decode()
            root = yaml.compose(self._text, Loader=yaml.SafeLoader)
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            reason = " ".join(str(error).split())
            raise TargetError(
                f"{path}: this is no YAML: {reason}. Correct it until `h2o -t` accepts it."
            ) from error
        if not isinstance(root, yaml.MappingNode) or not root.value:
            raise TargetError(f"{path}: this file sets nothing. Correct it until `h2o -t` accepts it.")
        self._root = root

    def read(self) -> dict[str, Plain]:
        """Give what it says, scalars as they are written."""
        plain = _plain(self._root)
        return plain if isinstance(plain, dict) else {}

    def find_values(self) -> dict[str, str]:
        """Give those settings whose value is one word in its own place, once, or `{KEY: WORD}`."""
        found = self.read()
        return {name: _join(found[name]) for name in self._find_places()}

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
        names = [key.value for key, _ in self._root.value]
        for key, node in self._root.value:
            end = _find_end(key, node)
            if end is not None and names.count(key.value) == 1:
                found[key.value] = (node.start_mark.index, end)
        return found


def _find_end(key: yaml.Node, node: yaml.Node) -> int | None:
    """Find where a value of one word ends; None for another value, and an alias, whose place is elsewhere."""
    if node.start_mark.index < key.end_mark.index:
        return None
    if isinstance(node, yaml.MappingNode) and len(node.value) == 1:
        inner = _find_end(*node.value[0]) if isinstance(node.value[0][1], yaml.ScalarNode) else None
        # The mark behind a block is where the next one begins.
        return node.end_mark.index if inner is not None and node.flow_style else inner
    is_plain = isinstance(node, yaml.ScalarNode) and node.style not in {"|", ">"}
    return node.end_mark.index if is_plain else None


def _join(value: Plain) -> str:
    """Return a word, or a mapping of one as it is written in one line."""
    if isinstance(value, dict):
        return "".join(f"{{{key}: {word}}}" for key, word in value.items())
    return str(value)


def _plain(node: yaml.Node) -> Plain:
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(value) for value in node.value]
    return str(node.value)
