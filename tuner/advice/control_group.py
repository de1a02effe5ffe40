"""Reads the counters of a control group, of version 2 or 1, and what it uses of its limits."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from tuner.hosts.control_groups import LIMIT_FILES, find_group_limits
from tuner.measure import procfs
from tuner.ports import FileReader

_COUNTERS = {
    "cpu.stat": {"nr_throttled": "throttled_periods", "nr_periods": "quota_periods"},
    "memory.events": {"max": "memory_limit_hits", "oom_kill": "group_oom_kills"},
    "memory.oom_control": {"oom_kill": "group_oom_kills"},
    "pids.events": {"max": "tasks_refused"},
}
"""File → the kernel's names → facts (cgroup-v2.rst; cgroup-v1/memory.rst)."""
_HITS = "memory.failcnt"
_TASKS = "pids.current"


def group_files(groups: Sequence[PurePosixPath]) -> list[PurePosixPath]:
    """Return the files that tell of groups."""
    return [group / name for group in groups for name in (*_COUNTERS, *LIMIT_FILES, _HITS, _TASKS)]


def count_in_groups(files: FileReader, groups: Sequence[PurePosixPath]) -> dict[str, float]:
    """Return what the groups have counted; what is closer counts."""
    counted: dict[str, float] = {}
    for group in reversed(groups):
        for name, names in _COUNTERS.items():
            counted |= procfs.parse_named(files.read(group / name).content or b"", names)
        if (hits := (files.read(group / _HITS).content or b"").strip()).isdigit():
            counted["memory_limit_hits"] = float(hits)
    return counted


def find_group_facts(files: FileReader, groups: Sequence[PurePosixPath]) -> dict[str, float]:
    """Return the lowest limits of the groups, and how many tasks the closest one has."""
    tasks = [words for group in groups if (words := (files.read(group / _TASKS).content or b"").split())]
    return find_group_limits(files, groups) | ({"tasks": float(tasks[0][0])} if tasks else {})
