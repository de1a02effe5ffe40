"""YAML for files that people read: keys in their order, texts of several lines as blocks."""

from typing import Any

import yaml

from tuner.report.wording import make_lines_printable


class Unsafe(str):
    """A text that Ansible takes as it is, braces and all: https://docs.ansible.com, Unsafe or raw strings."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes what is indented below its key, and texts of several lines as they are."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        super().increase_indent(flow, indentless=False)

    def analyze_scalar(self, scalar: str) -> Any:  # noqa: ANN401 - as PyYAML has it
        """Allow a block for text with tabs or blanks at line ends: PyYAML does not, YAML 1.2, 8.1.2, does."""
        analysis = super().analyze_scalar(scalar)
        signs = set(scalar) - {"\n", "\t"}
        if scalar and all(sign.isprintable() and (self.allow_unicode or sign.isascii()) for sign in signs):
            analysis.allow_block = True
        return analysis

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def represent_unsafe(self, text: Unsafe) -> yaml.ScalarNode:
        return self.represent_scalar("!unsafe", str(text), style='"')


_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_representer(Unsafe, _Dumper.represent_unsafe)


def dump_yaml(document: Any) -> str:  # noqa: ANN401 - whatever YAML holds
    """Write one document of mappings, lists and scalars; in ASCII where a sign could steer a terminal."""
    text = _dump(document, as_ascii=False)
    return text if text == make_lines_printable(text) else _dump(document, as_ascii=True)


def _dump(document: Any, *, as_ascii: bool) -> str:  # noqa: ANN401 - whatever YAML holds
    return str(yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=not as_ascii, width=1000))
