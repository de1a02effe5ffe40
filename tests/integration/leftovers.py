"""Finds what a sandbox may have left behind."""

import os
import time
from pathlib import Path

from tests.integration.waiting import PATIENCE_S


def processes_with(marker: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def namespace(pid: int | str, kind: str = "net") -> str:
    return str(Path(f"/proc/{pid}/ns/{kind}").readlink())


def processes_in(namespaces: dict[str, str]) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            for kind, name in namespaces.items():
                try:
                    if namespace(entry.name, kind) == name:
                        found.append(f"{entry.name} in {name}")
                except OSError:
                    continue
    return found


def wait_until_gone(marker: str, namespaces: dict[str, str]) -> list[object]:
    """Wait until nothing is left, and tell what is left when it does not go."""
    deadline = time.monotonic() + PATIENCE_S
    while left := [*processes_with(marker), *processes_in(namespaces)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return left
