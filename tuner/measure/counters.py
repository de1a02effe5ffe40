"""Counts on the target what happens during a window: two snapshots of /proc and their difference.

Names of `difference` (a kernel that does not have a number leaves its name out; a window is what lies between
the snapshots; "sampled" columns of /proc/stat are guesses at the timer tick, see `busy_s`):

| name | meaning | from |
|---|---|---|
| elapsed_s, cpus | length of the window; CPUs counted | monotonic clock, /proc/stat |
| user_s, nice_s, system_s, irq_s, softirq_s | sampled CPU seconds over all CPUs | /proc/stat |
| idle_s, iowait_s, steal_s | seconds over all CPUs; idle is measured if it stops the tick | /proc/stat |
| cpuN_{user,system,softirq,steal,idle}_s | the same for CPU N | /proc/stat |
| busy_s | elapsed × CPUs − idle − iowait − steal | |
| steal_share | steal of elapsed × CPUs | |
| softirq_share | softirq of the sampled busy columns | |
| context_switches, forks | of the whole target | /proc/stat: ctxt, processes |
| server_cpu_s, tuner_cpu_s, … | CPU seconds of a group, exited children included | /proc/PID/stat |
| generator_cpu_s | of the load generator; taken out of the group that waited for it | the caller |
| foreign_cpu_s | busy − all groups − interrupts that no process was charged for, at least 0 | |
| foreign_cpu_share | foreign_cpu_s of one CPU | |
| foreign_cpu_error_s | standard error of foreign_cpu_s, from rounding to ticks of 10 ms | |
| server_cpus | CPUs that the server may use | the caller |
| server_idle_s | seconds that those CPUs were idle | /proc/stat |
| server_interrupts_s | interrupts on those CPUs that are in no process's time | /proc/stat |
| server_processes, server_threads | at the end; server_processes_before: at the start | /proc/PID/stat |
| server_exits | processes that ended | |
| server_rss_bytes | at the end; shared pages count once for each process | /proc/PID/status |
| server_pss_bytes | at the end; shared pages count once (measure/memory.py) | /proc/PID/smaps_rollup |
| server_faults_{minor,major} | page faults, waited-for children included | /proc/PID/stat |
| server_switches_{voluntary,involuntary} | context switches of the living processes; only if none has \
threads, because the kernel keeps them for each thread | /proc/PID/status |
| throttled_s, throttled_periods | the server's cgroup waited for its CPU quota | cpu.stat |
| quota_periods | periods of that quota in which the cgroup ran | cpu.stat |
| pressure_cpu_some_s, pressure_{memory,io}_{some,full}_s | some or all tasks waited | /proc/pressure |
| memory_total_bytes, memory_available_bytes | at the end | /proc/meminfo |
| swap_ins, oom_kills | pages read back; processes killed; of the whole target | /proc/vmstat |
| listen_overflows, listen_drops | accept queue full; SYNs dropped for any reason | net/netstat |
| request_queue_drops, request_queue_cookies | SYN queue full: dropped; cookie sent | net/netstat |
| backlog_drops, aborts_on_memory, memory_pressures | socket backlog full; no memory | net/netstat |
| time_wait_overflows | above tcp_max_tw_buckets | net/netstat |
| syn_retransmits | | net/netstat |
| retransmitted_segments, segments_sent, resets_sent | | net/snmp |
| passive_opens, active_opens, attempt_fails, established_resets | connections | net/snmp |
| time_wait_before, time_wait | sockets in TIME_WAIT at the start and at the end | net/sockstat |
| sockets_in_use | TCP sockets at the end | net/sockstat |
| packets, packets_dropped, packets_squeezed | processed; backlog full; rounds cut short; of all \
namespaces | /proc/net/softnet_stat |
| clock_step_s | CLOCK_REALTIME against CLOCK_MONOTONIC on the machine of the tuner | |
| load_skew_s | between the first and the last generator to begin, with several generators | the caller |

The net/ files are those of the sandbox's network namespace. Explanations of the kernel's counters:
Documentation/networking/snmp_counter.rst and net/ipv4/proc.c.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.measure import procfs
from tuner.measure.processes import Spent, Tree, read_forest, softirq_threads, spend
from tuner.measure.procfs import (
    charges_interrupts_apart,
    grown,
    interrupts_without_process,
    passed_between,
    sum_processors,
)
from tuner.ports import CpuSet, FileReader, Lookable

SERVER = "server"
GENERATOR = "generator"
TUNER = "tuner"
INTERRUPTS = "interrupts"

STAT, BOOT_ID, VMSTAT, MEMORY, SOFTNET = (
    PurePosixPath(path)
    for path in (
        "/proc/stat",
        "/proc/sys/kernel/random/boot_id",
        "/proc/vmstat",
        "/proc/meminfo",
        "/proc/net/softnet_stat",
    )
)
PRESSURE = {resource: PurePosixPath(f"/proc/pressure/{resource}") for resource in ("cpu", "memory", "io")}
CONTROL_GROUPS = PurePosixPath("/sys/fs/cgroup")
_GROUP = re.compile(r"^0::(/.*)$", re.MULTILINE)
_OLDER_GROUP = re.compile(r"^[0-9]+:(?:[^:]+,)?cpu(?:,[^:]+)?:(/.*)$", re.MULTILINE)
_THROTTLED_S = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
"""Time in cpu.stat of version 2 and 1 → its unit in seconds."""

NET = {
    "TcpExt": {
        "ListenOverflows": "listen_overflows",
        "ListenDrops": "listen_drops",
        "TCPReqQFullDrop": "request_queue_drops",
        "TCPReqQFullDoCookies": "request_queue_cookies",
        "TCPBacklogDrop": "backlog_drops",
        "TCPAbortOnMemory": "aborts_on_memory",
        "TCPMemoryPressures": "memory_pressures",
        "TCPTimeWaitOverflow": "time_wait_overflows",
        "TCPSynRetrans": "syn_retransmits",
    },
    "Tcp": {
        "RetransSegs": "retransmitted_segments",
        "OutSegs": "segments_sent",
        "OutRsts": "resets_sent",
        "PassiveOpens": "passive_opens",
        "ActiveOpens": "active_opens",
        "AttemptFails": "attempt_fails",
        "EstabResets": "established_resets",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the target's counters said at one moment."""

    monotonic_s: float
    wall_s: float
    boot_id: str
    cpus: Mapping[str, Mapping[str, float]]
    """CPU → column of /proc/stat → seconds since boot."""
    totals: Mapping[str, float]
    """Counters that only grow, by the name that their difference gets."""
    levels: Mapping[str, float]
    """What is so at this moment."""
    groups: Mapping[str, Tree]
    server: Mapping[tuple[int, int], procfs.ProcessStatus]


def take(
    host: Lookable,
    *,
    namespace_pid: int,
    groups: Mapping[str, Sequence[int]],
    quota: PurePosixPath | None = None,
) -> Snapshot:
    """Read all counters of a target once, with one look: over SSH in one round trip.

    Done before and after the load, not during it. It costs 3 ms of CPU with 3 server processes, 6 ms with 17
    and 17 ms with 65, measured on a virtual machine with 2 CPUs that others used as well.

    Args:
        host: where to read. All pids are as its /proc shows them; that of a local sandbox is the host's.
        namespace_pid: a process in the network namespace to look at: the sandbox's first.
        groups: name → roots of its process trees. "server" and "tuner" have to be there for foreign CPU to
            mean anything, and "interrupts" with `find_interrupt_threads`. A root below another group's
            belongs to its own.
        quota: the account of the server's CPU quota, from `find_quota`.

    Raises:
        TargetError: /proc cannot be read.
    """
    net = PurePosixPath(f"/proc/{namespace_pid}/net")
    looked = _look(host, net, groups, quota)
    content = _needed(looked, STAT)
    monotonic_s, wall_s = _read_clocks()
    cpus, system = procfs.parse_stat(content)
    forest = read_forest(looked, groups)
    vmstat = {"pswpin": "swap_ins", "oom_kill": "oom_kills"}
    memory = {"MemTotal": "memory_total_bytes", "MemAvailable": "memory_available_bytes"}
    sockets = procfs.parse_sockets(_read(looked, net / "sockstat"))
    return Snapshot(
        monotonic_s=monotonic_s,
        wall_s=wall_s,
        boot_id=_needed(looked, BOOT_ID).decode().strip(),
        cpus=cpus,
        totals={
            "context_switches": system["ctxt"],
            "forks": system["processes"],
            **procfs.parse_protocols(_read(looked, net / "netstat"), NET),
            **procfs.parse_protocols(_read(looked, net / "snmp"), NET),
            **procfs.parse_named(_read(looked, VMSTAT), vmstat),
            **_pressure(looked),
            **procfs.parse_softnet(_read(looked, SOFTNET)),
            **_throttling(looked, quota),
        },
        levels={
            **procfs.parse_named(_read(looked, MEMORY), memory, scale=procfs.KIB),
            **({"time_wait": sockets["tw"], "sockets_in_use": sockets["inuse"]} if sockets else {}),
        },
        groups=forest,
        server={
            key: procfs.parse_status(content)
            for key in forest.get(SERVER, {})
            if (content := _read(looked, PurePosixPath(f"/proc/{key[0]}/status")))
        },
    )


def _look(
    host: Lookable, net: PurePosixPath, groups: Mapping[str, Sequence[int]], quota: PurePosixPath | None
) -> FileReader:
    """Return everything at once that a snapshot reads."""
    # Kernel threads have no children to look for, so their own times are all there is.
    interrupts = (PurePosixPath(f"/proc/{pid}/stat") for pid in groups.get(INTERRUPTS, ()))
    accounts = () if quota is None else (quota,)
    protocols = (net / "netstat", net / "snmp", net / "sockstat")
    return host.look(
        (STAT, BOOT_ID, VMSTAT, MEMORY, SOFTNET, *PRESSURE.values(), *protocols, *accounts, *interrupts),
        trees=[pid for name, pids in groups.items() if name != INTERRUPTS for pid in pids],
    )


def find_quota(looked: FileReader, pid: int) -> PurePosixPath | None:
    """Find the account of a process's CPU quota: cpu.stat of its control group.

    The kernel describes it in cgroup-v2.rst and, for version 1, in sched-bwc.rst. It stays the same while the
    process lives, so that a snapshot need not ask for the group first. None when the process has ended.
    """
    groups = _read(looked, PurePosixPath(f"/proc/{pid}/cgroup")).decode()
    # A controller is in one hierarchy alone: in one of version 1, if that is there.
    for tree, line in ((CONTROL_GROUPS / "cpu", _OLDER_GROUP), (CONTROL_GROUPS, _GROUP)):
        if found := line.search(groups):
            return tree / found[1].lstrip("/") / "cpu.stat"
    return None


def difference(
    before: Snapshot,
    after: Snapshot,
    *,
    generator_cpu_s: float | None = None,
    waited_for_by: str | None = TUNER,
    server_cpus: CpuSet = frozenset(),
) -> dict[str, float]:
    """Return what happened between two snapshots of the same target; the table above names it.

    Args:
        before: at the start of the window.
        after: at its end.
        generator_cpu_s: CPU seconds of a generator that ran on the target and has ended in between; None
            when it ran elsewhere.
        waited_for_by: group whose process waited for the generator, so that its seconds are in there, too.
        server_cpus: those that the server may use; all of them when it is empty.

    Raises:
        TargetError: the target was restarted in between.
    """
    if before.boot_id != after.boot_id:
        raise TargetError(
            f"counters: the target was restarted during a window (boot {before.boot_id} → {after.boot_id}). "
            "Find the reason of the restart, then run the same command again to resume."
        )
    elapsed_s = after.monotonic_s - before.monotonic_s
    passed = passed_between(before.cpus, after.cpus)
    spent = {name: spend(before.groups.get(name, {}), tree) for name, tree in after.groups.items()}
    counted = {
        "elapsed_s": elapsed_s,
        "clock_step_s": after.wall_s - before.wall_s - elapsed_s,
        **sum_processors(passed, elapsed_s),
        **grown(before.totals, after.totals),
        **after.levels,
        **({"time_wait_before": before.levels["time_wait"]} if "time_wait" in before.levels else {}),
        **(_server(before, after, spent[SERVER]) if SERVER in spent else {}),
    }
    own = {f"{name}_cpu_s": each.cpu_s for name, each in spent.items()}
    if generator_cpu_s is not None:
        waiting = f"{waited_for_by}_cpu_s"
        if waiting in own:
            own[waiting] = max(0.0, own[waiting] - generator_cpu_s)
        own["generator_cpu_s"] = own.get("generator_cpu_s", 0.0) + generator_cpu_s
    without_process = partial(
        interrupts_without_process,
        elapsed_s=elapsed_s,
        charged_apart=charges_interrupts_apart(after.cpus),
        from_outside=generator_cpu_s is None,
    )
    interrupts_s = without_process(passed, in_threads_s=_softirq_threads_s(before, after))
    of_server = {cpu: passed[cpu] for cpu in passed if not server_cpus or int(cpu[3:]) in server_cpus}
    foreign_s = max(0.0, counted["busy_s"] - sum(own.values()) - interrupts_s)
    return {
        **counted,
        **own,
        "server_cpus": float(len(of_server)),
        "server_idle_s": sum(columns["idle"] + columns["iowait"] for columns in of_server.values()),
        # What ksoftirqd did there is the server's work, too, so it is not taken out.
        "server_interrupts_s": without_process(of_server, in_threads_s=0.0),
        "foreign_cpu_s": foreign_s,
        "foreign_cpu_share": foreign_s / elapsed_s,
        "foreign_cpu_error_s": sum(each.cpu_error_s**2 for each in spent.values()) ** 0.5,
    }


def _softirq_threads_s(before: Snapshot, after: Snapshot) -> float:
    return sum(
        spend(softirq_threads(before.groups.get(name, {})), softirq_threads(tree)).cpu_s
        for name, tree in after.groups.items()
    )


def _read_clocks() -> tuple[float, float]:
    """Read monotonic and wall clock at the same time: what comes in between would look like a step."""
    readings = [(time.monotonic(), time.time(), time.monotonic()) for _ in range(3)]
    first_s, wall_s, last_s = min(readings, key=lambda reading: reading[2] - reading[0])
    return (first_s + last_s) / 2, wall_s


def _server(before: Snapshot, after: Snapshot, spent: Spent) -> dict[str, float]:
    tree = after.groups[SERVER]
    counted = {
        "server_processes": float(len(tree)),
        "server_processes_before": float(len(before.groups.get(SERVER, {}))),
        "server_threads": float(sum(process.threads for process in tree.values())),
        "server_exits": float(spent.exits),
        "server_rss_bytes": float(sum(status.resident_bytes for status in after.server.values())),
        "server_faults_minor": float(spent.minor_faults),
        "server_faults_major": float(spent.major_faults),
    }
    if all(process.threads == 1 for process in tree.values()):
        first = procfs.ProcessStatus(resident_bytes=0, voluntary_switches=0, involuntary_switches=0)
        pairs = [(before.server.get(key, first), status) for key, status in after.server.items()]
        counted["server_switches_voluntary"] = float(
            sum(now.voluntary_switches - then.voluntary_switches for then, now in pairs)
        )
        counted["server_switches_involuntary"] = float(
            sum(now.involuntary_switches - then.involuntary_switches for then, now in pairs)
        )
    return counted


def _pressure(host: FileReader) -> dict[str, float]:
    found: dict[str, float] = {}
    for resource, path in PRESSURE.items():
        for kind, seconds in procfs.parse_pressure(_read(host, path)).items():
            # Of the whole system, `full` has no meaning for the CPU and is always 0 (psi.rst).
            if (resource, kind) != ("cpu", "full"):
                found[f"pressure_{resource}_{kind}_s"] = seconds
    return found


def _throttling(host: FileReader, quota: PurePosixPath | None) -> dict[str, float]:
    """Read what the CPU quota of the server's own control group took."""
    stat = b"" if quota is None else _read(host, quota)
    counted = procfs.parse_named(stat, {"nr_throttled": "throttled_periods", "nr_periods": "quota_periods"})
    for name, unit_s in _THROTTLED_S.items():
        waited = procfs.parse_named(stat, {name: "throttled_s"})
        counted |= {key: count * unit_s for key, count in waited.items()}
    return counted


def _read(host: FileReader, path: PurePosixPath) -> bytes:
    """Read a file that not every kernel has."""
    return host.read(path).content or b""


def _needed(host: FileReader, path: PurePosixPath) -> bytes:
    content = _read(host, path)
    if not content:
        raise TargetError(
            f"counters: {path} cannot be read on the target. tuner needs Linux with /proc mounted."
        )
    return content
