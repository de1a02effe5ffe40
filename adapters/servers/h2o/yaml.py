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

    def find_scalars(self) -> dict[str, str]:
        """Give those settings whose value is one word in its own place, once."""
        found = self.read()
        places = self._find_places()
        return {name: value for name in places if isinstance(value := found[name], str)}

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
        """Find where the values of the scalars begin and end; an alias has its place elsewhere."""
        found: dict[str, tuple[int, int]] = {}
        names = [key.value for key, _ in self._root.value]
        for key, node in self._root.value:
            is_plain = isinstance(node, yaml.ScalarNode) and node.style not in {"|", ">"}
            is_here = node.start_mark.index >= key.end_mark.index
            if is_plain and is_here and names.count(key.value) == 1:
                found[key.value] = (node.start_mark.index, node.end_mark.index)
        return found


def _plain(node: yaml.Node) -> Plain:
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(value) for value in node.value]
    return str(node.value)
