"""What a winner makes of a host's files, as JSON values: an export needs no host that is gone by then.

Bytes are kept as Latin-1, which gives back the same bytes.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import PurePosixPath
from typing import Any

from tuner.export.rendered import Rendered
from tuner.export.rewritten import ONE_TO_ONE, Rewritten
from tuner.ports import DropIn, Files, Service, Upstream


def differences_to_json(differences: Mapping[str, Rendered | Rewritten]) -> dict[str, Any]:
    """Return what each server's files become, as JSON values."""
    return {
        server: {"rewritten": _rewritten_to_json(each)}
        if isinstance(each, Rewritten)
        else {"rendered": _rendered_to_json(each)}
        for server, each in differences.items()
    }


def differences_from_json(data: Mapping[str, Any]) -> dict[str, Rendered | Rewritten]:
    """Read what `differences_to_json` wrote."""
    return {
        server: _rewritten_from_json(each["rewritten"])
        if "rewritten" in each
        else _rendered_from_json(each["rendered"])
        for server, each in data.items()
    }


def _files_to_json(files: Files) -> dict[str, str]:
    return {str(path): content.decode(ONE_TO_ONE) for path, content in files.items()}


def _files_from_json(data: Mapping[str, str]) -> Files:
    return {PurePosixPath(path): content.encode(ONE_TO_ONE) for path, content in data.items()}


def _plain(value: object) -> dict[str, Any]:
    """Return the fields of a dataclass with paths as text."""
    return {
        each.name: str(found) if isinstance(found := getattr(value, each.name), PurePosixPath) else found
        for each in fields(value)  # type: ignore[arg-type]
    }


def _rewritten_to_json(each: Rewritten) -> dict[str, Any]:
    return {
        "before": _files_to_json(each.before),
        "after": _files_to_json(each.after),
        "service": None if each.service is None else _plain(each.service),
        "directory": str(each.directory),
        "by_hand": dict(each.by_hand),
        "lowered": {name: list(pair) for name, pair in each.lowered.items()},
        "modes": {str(path): mode for path, mode in each.modes.items()},
    }


def _rewritten_from_json(data: Mapping[str, Any]) -> Rewritten:
    return Rewritten(
        before=_files_from_json(data["before"]),
        after=_files_from_json(data["after"]),
        service=None if data["service"] is None else Service(**_read_fields(data["service"], "pid_file")),
        directory=PurePosixPath(data["directory"]),
        by_hand=data["by_hand"],
        lowered=_read_lowered(data),
        modes={PurePosixPath(path): mode for path, mode in data["modes"].items()},
    )


def _rendered_to_json(each: Rendered) -> dict[str, Any]:
    return {
        "default": _files_to_json(each.default),
        "winner": _files_to_json(each.winner),
        "drop_in": None if each.drop_in is None else _plain(each.drop_in),
        "reason": each.reason,
        "lowered": {name: list(pair) for name, pair in each.lowered.items()},
        "backend": None if each.backend is None else _plain(each.backend),
        "installed": None if each.installed is None else _rewritten_to_json(each.installed),
    }


def _rendered_from_json(data: Mapping[str, Any]) -> Rendered:
    drop_in, backend, installed = data["drop_in"], data["backend"], data["installed"]
    return Rendered(
        default=_files_from_json(data["default"]),
        winner=_files_from_json(data["winner"]),
        drop_in=None if drop_in is None else DropIn(**_read_fields(drop_in, "directory")),
        reason=data["reason"],
        lowered=_read_lowered(data),
        backend=None if backend is None else Upstream(**_read_fields(backend, "socket")),
        installed=None if installed is None else _rewritten_from_json(installed),
    )


def _read_fields(data: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return fields with lists as tuples again, as commands are, and one of them as a path."""
    read: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
    }
    return read if read[path] is None else read | {path: PurePosixPath(read[path])}


def _read_lowered(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: (before, after) for name, (before, after) in data["lowered"].items()}
