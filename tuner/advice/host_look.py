"""Reads the kernel's counters of a host at two moments, and turns them into facts."""

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.advice.log_lines import Here
from tuner.hosts.machine import Machine
from tuner.measure import procfs
from tuner.ports import Command, Host, Scalar

FILES = {
    name: PurePosixPath(path)
    for name, path in {
        "netstat": "/proc/net/netstat",
        "snmp": "/proc/net/snmp",
        "sockstat": "/proc/net/sockstat",
        "softnet": "/proc/net/softnet_stat",
        "conntrack": "/proc/net/stat/nf_conntrack",
        "tracked": "/proc/sys/net/netfilter/nf_conntrack_count",
        "tracked_max": "/proc/sys/net/netfilter/nf_conntrack_max",
        "ports": "/proc/sys/net/ipv4/ip_local_port_range",
        "files": "/proc/sys/fs/file-nr",
        "neighbours": "/proc/sys/net/ipv4/neigh/default/gc_thresh3",
        "vmstat": "/proc/vmstat",
        "uptime": "/proc/uptime",
        "meminfo": "/proc/meminfo",
        "stat": "/proc/stat",
        "cpu": "/proc/pressure/cpu",
        "memory": "/proc/pressure/memory",
        "io": "/proc/pressure/io",
    }.items()
}
_PROTOCOLS = {
    "TcpExt": {
        "ListenOverflows": "listen_overflows", "ListenDrops": "listen_drops",
        "TCPReqQFullDrop": "syn_drops", "SyncookiesSent": "cookies_sent",
        "TCPBacklogDrop": "backlog_drops", "TCPTimeWaitOverflow": "time_wait_overflows",
        "TCPMemoryPressures": "tcp_memory_pressures", "TCPAbortOnMemory": "tcp_memory_aborts",
    },
    "Tcp": {"RetransSegs": "retransmits", "OutSegs": "segments", "PassiveOpens": "passive_opens"},
}  # fmt: skip
_EVENTS = {"oom_kill": "oom_kills", "pswpout": "pages_swapped_out"}
_MEMORY = {"MemAvailable": "available_mib", "SwapTotal": "swap_mib", "SwapFree": "swap_free_mib"}
_COUNT_PORTS = """
ss -Htan | awk -v low="$1" -v high="$2" '
  { parts = split($4, local, ":"); port = local[parts] }
  port >= low && port <= high && ++used[$5] > most { most = used[$5] }
  END { print most + 0 }'
"""
_NUMBERS = (("tracked", "conntrack"), ("tracked_max", "conntrack_max"), ("neighbours", "neighbours_max"))
_IDLE = ("idle", "iowait")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLook:
    """The kernel's files at one moment."""

    contents: Mapping[str, bytes]
    at_s: float

    @property
    def counters(self) -> dict[str, float]:
        """Return what the kernel has counted since it booted."""
        found = procfs.parse_softnet(self.contents["softnet"])
        found |= procfs.parse_named(self.contents["vmstat"], _EVENTS)
        for name in ("netstat", "snmp"):
            found |= procfs.parse_protocols(self.contents[name], _PROTOCOLS)
        drops = _count_untracked(self.contents["conntrack"])
        return found if drops is None else found | {"conntrack_drops": drops}


def look_at_host(host: Host) -> HostLook:
    """Read the kernel's files now; one that cannot be read is empty."""
    look = host.look(tuple(FILES.values()))
    contents = {name: look.read(path).content or b"" for name, path in FILES.items()}
    return HostLook(contents=contents, at_s=time.monotonic())


def find_host_facts(machine: Machine, before: HostLook, after: HostLook) -> dict[str, Scalar]:
    """Return the facts of a host from two looks at it."""
    look_s = max(after.at_s - before.at_s, 0.001)
    facts: dict[str, Scalar] = {
        "cores": machine.online_cores, "memory_mib": machine.memory_total_mib,
        "somaxconn": machine.somaxconn, "open_files_max": machine.open_files_max, "look_s": look_s,
    }  # fmt: skip
    earlier = before.counters
    for name, count in after.counters.items():
        facts[name] = count - earlier.get(name, 0)
        facts[f"{name}_ever"] = count
    facts |= _find_sockets(after)
    facts |= _find_memory(after)
    facts |= _find_shares(before, after, look_s)
    if uptime := after.contents["uptime"].split():
        facts["booted_h"] = float(uptime[0]) / 3600
    files = after.contents["files"].split()
    if len(files) == 3:  # noqa: PLR2004 - fs.rst: allocated, free, maximum
        facts |= {"files_open": int(files[0]), "files_max": int(files[2])}
    return facts


def _find_sockets(look: HostLook) -> dict[str, Scalar]:
    facts: dict[str, Scalar] = {}
    counted = procfs.parse_sockets(look.contents["sockstat"])
    for key, name in (("tw", "time_wait"), ("orphan", "orphans")):
        if key in counted:
            facts[name] = counted[key]
    if ends := port_range(look):
        facts["ports"] = ends[1] - ends[0] + 1
    for key, name in _NUMBERS:
        if (number := look.contents[key].strip()).isdigit():
            facts[name] = int(number)
    return facts


def port_range(look: HostLook) -> tuple[int, int] | None:
    """Return the first and the last local port for outgoing connections."""
    ends = look.contents["ports"].split()
    return (int(ends[0]), int(ends[1])) if len(ends) == 2 else None  # noqa: PLR2004 - low and high


def count_ports(host: Host, look: HostLook) -> dict[str, Scalar]:
    """Count the local ports for outgoing connections that are in use to one remote address, at most."""
    if not (ends := port_range(look)):
        return {}
    counted = host.run(("sh", "-c", _COUNT_PORTS, "ports", *map(str, ends)), timeout_s=5).stdout.split()
    return {"ports_used": int(counted[0])} if counted and counted[0].isdigit() else {}


def find_queues(host: Host) -> dict[str, Scalar]:
    """Return the fullest accept queue of a host, and the socket with the most requests (SYN_RECV)."""
    asked = (("ss", "-Hltn"), ("ss", "-Htn", "state", "syn-recv"))
    listed, begun = (
        [row.split() for row in done.stdout.decode(errors="replace").splitlines()]
        for done in host.run_all([Command(argv=argv, may_fail=True) for argv in asked])
    )
    # Columns of the first: state, waiting, limit, address; the second lacks the state.
    queues = [
        (int(each[1]), int(each[2]), each[3])
        for each in listed
        if len(each) > 4 and each[1].isdigit() and each[2].isdigit()  # noqa: PLR2004 - columns
    ]
    if not queues:
        return {}
    ports = Counter(each[2].rpartition(":")[2] for each in begun if len(each) > 3)  # noqa: PLR2004 - columns
    waiting, limit, address = max(queues, key=lambda each: each[0] / max(1, each[1]))
    _, asked_limit, asked_at = max(queues, key=lambda each: ports[each[2].rpartition(":")[2]])
    return {
        "fullest_waiting": waiting, "fullest_limit": limit, "fullest_address": address,
        "requests_waiting": ports[asked_at.rpartition(":")[2]], "requests_limit": asked_limit,
        "requests_address": asked_at,
    }  # fmt: skip


def choose_queues(before: Mapping[str, Scalar], after: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return of two looks the fuller queue of connections, and the fuller one of requests."""
    chosen: dict[str, Scalar] = {}
    for kind in ("fullest", "requests"):
        names = [f"{kind}_{each}" for each in ("waiting", "limit", "address")]
        looks = [look for look in (before, after) if names[0] in look]
        if looks:
            fuller = max(looks, key=lambda look: float(look[names[0]]) / max(1.0, float(look[names[1]])))
            chosen |= {name: fuller[name] for name in names}
    return chosen


def find_here(host: Host) -> Here:
    """Return the network namespace of a host, and the TCP ports at which something listens in it."""
    asked = (("readlink", "/proc/self/ns/net"), ("ss", "-Hltn"))
    named, listed = host.run_all([Command(argv=argv, may_fail=True) for argv in asked])
    network = re.search(rb"\[(\d{1,10})\]", named.stdout)
    ports = re.findall(rb"^\S+ +\d+ +\d+ +\S+:(\d{1,5})\b", listed.stdout, re.MULTILINE)
    return Here(network=int(network[1]) if network else None, ports=frozenset(map(int, ports)))


def _find_memory(look: HostLook) -> dict[str, Scalar]:
    found = procfs.parse_named(look.contents["meminfo"], _MEMORY)
    mib = {name: kib / 1024 for name, kib in found.items()}
    facts: dict[str, Scalar] = {"available_mib": mib["available_mib"]} if "available_mib" in mib else {}
    if "swap_mib" in mib:
        facts["swap_used_mib"] = mib["swap_mib"] - mib.get("swap_free_mib", 0)
    return facts


def _find_shares(before: HostLook, after: HostLook, look_s: float) -> dict[str, Scalar]:
    """Return which share of the look CPUs were idle and tasks waited."""
    facts: dict[str, Scalar] = {}
    for name in ("cpu", "memory", "io"):
        waited = [procfs.parse_pressure(look.contents[name]).get("some") for look in (before, after)]
        if waited[0] is not None and waited[1] is not None:
            facts[f"{name}_pressure"] = min(1.0, (waited[1] - waited[0]) / look_s)
    (cpus_before, _), (cpus_after, _) = (procfs.parse_stat(look.contents["stat"]) for look in (before, after))
    passed = {
        cpu: {column: now - cpus_before[cpu].get(column, 0) for column, now in columns.items()}
        for cpu, columns in cpus_after.items()
        if cpu in cpus_before
    }
    total = sum(sum(columns.values()) for columns in passed.values())
    if total > 0:
        facts["idle_share"] = sum(columns[each] for columns in passed.values() for each in _IDLE) / total
    return facts


def _count_untracked(content: bytes) -> float | None:
    """Sum the drops of all CPUs; the columns are hexadecimal (net/netfilter/nf_conntrack_standalone.c)."""
    titles, *rows = [line.split() for line in content.decode().splitlines()] or [[]]
    if "drop" not in titles:
        return None
    at = titles.index("drop")
    return float(sum(int(row[at], base=16) for row in rows if len(row) > at))
