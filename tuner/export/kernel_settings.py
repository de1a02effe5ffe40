"""Keys of the kernel: a file for /etc/sysctl.d (sysctl.d(5)), and another with the values before."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from tuner.export.lowered import Lowered, describe_lowered
from tuner.export.provenance import describe_by_hand, write_head
from tuner.ports import Files
from tuner.report.summary import Summary

ROOT = PurePosixPath("/proc/sys")
NAME, UNDO = "99-tuner.conf", "tuner-sysctl-undo.conf"


def are_kernel_settings(files: Files) -> bool:
    """Return whether all of these files are keys of the kernel."""
    return bool(files) and all(path.is_relative_to(ROOT) for path in files)


def export_kernel_settings(
    summary: Summary,
    before: Files,
    after: Files,
    *,
    is_present: bool,
    by_hand: Mapping[str, str] = MappingProxyType({}),
    lowered: Lowered = MappingProxyType({}),
) -> dict[str, bytes]:
    """Write the keys whose values differ; nothing when none does.

    Args:
        summary: the study.
        before: key's path → value, for the undo.
        after: the same with the winner's values.
        is_present: whether `before` was read from the host itself. A fresh network namespace may begin with
            other values (Documentation/networking/ip-sysctl.rst says key by key).
        by_hand: settings of the winner that the host cannot be given → why.
        lowered: what is lower than on the host → both values.
    """
    old = {path: read_value(before.get(path, b"")) for path in after}
    new = {
        path: value for path, content in sorted(after.items()) if (value := read_value(content)) != old[path]
    }
    if not new:
        return {}
    head = write_head(
        summary,
        f"apply: cp {NAME} /etc/sysctl.d/ && sysctl -p /etc/sysctl.d/{NAME}",
        "then restart the server: a listening socket keeps the limits with which it was opened",
        f"undo: rm /etc/sysctl.d/{NAME} && sysctl -p {UNDO}",
        *describe_lowered(summary.space, lowered),
        *describe_by_hand(summary, by_hand),
    )
    origin = "read from this host during the export" if is_present else "the study's default"
    undo_head = write_head(summary, f"values before: {origin}; apply with sysctl -p {UNDO}")
    return {
        NAME: (head + "".join(write_line(path, value) for path, value in new.items())).encode(),
        UNDO: (undo_head + "".join(write_line(path, old[path]) for path in new if old[path])).encode(),
    }


def read_value(content: bytes) -> str:
    """Read a value as the kernel prints it: fields apart by blanks."""
    return " ".join(content.decode("ascii", "replace").split())


def write_line(path: PurePosixPath, value: str) -> str:
    """Write one key with its value."""
    return f"{write_key(path)} = {value}\n"


def write_key(path: PurePosixPath) -> str:
    """Write the name of a key; with slashes where a part of it holds a dot (sysctl.d(5))."""
    parts = path.relative_to(ROOT).parts
    return ("/" if any("." in part for part in parts) else ".").join(parts)
