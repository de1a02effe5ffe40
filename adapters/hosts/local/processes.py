"""Watches and kills processes by their ids, with all that descends from them."""

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Iterator
from pathlib import Path

POLL_S = 0.002
ENTRANCE_TIMEOUT_S = 5.0


def children_of(pid: int) -> list[int]:
    """List the direct children of a process; empty when it is gone (proc(5), /proc/PID/task/TID/children)."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                children += [int(child) for child in (thread / "children").read_bytes().split()]
    return children


def kill_tree(pid: int, *, is_entrance: bool = False) -> None:
    """Kill a process with all its descendants.

    An entrance (nsenter) must live on until it has reaped the command that it entered with. Otherwise the
    dead command falls to the host's first process, whose neglect would keep the sandbox from ending.
    """
    if not is_entrance:
        _kill_all([pid])
        return
    deadline_s = time.monotonic() + ENTRANCE_TIMEOUT_S
    while not wait_for_end(pid, POLL_S):
        _kill_all(children_of(pid))
        # It stops itself when its child is stopped.
        send(pid, signal.SIGCONT if time.monotonic() < deadline_s else signal.SIGKILL)


def _kill_all(found: list[int]) -> None:
    """Kill processes and what descends from them; stopped first, as what stands still starts no child."""
    tree: dict[int, None] = {}
    while found:
        for each in found:
            send(each, signal.SIGSTOP)
        tree.update(dict.fromkeys(found))
        found = [child for each in tree for child in children_of(each) if child not in tree]
    for each in reversed(tree):
        send(each, signal.SIGKILL)


def wait_for_end(pid: int, timeout_s: float) -> bool:
    """Wait until a child of ours has ended, without reaping it; return whether it has."""
    with watch(pid) as ended, selectors.DefaultSelector() as selector:
        selector.register(ended, selectors.EVENT_READ)
        return bool(selector.select(timeout_s))


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, reaped or not. For an id that cannot have been given away since."""
    try:
        return wait_for_end(pid, 0.0)
    except ProcessLookupError:
        return True


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone, or that has taken another user's rights."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


@contextlib.contextmanager
def watch(pid: int) -> Iterator[int]:
    """Open a descriptor that becomes readable when the process has ended (pidfd_open(2))."""
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
