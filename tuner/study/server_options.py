"""The options of a server that the study itself describes: its templates and commands."""

import hashlib
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tuner.kit.placeholders import find_placeholders
from tuner.space.problems import Refused, problem, quote, suggest
from tuner.space.yaml_text import LARGEST_FILE_BYTES

COMMANDS = ("check", "start", "stop", "read_back")
SUFFIX = ".j2"
"""Of a template; the file that it becomes has its name without it."""
DOCUMENT_ROOT = "document_root"
PLACEHOLDERS = ("port", "directory", DOCUMENT_ROOT, "backend", "folder")
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """What a study says of a server besides its name."""

    folder: str
    """Of the study file."""
    templates: Mapping[str, str] = field(default_factory=dict)
    """Name of the file that it becomes → text of the template."""
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """`check`, `start`, `stop`, `read_back` → argv with placeholders; those that are given."""
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Command → where it stands in the study file."""

    @property
    def serves_content(self) -> bool:
        """Return whether the server is told where the study's pages are; otherwise it serves its own."""
        words = (word for command in self.commands.values() for word in command)
        return any(DOCUMENT_ROOT in text for text in (*self.templates.values(), *words))

    def refuse_unknown(self, settings: Collection[str]) -> None:
        """Raise UsageError for a placeholder of a command that is none of these settings."""
        known = (*PLACEHOLDERS, *settings)
        for key, command in self.commands.items():
            for name in find_placeholders(command):
                if name not in known:
                    wrong = f"{{{name}}} is no known placeholder"
                    raise problem(self.places[key], wrong, suggest(name, known))

    def arguments(self) -> dict[str, object]:
        """Return them as arguments of the adapter's class; most take none."""
        return {"templates": self.templates, "folder": self.folder, **self.commands}

    def define(self) -> str:
        """Return all that makes two trials comparable, in one line."""
        texts = (
            f"{name} {hashlib.sha256(text.encode()).hexdigest()}" for name, text in self.templates.items()
        )
        commands = (f"{kind} {shlex.join(argv)}" for kind, argv in self.commands.items())
        return "; ".join((*texts, *commands))


def read_templates(paths: Sequence[str], base: Path) -> Mapping[str, str]:
    """Read templates: name of the file that each becomes → its text. Raises Refused.

    Args:
        paths: as the study gives them.
        base: the folder of the study file, to which they are relative.
    """
    templates: dict[str, str] = {}
    for path in paths:
        name = Path(path).name.removesuffix(SUFFIX)
        if not PLAIN_NAME.fullmatch(name) or name in templates:
            raise Refused(
                f"the template {quote(path)} has an unusable or repeated file name",
                "Give each template a name of its own from letters, digits, . _ and -, such as "
                f"web.conf{SUFFIX}",
            )
        templates[name] = _read_template(base / path)
    return templates


def _read_template(path: Path) -> str:
    try:
        # A pipe or device would be read without end.
        content = _read_start(path) if path.is_file() else None
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a zero byte in the path
        raise Refused(f"{path} cannot be read: {error}", "Give a readable file of UTF-8 text") from error
    if content is None:
        raise Refused(f"there is no file {path}", "Write the path relative to the study file")
    return content


def _read_start(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE_BYTES + 1)
    if len(content) > LARGEST_FILE_BYTES:
        raise ValueError(f"this file is larger than {LARGEST_FILE_BYTES} bytes")
    return content.decode()
