"""Reads `backend:`, the application that a study starts behind its servers."""

import re
from dataclasses import dataclass

from tuner.space.problems import quote
from tuner.study.fields import Fields
from tuner.study.mix import read_path

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
PLACEHOLDERS = frozenset({"port", "folder"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSettings:
    """An application and how it is known to be ready."""

    command: tuple[str, ...]
    """Its argv with `{port}`, where it is to listen, and `{folder}`, that of the study file."""
    port: int | None = None
    """Where it listens when it cannot be told."""
    ready: str = ""
    """Path that it answers with 200 when it is ready; empty when it is as soon as it listens."""


def read_backend(fields: Fields, *, is_managed: bool) -> BackendSettings | None:
    """Read it. Raises UsageError naming file, line, value and remedy."""
    keys = ("backend",)
    if fields.value(keys) is None:
        return None
    fields.refuse_unknown(keys, ("command", "port", "ready"))
    if is_managed:
        raise fields.wrong(
            keys,
            "an application is started beside private servers only",
            "Leave it out: installed servers have theirs",
        )
    command = fields.texts((*keys, "command"))
    if not command or not command[0].strip():
        raise fields.wrong((*keys, "command"), f"{quote(command)} is no command", "Write [program, argument]")
    found = {name for word in command for name in PLACEHOLDER.findall(word)}
    if unknown := sorted(found - PLACEHOLDERS):
        raise fields.wrong(
            (*keys, "command"), f"there is no {{{unknown[0]}}}", "Use {port} and {folder}, the study file's"
        )
    port = fields.number((*keys, "port"), None, int, low=1, high=65535)
    if ("port" in found) == (port is not None):
        raise fields.wrong(
            keys,
            "where it listens is said twice" if port else "where it listens is not said",
            "Give the command {port}, or, when it cannot be told, write its `port:`",
        )
    ready = (*keys, "ready")
    path = "" if fields.value(ready) is None else read_path(fields, ready, "/")
    return BackendSettings(command=command, port=port, ready=path)
