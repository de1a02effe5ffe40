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


Processors = Mapping[str, Mapping[str, float]]
"""CPU ("cpu0") → column of /proc/stat → seconds."""
SAMPLED = ("user", "nice", "system", "irq", "softirq")
SHOWN = ("user", "system", "softirq", "steal", "idle")


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


def passed_between(before: Processors, after: Processors) -> dict[str, dict[str, float]]:
    """Subtract two readings, for the CPUs that were there all the time."""
    return {cpu: grown(before[cpu], columns) for cpu, columns in after.items() if cpu in before}


def grown(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Subtract counters that only grow; iowait alone may fall (proc_stat(5)), which means nothing."""
    return {name: max(0.0, value - before[name]) for name, value in after.items() if name in before}


def sum_processors(passed: Processors, elapsed_s: float) -> dict[str, float]:
    """Sum over all CPUs, and show each; names as in the table of counters.py."""
    capacity_s = elapsed_s * len(passed)
    total = {
        f"{column}_s": sum(columns.get(column, 0.0) for columns in passed.values()) for column in STAT_COLUMNS
    }
    sampled_s = sum(total[f"{column}_s"] for column in SAMPLED)
    return {
        "cpus": float(len(passed)),
        **total,
        **{
            f"{cpu}_{column}_s": columns[column]
            for cpu, columns in passed.items()
            for column in SHOWN
            if column in columns
        },
        # Not the sum of the busy columns: those are sampled at timer ticks, which virtual machines lose. On a
        # loaded guest with 2 CPUs that sum was 0.5 s of 3 s short, while this agreed with the sum over all
        # processes to 0.05 s. Idle time is measured (kernel/time/tick-sched.c, get_cpu_idle_time_us).
        "busy_s": max(0.0, capacity_s - total["idle_s"] - total["iowait_s"] - total["steal_s"]),
        "steal_share": total["steal_s"] / capacity_s,
        "softirq_share": total["softirq_s"] / sampled_s if sampled_s else 0.0,
    }


def charges_interrupts_apart(since_boot: Processors) -> bool:
    """Return whether this kernel keeps the time of interrupts out of the processes that they interrupt.

    It does with CONFIG_IRQ_TIME_ACCOUNTING (kernel/sched/core.c, update_rq_clock_task), and then measures the
    column irq. Otherwise that is filled only by a timer tick within another interrupt, which does not happen
    (kernel/sched/cputime.c, account_system_time), so it stays 0 from boot on.
    """
    return any(columns.get("irq", 0.0) > 0 for columns in since_boot.values())


def interrupts_without_process(
    passed: Processors, *, elapsed_s: float, charged_apart: bool, in_threads_s: float, from_outside: bool
) -> float:
    """Estimate the seconds of interrupts that are in no process's time and yet nobody's foreign work.

    Args:
        passed: by CPU and column.
        elapsed_s: length of the window.
        charged_apart: whether that is so for all interrupts, as `charges_interrupts_apart` tells.
        in_threads_s: what ksoftirqd did, which is in the column softirq and in its own time as well.
        from_outside: whether the load came over a network device. Its packets interrupt whatever runs, an
            idle CPU too; only those that meet a process are charged. Over loopback, packets are handled in
            the process that sends them: there, with nothing subtracted, foreign CPU agreed with the sum over
            all other processes to 0.04 s of 2 s.
    """
    if charged_apart:
        interrupts_s = sum(columns["irq"] + columns["softirq"] for columns in passed.values())
        return max(0.0, interrupts_s - in_threads_s)
    if not from_outside:
        return 0.0
    return sum(columns["softirq"] * min(1.0, columns["idle"] / elapsed_s) for columns in passed.values())
