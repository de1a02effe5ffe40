"""Settings under /sys: a file for /etc/tmpfiles.d (tmpfiles.d(5)), udev rules for those of network cards.

At boot the settings of cards are set by udev, when a card appears: tmpfiles.d may come before it does.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from tuner.export.provenance import describe_by_hand, write_head
from tuner.ports import Files
from tuner.report.summary import Summary

ROOT = PurePosixPath("/sys")
CARDS = ROOT / "class/net"
NAME, UNDO, RULES = "99-tuner.conf", "tuner-sys-undo.conf", "99-tuner.rules"


def are_boot_files(files: Files) -> bool:
    """Return whether all of these files are settings under /sys."""
    return bool(files) and all(path.is_relative_to(ROOT) for path in files)


def export_boot_files(
    summary: Summary,
    before: Files,
    after: Files,
    *,
    by_hand: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, bytes]:
    """Write the settings whose values differ, rules for those of network cards, and the values before.

    Args:
        summary: the study.
        before: setting's path → value on the host, for the undo.
        after: the same with the winner's values.
        by_hand: settings of the winner that the host cannot be given → why.
    """
    old = {path: read_value(before[path]) for path in sorted(after) if path in before}
    new = {path: read_value(after[path]) for path in old}
    new = {path: value for path, value in new.items() if value != old[path]}
    if not new:
        return {}
    rules = "".join(write_rule(path, value) for path, value in new.items() if is_of_card(path))
    place, put = f"/etc/tmpfiles.d/{NAME}", f" && cp {RULES} /etc/udev/rules.d/" if rules else ""
    take = f" /etc/udev/rules.d/{RULES}" if rules else ""
    head = write_head(
        summary,
        f"apply: cp {NAME} /etc/tmpfiles.d/ && systemd-tmpfiles --create {place}{put}",
        f"undo: rm {place}{take} && systemd-tmpfiles --create {UNDO}",
        *describe_by_hand(summary, by_hand),
    )
    said = "values before the change, as read from this host during the export"
    undo_head = write_head(summary, f"{said}; apply with systemd-tmpfiles --create {UNDO}")
    files = {
        NAME: head + "".join(write_line(path, value) for path, value in new.items()),
        UNDO: undo_head + "".join(write_line(path, old[path]) for path in new),
        **({RULES: head + rules} if rules else {}),
    }
    return {name: text.encode() for name, text in files.items()}


def is_of_card(path: PurePosixPath) -> bool:
    """Return whether a setting is one of a network card."""
    return path.is_relative_to(CARDS)


def read_value(content: bytes) -> str:
    """Read a value; of choices, which the kernel shows as `always [madvise] never`, the one in brackets."""
    text = content.decode("ascii", "replace").strip()
    chosen = re.search(r"\[([^\]]*)\]", text)
    return chosen[1] if chosen else text


def write_line(path: PurePosixPath, value: str) -> str:
    """Write a line of tmpfiles.d: write the value where the file is there."""
    return f"w {path} - - - - {value}\n"


def write_rule(path: PurePosixPath, value: str) -> str:
    """Write a rule of udev(7); a card that gets its name after it appeared is moved to it."""
    card, *attribute = path.relative_to(CARDS).parts
    match = f'ACTION=="add|move", SUBSYSTEM=="net", KERNEL=="{card}"'
    return f'{match}, ATTR{{{"/".join(attribute)}}}="{value}"\n'
