"""Reads what a machine is from its kernel, and what processes may use of it."""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.hosts.control_groups import LIMIT_FILES, find_group_limits, find_groups
from tuner.ports import CpuSet, FileReader, Host

CAP_SYS_RESOURCE = 24
"""Number of the capability that setrlimit(2) asks for (include/uapi/linux/capability.h)."""
FILES = {
    name: PurePosixPath(path)
    for name, path in {
        "name": "/proc/sys/kernel/hostname",
        "kernel": "/proc/sys/kernel/osrelease",
        "processors": "/proc/cpuinfo",
        "online": "/sys/devices/system/cpu/online",
        "memory": "/proc/meminfo",
        "nr_open": "/proc/sys/fs/nr_open",
        "somaxconn": "/proc/sys/net/core/somaxconn",
        "status": "/proc/self/status",
        "limits": "/proc/self/limits",
        "groups": "/proc/self/cgroup",
        "boot": "/proc/sys/kernel/random/boot_id",
    }.items()
}
ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)
CPU = re.compile(r"[0-9]{1,5}", re.ASCII)
MOST_CPUS = 2**16
"""More than Linux can have (arch/x86/Kconfig, NR_CPUS)."""
DEFAULT_NR_OPEN = 1_048_576
DEFAULT_SOMAXCONN = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What processes may use of their machine."""

    cpus: CpuSet = frozenset()
    """CPUs on which they may run, by their affinity and their cpuset; empty for all."""
    cpu_quota: float | None = None
    """CPU seconds per second that their control groups grant; None without a quota."""
    memory_mib: int | None = None
    """Limit of memory of their control groups; None without one."""

    def count_cpus(self, there: int) -> int:
        """Return how many of the CPUs that are there can be used at once: as many as the quota keeps busy."""
        return there if self.cpu_quota is None else max(1, min(there, math.ceil(self.cpu_quota)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine, as far as search spaces and reports need it."""

    name: str
    kernel: str
    cpu: str
    cpus: tuple[int, ...]
    """Those that are online."""
    share: Share
    """What may be used by what tuner starts there, or by the services that it tunes there."""
    memory_total_mib: int
    open_files_max: int
    """How high RLIMIT_NOFILE can be set by what tuner starts there."""
    nr_open: int
    """How high it can be set by root (fs.nr_open)."""
    somaxconn: int
    """What listen() is capped by in the network namespace that was read."""
    boot_id: str

    @property
    def online_cores(self) -> int:
        """Return how many CPUs are online: servers count these where a setting is `auto`."""
        return len(self.cpus)

    @property
    def allowed(self) -> CpuSet:
        """Return the CPUs that are online and may be used."""
        return frozenset(self.cpus) & self.share.cpus or frozenset(self.cpus)

    @property
    def cores(self) -> int:
        """Return how many CPUs may be used at once."""
        return self.share.count_cpus(len(self.allowed))

    @property
    def memory_mib(self) -> int:
        """Return the memory that may be used: all of it, or as much as the control groups grant."""
        limit = self.share.memory_mib
        return self.memory_total_mib if limit is None else max(1, min(self.memory_total_mib, limit))

    @property
    def limits(self) -> str:
        """Return what may be used of the machine where that is not all, for reports; empty where it is."""
        quota = self.share.cpu_quota
        told: list[str] = []
        if len(self.allowed) < self.online_cores:
            told.append(f"{len(self.allowed)} of {self.online_cores} CPUs")
        if quota is not None and quota < len(self.allowed):
            told.append(f"CPU quota {round(quota, 2):g} of {len(self.allowed)} CPUs")
        if self.memory_mib < self.memory_total_mib:
            told.append(f"{self.memory_mib:,} of {self.memory_total_mib:,} MiB")
        return ", ".join(told)


def read_machine(host: Host) -> Machine:
    """Read what a machine is. Raises TargetError where /proc or /sys are not what Linux has."""
    look = host.look(tuple(FILES.values()))
    texts = {name: _text(look, path) for name, path in FILES.items()}
    memory = re.search(r"^MemTotal:\s*([0-9]{1,18}) kB", texts["memory"], re.MULTILINE)
    if memory is None or not texts["online"]:
        raise TargetError(
            f"{host.name}: tuner cannot read the memory or the CPUs of this host. Mount /proc and /sys on "
            "the host."
        )
    model = re.search(r"^model name\s*:\s*(.+)$", texts["processors"], re.MULTILINE)
    allowed = ALLOWED.search(texts["status"])
    nr_open = _number(texts["nr_open"], DEFAULT_NR_OPEN)
    try:
        cpus = parse_cpus(texts["online"])
        permitted = frozenset(parse_cpus(allowed[1])) if allowed else frozenset[int]()
    except ValueError as error:
        raise TargetError(
            f"{host.name}: tuner cannot read the list of CPUs: {error}. Check /proc and /sys on the host."
        ) from error
    return Machine(
        name=texts["name"].strip(),
        kernel=texts["kernel"].strip(),
        cpu=model[1].strip() if model else "unknown",
        cpus=cpus,
        share=_find_share(host, permitted, texts["groups"]),
        memory_total_mib=int(memory[1]) // 1024,
        open_files_max=_open_files_max(texts, nr_open),
        nr_open=nr_open,
        somaxconn=_number(texts["somaxconn"], DEFAULT_SOMAXCONN),
        boot_id=texts["boot"].strip(),
    )


def narrow(machine: Machine, host: Host, processes: Sequence[int]) -> Machine:
    """Return the machine as its services may use it: their control groups are not those of tuner's session.

    Of several services, CPUs and quota are those of the least limited one, as the others only wait. The
    memory is that of the most limited one, because the kernel kills a service that takes more.

    Args:
        machine: as it was read.
        host: where the services run.
        processes: their first processes; a machine without services stays as it is.
    """
    shares = [share for each in processes if (share := read_share(host, each)) is not None]
    if not shares:
        return machine
    cpus = [each.cpus for each in shares]
    quotas = [math.inf if each.cpu_quota is None else each.cpu_quota for each in shares]
    memories = [each.memory_mib for each in shares if each.memory_mib is not None]
    share = Share(
        cpus=frozenset[int]().union(*cpus) if all(cpus) else frozenset(),
        cpu_quota=max(quotas) if max(quotas) < math.inf else None,
        memory_mib=min(memories, default=None),
    )
    return replace(machine, share=share)


def read_share(host: Host, process: int | str = "self") -> Share | None:
    """Read what a process may use: one of an id, or those that tuner starts on the host.

    None for one that has ended, or that this user may not look at.
    """
    status, groups = (PurePosixPath(f"/proc/{process}/{name}") for name in ("status", "cgroup"))
    with suppress(TargetError, ValueError):
        look = host.look((status, groups))
        if allowed := ALLOWED.search(_text(look, status)):
            return _find_share(host, frozenset(parse_cpus(allowed[1])), _text(look, groups))
    return None


def _find_share(host: Host, cpus: CpuSet, listed: str) -> Share:
    """Find what a process may use, from its CPUs and its /proc/PID/cgroup."""
    groups = find_groups(listed.encode())
    files = host.look([group / name for group in groups for name in LIMIT_FILES]) if groups else host
    limits = find_group_limits(files, groups)
    memory_mib = limits.get("memory_limit_mib")
    return Share(
        cpus=cpus,
        cpu_quota=limits.get("cpu_quota"),
        memory_mib=None if memory_mib is None else int(memory_mib),
    )


def parse_cpus(listed: str) -> tuple[int, ...]:
    """Read a kernel CPU list such as `0,4-5`. Raises ValueError."""
    ends = [part.strip().split("-") for part in listed.strip().split(",")]
    if any(not CPU.fullmatch(number) or int(number) >= MOST_CPUS for end in ends for number in end):
        raise ValueError(f"{listed[:40]!r} is no list of CPUs")
    return tuple(cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1))


def _open_files_max(texts: Mapping[str, str], nr_open: int) -> int:
    """Return the hard limit, or fs.nr_open for who may raise it: root in a container often may not."""
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", texts["status"], re.MULTILINE)
    if effective is not None and int(effective[1], 16) >> CAP_SYS_RESOURCE & 1:
        return nr_open
    hard = re.search(r"^Max open files\s+\S+\s+([0-9]{1,18})\b", texts["limits"], re.MULTILINE)
    return min(int(hard[1]), nr_open) if hard else nr_open


def _text(look: FileReader, path: PurePosixPath) -> str:
    return (look.read(path).content or b"").decode(errors="replace")


def _number(text: str, default: int) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text.strip()) else default
