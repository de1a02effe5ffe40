"""Reads the text of single /proc files into numbers. Pure: bytes in, numbers out (proc(5), proc_*(5))."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

USER_HZ = 100
"""Ticks per second of all times in /proc (include/uapi/asm-generic/param.h), whatever the kernel's own HZ."""
STAT_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Columns of /proc/stat. What guests run is under user and nice already, so later columns are left out."""
KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of /proc/PID/stat (include/linux/sched.h)."""
KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTimes:
    """What a process and the children that it waited for have used since their start."""

    pid: int
    name: str
    started_ticks: int
    """Since boot; tells a process from a later one with the same pid."""
    is_kernel_thread: bool
    threads: int
    cpu_ticks: tuple[int, int, int, int]
    """User, system, user of waited-for children, system of waited-for children."""
    minor_faults: int
    major_faults: int
    """Both with those of waited-for children."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """What only /proc/PID/status tells."""

    resident_bytes: int
    voluntary_switches: int
    involuntary_switches: int
    """Both of the main thread alone: the kernel counts switches per thread."""


def parse_stat(content: bytes) -> tuple[Mapping[str, Mapping[str, float]], Mapping[str, float]]:
    """Read /proc/stat: seconds by CPU ("cpu0") and column, and the counters `ctxt` and `processes`."""
    cpus: dict[str, Mapping[str, float]] = {}
    counters: dict[str, float] = {}
    for line in content.decode().splitlines():
        name, *values = line.split(maxsplit=len(STAT_COLUMNS) + 1)
        if name.startswith("cpu") and name != "cpu":
            seconds = (int(value) / USER_HZ for value in values[: len(STAT_COLUMNS)])
            cpus[name] = dict(zip(STAT_COLUMNS, seconds, strict=False))
        elif name in {"ctxt", "processes"}:
            counters[name] = float(values[0])
    return cpus, counters


def parse_process(content: bytes) -> ProcessTimes:
    """Read /proc/PID/stat. The name may hold spaces and parentheses, so fields count from its last one."""
    head, _, tail = content.decode(errors="replace").rpartition(")")
    pid, _, name = head.partition(" (")
    fields = tail.split()
    number = [int(field) for field in fields[1:20]]  # from ppid, which is field 4 of proc_pid_stat(5)
    return ProcessTimes(
        pid=int(pid),
        name=name,
        started_ticks=number[18],
        is_kernel_thread=bool(number[5] & KERNEL_THREAD),
        threads=number[16],
        cpu_ticks=(number[10], number[11], number[12], number[13]),
        minor_faults=number[6] + number[7],
        major_faults=number[8] + number[9],
    )


def parse_status(content: bytes) -> ProcessStatus:
    """Read /proc/PID/status; a process that has just ended has no memory any more."""
    found = dict(re.findall(rb"^(VmRSS|\w*voluntary_ctxt_switches):\s*(\d+)", content, re.MULTILINE))
    return ProcessStatus(
        resident_bytes=int(found.get(b"VmRSS", 0)) * KIB,
        voluntary_switches=int(found.get(b"voluntary_ctxt_switches", 0)),
        involuntary_switches=int(found.get(b"nonvoluntary_ctxt_switches", 0)),
    )


def parse_named(content: bytes, names: Mapping[str, str], *, scale: int = 1) -> dict[str, float]:
    """Read lines of a name and a number (/proc/vmstat, /proc/meminfo, cpu.stat).

    Args:
        content: the file.
        names: the kernel's names → those of the result; what the kernel does not have is left out.
        scale: factor to the unit of the result.
    """
    found: dict[str, float] = {}
    for line in content.decode().splitlines():
        words = line.replace(":", " ").split(maxsplit=2)
        if words and words[0] in names:
            found[names[words[0]]] = float(words[1]) * scale
    return found


def parse_protocols(content: bytes, names: Mapping[str, Mapping[str, str]]) -> dict[str, float]:
    """Read /proc/net/netstat or snmp: pairs of lines, the names and the numbers of one protocol.

    Args:
        content: the file.
        names: protocol → the kernel's names → those of the result; what the kernel does not have is left out.
    """
    found: dict[str, float] = {}
    lines = content.decode().splitlines()
    for titles, numbers in zip(lines[::2], lines[1::2], strict=False):
        protocol, _, keys = titles.partition(":")
        wanted = names.get(protocol)
        if wanted:
            pairs = zip(keys.split(), numbers.split()[1:], strict=False)
            found |= {wanted[key]: float(number) for key, number in pairs if key in wanted}
    return found


def parse_sockets(content: bytes) -> dict[str, float]:
    """Read the TCP line of /proc/net/sockstat: `inuse` and `tw` are of the network namespace alone."""
    for line in content.decode().splitlines():
        protocol, _, rest = line.partition(":")
        if protocol == "TCP":
            words = rest.split()
            return {key: float(value) for key, value in zip(words[::2], words[1::2], strict=False)}
    return {}


def parse_softnet(content: bytes) -> dict[str, float]:
    """Read /proc/net/softnet_stat, one line of hexadecimal columns for each CPU; sums over all CPUs."""
    rows = [line.split() for line in content.decode().splitlines()]
    names = ("packets", "packets_dropped", "packets_squeezed")
    return {name: float(sum(int(row[at], base=16) for row in rows)) for at, name in enumerate(names) if rows}


def parse_pressure(content: bytes) -> dict[str, float]:
    """Read /proc/pressure/*: seconds since boot in which some and all tasks waited (psi.rst: total in µs)."""
    found = re.findall(rb"^(some|full) .*total=(\d+)", content, re.MULTILINE)
    return {kind.decode(): int(total_us) / 1e6 for kind, total_us in found}
