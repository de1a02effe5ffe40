"""Reads the limits of control groups, of version 2 or 1, their use, and how often they were met."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from tuner.hosts.control_groups import LIMIT_FILES, MIB, find_group_limits
from tuner.measure import procfs
from tuner.ports import FileReader

_KILLS = {"oom_kill": "group_oom_kills"}
_REFUSED = {"max": "tasks_refused"}
_THROTTLED = {"nr_throttled": "throttled_periods", "nr_periods": "quota_periods"}
_HITS = {"max": "memory_limit_hits"}
_USED = ("memory.current", "memory.usage_in_bytes")
_RECLAIMED = (
    *("inactive_file", "active_file", "slab_reclaimable"),
    *("total_inactive_file", "total_active_file"),
)
"""Page cache and slab of memory.stat, which the kernel gives up before it kills (cgroup-v2.rst; cgroup-v1,
memory.rst, where only `total_` counts the groups below)."""
_FILES = (
    *("cpu.stat", "memory.events", "memory.oom_control", "memory.failcnt", "memory.stat", "pids.events"),
    *("pids.current", *_USED, *LIMIT_FILES),
)


def group_files(groups: Sequence[PurePosixPath]) -> list[PurePosixPath]:
    """Return the files that tell of groups."""
    return [group / name for group in groups for name in _FILES]


def count_in_groups(files: FileReader, groups: Sequence[PurePosixPath]) -> dict[str, float]:
    """Return what has been counted: kills in the closest group, the rest where the lowest limit is."""
    counted: dict[str, float] = {}
    for each in reversed(groups):
        for name in ("memory.events", "memory.oom_control"):
            counted |= procfs.parse_named(_read(files, each / name), _KILLS)
    if group := _find_limiting(files, groups, "cpu_quota"):
        counted |= procfs.parse_named(_read(files, group / "cpu.stat"), _THROTTLED)
    if group := _find_limiting(files, groups, "memory_limit_mib"):
        counted |= procfs.parse_named(_read(files, group / "memory.events"), _HITS)
        if (hits := _read(files, group / "memory.failcnt").strip()).isdigit():
            counted["memory_limit_hits"] = float(hits)
    if group := _find_limiting(files, groups, "tasks_limit"):
        # Up to Linux 6.10, what a limit refuses is counted in the group of the process alone.
        closest = next(each for each in groups if _read(files, each / "pids.current"))
        for each in (group, closest):
            refused = procfs.parse_named(_read(files, each / "pids.events"), _REFUSED)
            counted |= {name: max(count, counted.get(name, 0.0)) for name, count in refused.items()}
    return counted


def find_group_facts(files: FileReader, groups: Sequence[PurePosixPath]) -> dict[str, float | str]:
    """Return the lowest limits of the groups, and what those groups use of them."""
    facts: dict[str, float | str] = dict(find_group_limits(files, groups))
    if group := _find_limiting(files, groups, "tasks_limit"):
        facts["tasks_group"] = str(group)
        if (tasks := _read(files, group / "pids.current").strip()).isdigit():
            facts["tasks"] = float(tasks)
    if group := _find_limiting(files, groups, "memory_limit_mib"):
        facts["memory_group"] = str(group)
        used = next((words[0] for name in _USED if (words := _read(files, group / name).split())), b"")
        stat = procfs.parse_named(_read(files, group / "memory.stat"), {name: name for name in _RECLAIMED})
        if used.isdigit() and stat:
            names = [name for name in _RECLAIMED if name.startswith("total_")]
            given = sum(stat[name] for name in (names if names[0] in stat else _RECLAIMED) if name in stat)
            facts["group_used_mib"] = max(0.0, int(used) - given) / MIB
    return facts


def _find_limiting(files: FileReader, groups: Sequence[PurePosixPath], limit: str) -> PurePosixPath | None:
    """Return the group with the lowest limit, the closest of several; None where nothing limits."""
    limits = {each: found[limit] for each in groups if limit in (found := find_group_limits(files, [each]))}
    return min(limits, key=limits.__getitem__, default=None)


def _read(files: FileReader, path: PurePosixPath) -> bytes:
    return files.read(path).content or b""
