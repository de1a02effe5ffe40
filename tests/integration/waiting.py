"""Waiting for what happens in its own time."""

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 10.0
"""The kernel takes namespaces and processes down in its own time; only a failing test waits so long."""


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so; it is an error when it never is."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            message = f"it never came to that within {PATIENCE_S:g} s"
            raise AssertionError(message)
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Tell whether a process exists and is no zombie."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
