"""User data for cloud-init: new machines begin with the winner, or one gets back what was there before.

Files are written late (`defer`), after packages are installed, and whole: they fit the version and the
settings of the host that was measured.
"""

import base64
from collections.abc import Iterator
from typing import Any

from tuner.export.formats.shell import emptied_directories
from tuner.export.formats.yaml_documents import dump_yaml
from tuner.export.host_change import (
    RULES_FILE,
    SYSCTL_FILE,
    TMPFILES_FILE,
    FileChange,
    HostChange,
    describe_change,
)
from tuner.export.provenance import write_head
from tuner.report.summary import Summary

NAME, UNDO = "tuner-cloud-config.yaml", "tuner-cloud-config-undo.yaml"
BEGIN = "#cloud-config\n"
"""By its first line cloud-init knows what it is given."""


def write_cloud_init(summary: Summary, change: HostChange) -> dict[str, bytes]:
    """Write the user data for new machines, and that for machines which shall be as before."""
    whole = change.with_boot_files(write_head(summary))
    head = describe_change(
        summary,
        change,
        f"apply: give {NAME} to a new machine as its user data, or merge it into your own",
        "undo:  leave it out for new machines; on a machine that has it: cloud-init clean --logs, then boot "
        "with",
        f"  {UNDO}",
        "check: cloud-init schema --config-file FILE",
    )
    return {
        NAME: f"{BEGIN}{head}{dump_yaml(_describe(whole))}".encode(),
        UNDO: f"{BEGIN}{head}{dump_yaml(_describe(whole.reversed()))}".encode(),
    }


def _describe(change: HostChange) -> dict[str, Any]:
    written = [_write_file(each, each.after) for each in change.files if each.after is not None]
    commands = list(_commands(change))
    return {
        **({"write_files": written} if written else {}),
        **({"runcmd": commands} if commands else {}),
    }


def _write_file(file: FileChange, content: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": str(file.path), "permissions": f"{file.mode:04o}", "defer": True}
    try:
        return {**entry, "content": content.decode()}
    except UnicodeDecodeError:
        return {**entry, "encoding": "b64", "content": base64.b64encode(content).decode()}


def _commands(change: HostChange) -> Iterator[list[str]]:
    """Yield what is run when all files are written."""
    there = {each.path for each in change.files if each.after is not None}
    yield from (["rm", "-f", str(file.path)] for file in change.files if file.after is None)
    for directory in sorted(emptied_directories(change)):
        yield ["rmdir", "--ignore-fail-on-non-empty", str(directory)]
    if SYSCTL_FILE in there:
        yield ["sysctl", "-p", str(SYSCTL_FILE)]
    if TMPFILES_FILE in there:
        yield ["systemd-tmpfiles", "--create", str(TMPFILES_FILE)]
    if RULES_FILE in there:
        yield ["udevadm", "trigger", "--action=add", "--subsystem-match=net"]
    if not there & {SYSCTL_FILE, TMPFILES_FILE, RULES_FILE}:
        for setting in change.settings:
            yield ["sh", "-c", 'printf "%s\\n" "$1" >"$2"', "sh", setting.after, str(setting.path)]
    if change.touches_units:
        yield ["systemctl", "daemon-reload"]
    for service in change.services:
        checked = 'name=$1; shift; "$@" && systemctl restart "$name"'
        yield ["sh", "-c", checked, "sh", service.name, *(service.check or ("true",))]
