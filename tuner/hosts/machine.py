"""Reads what a machine is from its kernel, in one look."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.errors import TargetError
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
        "boot": "/proc/sys/kernel/random/boot_id",
    }.items()
}
CPU = re.compile(r"[0-9]{1,5}", re.ASCII)
MOST_CPUS = 2**16
"""More than Linux can have (arch/x86/Kconfig, NR_CPUS)."""
DEFAULT_NR_OPEN = 1_048_576
DEFAULT_SOMAXCONN = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine, as far as search spaces and reports need it."""

    name: str
    kernel: str
    cpu: str
    cpus: tuple[int, ...]
    """Those that are online."""
    allowed: CpuSet
    """Those on which what tuner starts there may run."""
    memory_mib: int
    open_files_max: int
    """How high RLIMIT_NOFILE can be set by what tuner starts there."""
    nr_open: int
    """How high it can be set by root (fs.nr_open)."""
    somaxconn: int
    """What listen() is capped by in the network namespace that was read."""
    boot_id: str

    @property
    def cores(self) -> int:
        return len(self.cpus)


def read_machine(host: Host) -> Machine:
    """Read what a machine is. Raises TargetError where /proc or /sys are not what Linux has."""
    look = host.look(tuple(FILES.values()))
    texts = {name: _text(look, path) for name, path in FILES.items()}
    memory = re.search(r"^MemTotal:\s*([0-9]{1,18}) kB", texts["memory"], re.MULTILINE)
    if memory is None or not texts["online"]:
        raise TargetError(f"{host.name}: its memory or CPUs cannot be read. Mount /proc and /sys there.")
    model = re.search(r"^model name\s*:\s*(.+)$", texts["processors"], re.MULTILINE)
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", texts["status"], re.MULTILINE)
    nr_open = _number(texts["nr_open"], DEFAULT_NR_OPEN)
    try:
        cpus = parse_cpus(texts["online"])
        permitted = frozenset(parse_cpus(allowed[1])) if allowed else frozenset(cpus)
    except ValueError as error:
        raise TargetError(
            f"{host.name}: its list of CPUs cannot be understood: {error}. Check /proc and /sys there."
        ) from error
    return Machine(
        name=texts["name"].strip(),
        kernel=texts["kernel"].strip(),
        cpu=model[1].strip() if model else "unknown",
        cpus=cpus,
        allowed=permitted,
        memory_mib=int(memory[1]) // 1024,
        open_files_max=_open_files_max(texts, nr_open),
        nr_open=nr_open,
        somaxconn=_number(texts["somaxconn"], DEFAULT_SOMAXCONN),
        boot_id=texts["boot"].strip(),
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
