"""Reads `backend:`, the application that a study starts behind its servers."""

import re
import shlex
from dataclasses import dataclass

from tuner.ports import HTTP, WEBSOCKET
from tuner.space.problems import quote
from tuner.study.fields import Fields
from tuner.study.loads.mix import read_path

KEYS = ("command", "port", "ready", "protocol")
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
PLACEHOLDERS = frozenset({"port", "folder"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSettings:
    """An application and how it is known to be ready."""

    name: str = ""
    """Under which it is registered; empty for one of the author's own, which has a command."""
    command: tuple[str, ...] = ()
    """Its argv with `{port}`, where it is to listen, and `{folder}`, that of the study file."""
    port: int | None = None
    """Where it listens when it cannot be told."""
    ready: str = ""
    """Path that it answers with 200 when it is ready; empty when it is as soon as it listens."""
    protocol: str = HTTP
    """In which the author's own is asked."""

    def describe(self) -> str:
        """Return all that makes two of them comparable."""
        own = shlex.join(self.command)
        return self.name or (own if self.protocol == HTTP else f"{own} ({self.protocol})")


def read_backend(fields: Fields, *, is_managed: bool) -> BackendSettings | None:
    """Read it, a name or the author's own application.

    Raises UsageError naming file, line, value and remedy.
    """
    keys = ("backend",)
    given = fields.value(keys)
    if given is None:
        return None
    if is_managed:
        raise fields.wrong(
            keys,
            "an application is started beside private servers only",
            "Leave it out: installed servers have theirs",
        )
    return BackendSettings(name=given) if isinstance(given, str) else _read_own(fields)


def _read_own(fields: Fields) -> BackendSettings:
    keys = ("backend",)
    fields.refuse_unknown(keys, KEYS)
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
    return BackendSettings(
        command=command,
        port=port,
        ready="" if fields.value(ready) is None else read_path(fields, ready, "/"),
        protocol=fields.choice((*keys, "protocol"), HTTP, (HTTP, WEBSOCKET)),
    )
