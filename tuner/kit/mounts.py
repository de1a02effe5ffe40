"""What of a host's file tree can only be read, as in a container."""

from collections.abc import Callable
from pathlib import PurePosixPath

LIST = ("cat", "/proc/self/mounts")
"""Prints what `find_read_only` parses."""


def find_read_only(mounts: str) -> Callable[[PurePosixPath], bool]:
    """Make a test of whether a path is on a read-only mount (proc(5), mounts): the nearest decides."""
    read_only: dict[PurePosixPath, bool] = {}
    for line in mounts.splitlines():
        _, place, _, options, *_ = line.split()
        read_only[PurePosixPath(place)] = "ro" in options.split(",")
    return lambda path: next((read_only[each] for each in (path, *path.parents) if each in read_only), False)
