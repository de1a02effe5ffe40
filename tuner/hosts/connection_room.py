"""How many connections a load generator can hold on its host: open files, local ports, memory."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tuner.errors import UsageError
from tuner.hosts.machine import Machine
from tuner.ports import Host

DEFAULT_PORTS = 60_999 - 32_768 + 1
"""Default net.ipv4.ip_local_port_range (ip-sysctl.rst)."""
MOST_OF_ONE_ADDRESS = DEFAULT_PORTS // 2
"""Connections that are opened to one address: connect() takes every other port first, and is slow to find the
rest (net/ipv4/inet_hashtables.c, __inet_hash_connect)."""
SPARE_FILES = 64
"""Open files of a generator besides its connections."""
SPARE_PORTS = 2_000
"""For what else connects, and for ports that are not free again yet."""
KIB_PER_CONNECTION = 32
"""Of both ends on one machine: two sockets with their buffers, and what generator and server keep of it."""
MEMORY_SHARE = 0.5
RANGE = PurePosixPath("/proc/sys/net/ipv4/ip_local_port_range")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One thing that connections run out of."""

    most: int
    """Connections for which it does."""
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRoom:
    """Everything that bounds the connections of one load host."""

    limits: tuple[Limit, ...] = ()

    def refuse(self, connections: int, name: str = "`connections:`") -> None:
        """Raise UsageError for more connections than there is room for, with the limit and the remedy."""
        least = min(self.limits, key=lambda limit: limit.most, default=None)
        if least is not None and connections > least.most:
            raise UsageError(
                f"load: {connections:,} connections are too many: {least.reason}. {least.remedy}, or lower "
                f"{name} to {least.most:,}."
            )


UNBOUNDED = ConnectionRoom()
"""Of a load host that nobody has looked at."""


def find_room(machine: Machine, *, ports: int | None = None) -> ConnectionRoom:
    """Return what bounds connections that are made on a machine.

    Args:
        machine: where the generator runs.
        ports: local ports that it has; None where there are as many addresses as it takes.
    """
    kib = MEMORY_SHARE * machine.memory_mib * 1024
    limits = [
        Limit(
            most=int(kib / KIB_PER_CONNECTION),
            reason=f"their buffers need more than half of the {machine.memory_mib:,} MiB of {machine.name}",
            remedy="Use a load host with more memory",
        ),
    ]
    files = machine.open_files_max - SPARE_FILES
    # Where there are addresses for several generators, none opens more than that.
    if ports is not None or files < MOST_OF_ONE_ADDRESS:
        limits.append(
            Limit(
                most=files,
                reason=f"a process on {machine.name} may open {machine.open_files_max:,} files",
                remedy="Raise the hard limit (`ulimit -Hn`, LimitNOFILE=, or fs.nr_open for root)",
            )
        )
    if ports is not None:
        limits.append(
            Limit(
                most=max(0, ports - SPARE_PORTS),
                reason=f"{machine.name} has {ports:,} local ports for one address",
                remedy="Widen net.ipv4.ip_local_port_range on this host, name more hosts in `load.host:`",
            )
        )
    return ConnectionRoom(limits=tuple(limits))


def add_rooms(rooms: Sequence[ConnectionRoom]) -> ConnectionRoom:
    """Return what bounds connections that are shared out evenly over several hosts."""
    limits = (limit for room in rooms for limit in room.limits)
    return ConnectionRoom(limits=tuple(replace(limit, most=len(rooms) * limit.most) for limit in limits))


def read_ports(host: Host) -> int | None:
    """Read how many local ports a host has for one destination; None where it does not say."""
    found = re.findall(rb"\d+", host.read(RANGE).content or b"")
    return int(found[1]) - int(found[0]) + 1 if len(found) == 2 else None  # noqa: PLR2004 - first and last
