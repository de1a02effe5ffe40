"""Reads the options of a server that the study itself describes: its templates and commands."""

import hashlib
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tuner.kit.placeholders import find_placeholders
from tuner.space.problems import problem, quote, suggest
from tuner.space.yaml_text import LARGEST_FILE_BYTES
from tuner.study.fields import Fields

COMMANDS = ("check", "start", "stop", "read_back")
KEYS = ("template", *COMMANDS)
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
                    raise problem(self.places[key], f"there is no {{{name}}}", suggest(name, known))

    def arguments(self) -> dict[str, object]:
        """Return them as arguments of the adapter's class; most take none."""
        return {"templates": self.templates, "folder": self.folder, **self.commands}

    def define(self) -> str:
        """Return all that makes two starts comparable, in one line."""
        texts = (
            f"{name} {hashlib.sha256(text.encode()).hexdigest()}" for name, text in self.templates.items()
        )
        commands = (f"{kind} {shlex.join(argv)}" for kind, argv in self.commands.items())
        return "; ".join((*texts, *commands))


def read_server_options(fields: Fields, base: Path) -> ServerOptions | None:
    """Read the options in one entry of `servers:`; None when there are none.

    Args:
        fields: of the entry.
        base: the folder of the study file, to which paths are relative.

    Raises UsageError naming file, line, value and remedy.
    """
    given = [key for key in KEYS if fields.value((key,)) is not None]
    if not given:
        return None
    templates: dict[str, str] = {}
    for path in _read_paths(fields):
        name = Path(path).name.removesuffix(SUFFIX)
        if not PLAIN_NAME.fullmatch(name) or name in templates:
            raise fields.wrong(
                ("template",),
                f"{quote(path)} cannot become a file of its own",
                f"Give each template a name of letters, digits, . _ and -, as web.conf{SUFFIX}",
            )
        templates[name] = _read_template(fields, base / path)
    return ServerOptions(
        folder=str(base.resolve()),
        templates=templates,
        commands={key: _read_command(fields, key) for key in COMMANDS if key in given},
        places={key: fields.where((key,)) for key in COMMANDS if key in given},
    )


def _read_paths(fields: Fields) -> tuple[str, ...]:
    given = fields.value(("template",))
    return fields.texts(("template",)) if isinstance(given, list) or given is None else (str(given),)


def _read_template(fields: Fields, path: Path) -> str:
    try:
        if not path.is_file():  # a pipe or device would be read without end
            raise fields.wrong(
                ("template",), f"there is no file {path}", "Write its path from the study file on"
            )
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
        text = content.decode()
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a zero byte in the path
        raise fields.wrong(("template",), f"{path} cannot be read: {error}", "Correct it") from error
    if len(content) > LARGEST_FILE_BYTES:
        raise fields.wrong(("template",), f"{path} is larger than {LARGEST_FILE_BYTES} bytes", "Split it")
    return text


def _read_command(fields: Fields, key: str) -> tuple[str, ...]:
    command = fields.texts((key,))
    if not command or not command[0].strip():
        raise fields.wrong((key,), f"{quote(command)} is no command", "Write [program, argument]")
    return command
