"""Reads the limits of control groups, of version 2 or 1: those of a process's group and of each one above.

The kernel describes them in Documentation/admin-guide: cgroup-v2.rst and cgroup-v1/memory.rst; and in
Documentation/scheduler/sched-bwc.rst.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.ports import FileReader

GROUPS = PurePosixPath("/sys/fs/cgroup")
MIB = 2**20
NO_LIMIT = 2**60
"""From here on memory.limit_in_bytes is none (mm/memcontrol-v1.c: the largest number of pages)."""
_CONTROLLERS = ("cpu", "memory", "pids")
_LIMITS = {
    "memory.max": ("memory_limit_mib", MIB),
    "memory.limit_in_bytes": ("memory_limit_mib", MIB),
    "pids.max": ("tasks_limit", 1),
}
"""File → fact and its unit."""
_QUOTA, _PERIOD = "cpu.cfs_quota_us", "cpu.cfs_period_us"
_NUMBER = re.compile(rb"[0-9]{1,19}")
LIMIT_FILES = (*_LIMITS, "cpu.max", _QUOTA, _PERIOD)


def find_groups(content: bytes) -> tuple[PurePosixPath, ...]:
    """Return the folders of a process's groups and of those above them, from /proc/PID/cgroup.

    The root is one of them: in a container it is the container's own group, which has its limits.
    """
    return tuple(dict.fromkeys(_walk_groups(content.decode(errors="replace"))))


def _walk_groups(text: str) -> Iterator[PurePosixPath]:
    for controllers, path in re.findall(r"^\d+:([^:]*):/(\S*)$", text, re.MULTILINE):
        names = [each for each in controllers.split(",") if each in _CONTROLLERS]
        for root in (GROUPS / each for each in names) if controllers else (GROUPS,):
            group = root / path.lstrip("/")
            yield from (each for each in (group, *group.parents) if each.is_relative_to(root))


def find_group_limits(files: FileReader, groups: Sequence[PurePosixPath]) -> dict[str, float]:
    """Return the lowest limits of the groups: memory_limit_mib, tasks_limit, and cpu_quota in CPUs.

    A file that is not there, or that may not be read, sets no limit.
    """
    found: dict[str, float] = {}
    for group in groups:
        words = {name: _read_words(files, group / name) for name in LIMIT_FILES}
        limits = {fact: (words[name], unit) for name, (fact, unit) in _LIMITS.items() if words[name]}
        for quota, period in ((words["cpu.max"][:1], words["cpu.max"][1:]), (words[_QUOTA], words[_PERIOD])):
            if period and (number := _read_number(period)):
                limits["cpu_quota"] = (quota, number)
        for fact, (limit, unit) in limits.items():
            if (number := _read_number(limit)) is not None and number < NO_LIMIT:
                found[fact] = min(number / unit, found.get(fact, float("inf")))
    return found


def _read_words(files: FileReader, path: PurePosixPath) -> list[bytes]:
    with suppress(TargetError):
        return (files.read(path).content or b"").split()
    return []


def _read_number(words: Sequence[bytes]) -> int | None:
    """Read the first word; None for `max`, -1 and whatever else is no limit."""
    return int(words[0]) if words and _NUMBER.fullmatch(words[0]) else None
