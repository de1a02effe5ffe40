"""The application that a study starts behind its servers: `backend:`."""

import re
import shlex
from dataclasses import dataclass

from tuner.ports import HTTP
from tuner.space.problems import Refused

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


def require_port(command: tuple[str, ...], port: int | None) -> None:
    """Raise Refused unless it is told where to listen, or says where it does."""
    found = {name for word in command for name in PLACEHOLDER.findall(word)}
    if unknown := sorted(found - PLACEHOLDERS):
        wrong = f"{{{unknown[0]}}} is no known placeholder"
        raise Refused(wrong, "Use {port} and {folder} (the folder of the study file)", at=("command",))
    if ("port" in found) == (port is not None):
        raise Refused(
            "the port is given twice, by {port} and by `port:`" if port else "the port is not given",
            "Write {port} in the command, or, if the program has a fixed port, write this port as `port:`",
        )
