"""Where the kernel accounts for what a process's control group may use (cgroup-v2.rst)."""

import re
from pathlib import PurePosixPath

from tuner.ports import FileReader

CONTROL_GROUPS = PurePosixPath("/sys/fs/cgroup")


def find_quota(looked: FileReader, pid: int) -> PurePosixPath | None:
    """Find the account of a process's CPU quota: cpu.stat of its control group.

    It stays the same while the process lives, so that a snapshot need not ask for the group first. None with
    the older hierarchy of groups, or when the process has ended.
    """
    content = looked.read(PurePosixPath(f"/proc/{pid}/cgroup")).content or b""
    found = re.search(r"^0::(/.*)$", content.decode(errors="replace"), re.MULTILINE)
    return CONTROL_GROUPS / found[1].lstrip("/") / "cpu.stat" if found else None
