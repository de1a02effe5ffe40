"""Reads how much memory processes hold together: the sum of their proportional set sizes.

A page that n processes map counts as 1/n of a page in each of them (Documentation/filesystems/proc.rst,
`Pss` of /proc/PID/smaps_rollup). So the sum counts each page once, where the sum of resident sizes counts
what forks share with their parent once for each of them.
"""

from collections.abc import Collection
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.measure import procfs
from tuner.ports import FileReader, Lookable


def read_memory_bytes(host: Lookable, pids: Collection[int]) -> int | None:
    """Return the proportional set size of processes together, in bytes; one that has ended has none.

    None where one of them may not be read (only root may read those of other users), and where the kernel
    has no smaps_rollup (before Linux 4.14): a part of the sum would look like a small server.
    """
    try:
        looked = host.look([_rollup(pid) for pid in pids])
        sizes = [_read_pss(looked, pid) for pid in pids]
        if not all(size is not None or _has_ended(host, pid) for pid, size in zip(pids, sizes, strict=True)):
            return None
    except TargetError:
        return None
    return sum(size or 0 for size in sizes) or None


def _rollup(pid: int) -> PurePosixPath:
    return PurePosixPath(f"/proc/{pid}/smaps_rollup")


def _read_pss(looked: FileReader, pid: int) -> int | None:
    """Return the proportional set size of one process in bytes; None where it cannot be read."""
    try:
        content = looked.read(_rollup(pid)).content
    except TargetError:
        return None
    pss = procfs.parse_named(content or b"", {"Pss": "pss"}, scale=procfs.KIB)
    return int(pss["pss"]) if pss else None


def _has_ended(host: FileReader, pid: int) -> bool:
    """Whether a process has no memory any more, be it gone or waited for by its parent."""
    status = host.read(PurePosixPath(f"/proc/{pid}/status")).content
    return not status or not procfs.parse_status(status).resident_bytes
