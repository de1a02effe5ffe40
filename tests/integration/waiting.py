"""Waiting for what happens in its own time."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PATIENCE_S = 10.0
"""The kernel takes namespaces and processes down in its own time; only a failing test waits so long."""


def wait_until(is_so: Callable[[], bool], *, patience_s: float = PATIENCE_S) -> None:
    """Wait until something is so; it is an error when it never is."""
    deadline = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > deadline:
            message = f"it never came to that within {patience_s:g} s"
            raise AssertionError(message)
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Tell whether a process exists and is no zombie."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextlib.contextmanager
def holding(program: str, *arguments: object) -> Iterator["subprocess.Popen[bytes]"]:
    """Run one of the `hold_….py` beside this file; it holds what it holds, and is killed in the end."""
    argv: Sequence[str] = [sys.executable, program, *map(str, arguments)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"holding\n"
            yield process
        finally:
            process.kill()
