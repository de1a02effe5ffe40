"""What a run could leave behind on the host, as one comparable picture."""

import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

VOLATILE = re.compile(
    r"^(fs\.(dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota\..*)"
    r"|kernel\.(random\.\w+|ns_last_pid|pty\.nr|perf_event_max_sample_rate|perf_cpu_time_max_percent|sched_.*)"
    r"|net\.netfilter\.nf_conntrack_count|vm\.stat_refresh|user\..*"
    r"|net\.\w+\.\w+\.testbed-.*)\s*="
)
"""Counters and identifiers that change by themselves (proc(5), Documentation/admin-guide/sysctl), and the
interfaces of test hosts, which other tests make and remove meanwhile."""


def sysctls() -> dict[str, str]:
    """Read every sysctl of the host that does not change by itself."""
    printed = subprocess.run(["sysctl", "-a"], capture_output=True, text=True, check=False).stdout
    lines = [line for line in printed.splitlines() if "=" in line and not VOLATILE.match(line)]
    return dict(line.split(" = ", 1) for line in lines if " = " in line)


def network_namespaces() -> set[str]:
    """Name the network namespaces in which a process lives."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.add(os.readlink(entry / "ns/net"))  # noqa: PTH115 - not a path, a name
            except OSError:
                continue
    return found


def mounts() -> list[str]:
    """List what is mounted where."""
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def shared_memory() -> list[str]:
    """List System V shared memory and semaphores, and POSIX shared memory."""
    kept = [str(path) for path in Path("/dev/shm").iterdir()]  # noqa: S108 - looked at, not used
    for table in ("shm", "sem", "msg"):
        kept += Path(f"/proc/sysvipc/{table}").read_text().splitlines()[1:]
    return kept


def picture() -> dict[str, object]:
    """Take everything together."""
    places = ("/tmp", "/run", "/var/tmp", "/var/lib/tuner")  # noqa: S108 - looked at, not used
    return {
        "sysctls": sysctls(),
        "namespaces": network_namespaces(),
        "mounts": mounts(),
        "shared memory": shared_memory(),
        "files": {place: sorted(os.listdir(place)) for place in places if Path(place).is_dir()},  # noqa: PTH208
    }


def eventually(what: Callable[[], bool], *, within_s: float = 5.0) -> bool:
    """Wait until something is so; the kernel needs a moment to take a namespace apart."""
    deadline = time.monotonic() + within_s
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def differences(before: dict[str, object], *, within_s: float = 8.0) -> dict[str, object]:
    """Wait until the host is as it was; otherwise say what differs, before and now."""
    if eventually(lambda: picture() == before, within_s=within_s):
        return {}
    now = picture()
    differing = {key: (before[key], now[key]) for key in before if before[key] != now[key]}
    for key, (old, new) in differing.items():
        if isinstance(old, dict) and isinstance(new, dict):
            names = {name for name in {*old, *new} if old.get(name) != new.get(name)}
            differing[key] = tuple({name: side.get(name) for name in names} for side in (old, new))
    return differing


def unchanged(before: dict[str, object]) -> bool:
    """Wait until the host is as it was; otherwise fail with what differs."""
    differing = differences(before)
    assert not differing, f"the host is not as it was: {differing}"
    return True
