"""Reads the limits and the counters of a control group, of version 2 or 1."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from tuner.measure import procfs
from tuner.ports import FileReader

GROUPS = PurePosixPath("/sys/fs/cgroup")
MIB = 2**20
NO_LIMIT = 2**60
"""From here on memory.limit_in_bytes is none (mm/memcontrol-v1.c: the largest number of pages)."""
_CONTROLLERS = ("cpu", "memory", "pids")
_COUNTERS = {
    "cpu.stat": {"nr_throttled": "throttled_periods", "nr_periods": "quota_periods"},
    "memory.events": {"max": "memory_limit_hits", "oom_kill": "group_oom_kills"},
    "memory.oom_control": {"oom_kill": "group_oom_kills"},
    "pids.events": {"max": "tasks_refused"},
}
"""File → the kernel's names → facts (cgroup-v2.rst; cgroup-v1/memory.rst)."""
_LIMITS = {
    "memory.max": ("memory_limit_mib", MIB),
    "memory.limit_in_bytes": ("memory_limit_mib", MIB),
    "pids.max": ("tasks_limit", 1),
}
_HITS = "memory.failcnt"
_TASKS = "pids.current"
_QUOTA, _PERIOD = "cpu.cfs_quota_us", "cpu.cfs_period_us"
_FILES = (*_COUNTERS, *_LIMITS, "cpu.max", _QUOTA, _PERIOD, _HITS, _TASKS)


def find_groups(content: bytes) -> tuple[PurePosixPath, ...]:
    """Return the folders of a process's groups and of those above them, from /proc/PID/cgroup."""
    return tuple(dict.fromkeys(_walk_groups(content.decode(errors="replace"))))


def _walk_groups(text: str) -> Iterator[PurePosixPath]:
    for controllers, path in re.findall(r"^\d+:([^:]*):/(\S+)$", text, re.MULTILINE):
        names = [each for each in controllers.split(",") if each in _CONTROLLERS]
        for root in (GROUPS / each for each in names) if controllers else (GROUPS,):
            yield from (each for each in (root / path, *(root / path).parents) if root in each.parents)


def group_files(groups: Sequence[PurePosixPath]) -> list[PurePosixPath]:
    """Return the files that tell of groups."""
    return [group / name for group in groups for name in _FILES]


def count_in_groups(files: FileReader, groups: Sequence[PurePosixPath]) -> dict[str, float]:
    """Return what the groups have counted; what is closer counts."""
    counted: dict[str, float] = {}
    for group in reversed(groups):
        for name, names in _COUNTERS.items():
            counted |= procfs.parse_named(files.read(group / name).content or b"", names)
        if (hits := (files.read(group / _HITS).content or b"").strip()).isdigit():
            counted["memory_limit_hits"] = float(hits)
    return counted


def find_group_limits(files: FileReader, groups: Sequence[PurePosixPath]) -> dict[str, float]:
    """Return the lowest limits of the groups."""
    found: dict[str, float] = {}
    for group in groups:
        words = {name: (files.read(group / name).content or b"").split() for name in _FILES}
        limits = {fact: (words[name], unit) for name, (fact, unit) in _LIMITS.items() if words[name]}
        for quota, period in ((words["cpu.max"][:1], words["cpu.max"][1:]), (words[_QUOTA], words[_PERIOD])):
            if quota and period:
                limits["cpu_quota"] = (quota, int(period[0]))
        for fact, (limit, unit) in limits.items():
            if limit[0].isdigit() and int(limit[0]) < NO_LIMIT:
                found[fact] = min(int(limit[0]) / unit, found.get(fact, float("inf")))
        if words[_TASKS]:
            found.setdefault("tasks", float(words[_TASKS][0]))
    return found
