"""A file for /etc/sysctl.d (sysctl.d(5)) and another with the values that were there before."""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tuner.export.provenance import comment, describe_origin
from tuner.export.rendered import Rendered
from tuner.ports import Files

if TYPE_CHECKING:
    from tuner.report.summary import Summary

ROOT = PurePosixPath("/proc/sys")
NAME, UNDO = "99-tuner.conf", "tuner-sysctl-undo.conf"


def export_sysctl(summary: "Summary", rendered: Rendered, installed: Files) -> dict[str, bytes]:
    """Write the keys whose values differ.

    `installed` holds the host's own values under /proc/sys. A fresh network namespace may begin with others
    (Documentation/networking/ip-sysctl.rst says key by key), so the undo prefers what the host has.
    """
    paths = paths_to_read(rendered)
    if not paths:
        return {}
    new = {path: read_value(rendered.winner[path]) for path in paths}
    old = {path: read_value(installed.get(path, rendered.default.get(path, b""))) for path in paths}
    seen = all(path in installed for path in paths)
    head = comment(
        *describe_origin(summary),
        f"apply: cp {NAME} /etc/sysctl.d/ && sysctl -p /etc/sysctl.d/{NAME}",
        "then restart the server: a listener keeps the limits of the moment at which it was opened",
        f"undo: rm /etc/sysctl.d/{NAME} && sysctl -p {UNDO}",
    )
    origin = "read from this host at the time of the export" if seen else "the study's default"
    undo_head = comment(*describe_origin(summary), f"values before: {origin}; apply with sysctl -p {UNDO}")
    return {
        NAME: (head + "".join(write_line(path, new[path]) for path in paths)).encode(),
        UNDO: (undo_head + "".join(write_line(path, old[path]) for path in paths if old[path])).encode(),
    }


def paths_to_read(rendered: Rendered) -> tuple[PurePosixPath, ...]:
    """Name the keys that differ, as paths under /proc/sys."""
    return tuple(
        path
        for path, content in sorted(rendered.winner.items())
        if path.is_relative_to(ROOT) and read_value(content) != read_value(rendered.default.get(path, b""))
    )


def read_value(content: bytes) -> str:
    """Read a value as the kernel prints it: fields apart by blanks."""
    return " ".join(content.decode("ascii", "replace").split())


def write_line(path: PurePosixPath, value: str) -> str:
    """Write one key; with slashes where a part of it holds a dot (sysctl.d(5))."""
    parts = path.relative_to(ROOT).parts
    separator = "/" if any("." in part for part in parts) else "."
    return f"{separator.join(parts)} = {value}\n"
