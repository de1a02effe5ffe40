"""Placeholders in the commands of a study: `{port}`, `{workers}`; `${HOME}` is the shell's own."""

import re
from collections.abc import Mapping, Sequence

_PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z_][\w.-]*)\}", re.ASCII)


def find_placeholders(command: Sequence[str]) -> list[str]:
    """Return the names that a command mentions."""
    return [name for word in command for name in _PLACEHOLDER.findall(word)]


def fill(command: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return a command with its values, word by word. Raises KeyError for a name that has none."""
    return tuple(_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in command)
