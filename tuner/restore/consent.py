"""Remembers on which hosts a person has agreed to managed runs."""

import json
import os
from pathlib import Path

from tuner.errors import TargetError
from tuner.restore.journal import find_state_directory

FILE = "agreed-hosts.json"


def has_agreed(host_name: str) -> bool:
    """Check whether a person has agreed to a managed run on this host before."""
    return host_name in _read(_path())


def remember_agreement(host_name: str) -> None:
    """Write down that a person has agreed. Raises TargetError when that cannot be written."""
    path = _path()
    agreed = sorted({*_read(path), host_name})
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(agreed, file)
    except OSError as error:
        raise TargetError(
            f"{path}: cannot be written ({error.strerror}). Set TUNER_STATE to a directory that you may "
            "write to."
        ) from error


def _read(path: Path) -> list[str]:
    """Read the host names; a file that is damaged agrees to nothing."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _path() -> Path:
    return find_state_directory() / FILE
