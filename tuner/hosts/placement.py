"""Which CPUs the server gets and which the load generator: disjoint ones where there are enough."""

import contextlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.hosts.machine import parse_cpus
from tuner.ports import CpuSet, Host

TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
USUAL = 4
"""One CPU in so many is the generator's: wrk and h2load need less CPU per request than the servers do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Who runs where, when server and generator are on the same machine."""

    server_cpus: CpuSet
    generator_cpus: CpuSet
    note: str
    """One line for reports."""
    is_co_located: bool = True
    """Whether both are on the same machine."""


def place(
    allowed: Collection[int], cores: Sequence[CpuSet] = (), *, generator_share: float = 1 / USUAL
) -> Placement:
    """Divide the CPUs between the server and the generator.

    Args:
        allowed: CPUs that may be used, as os.sched_getaffinity gives them.
        cores: CPUs that share a physical core, from `read_cores`; each CPU is its own core when left out.
        generator_share: part of the cores that the generator gets; both sides get one at least.
    """
    groups = _group(frozenset(allowed), cores)
    if len(groups) == 1 and len(groups[0]) == 1:
        only = groups[0]
        return Placement(
            server_cpus=only, generator_cpus=only,
            note=f"co-located: server and generator share the only CPU, {_show(only)}",
        )  # fmt: skip
    caution = ""
    if len(groups) == 1:
        groups = [frozenset({cpu}) for cpu in sorted(groups[0])]
        caution = " (threads of one core)"
    # The last ones: interrupts tend to be handled by the first.
    count = min(max(1, math.floor(len(groups) * generator_share)), len(groups) - 1)
    server = frozenset[int]().union(*groups[:-count])
    generator = frozenset[int]().union(*groups[-count:])
    note = f"co-located: server on {_show(server)}, generator on {_show(generator)}{caution}"
    return Placement(server_cpus=server, generator_cpus=generator, note=note)


def choose_cpus(allowed: Collection[int], cores: Sequence[CpuSet], most: int) -> CpuSet:
    """Choose at most so many CPUs, on different physical cores as long as there are any.

    A CPU quota grants time on any CPU. Processes that are kept on no more CPUs than it pays for do not use it
    up early in each period, after which the kernel would stop them until the next one.
    """
    groups = _group(frozenset(allowed), cores)
    ranked = ((turn, cpu) for group in groups for turn, cpu in enumerate(sorted(group)))
    return frozenset(cpu for _, cpu in sorted(ranked)[:most])


def co_located(
    allowed: Collection[int], cores: Sequence[CpuSet] = (), *, server_cpus: Collection[int] = ()
) -> Placement:
    """Return the generator CPUs of the machine whose installed servers run wherever the kernel puts them.

    Args:
        allowed: CPUs that the generator may use.
        cores: CPUs that share a physical core.
        server_cpus: CPUs that the servers may use; those of the generator when left out.
    """
    divided = place(allowed, cores)
    return Placement(
        server_cpus=frozenset(server_cpus or allowed), generator_cpus=divided.generator_cpus,
        note=f"co-located: server anywhere, generator on {_show(divided.generator_cpus)}",
    )  # fmt: skip


def remote(target: Collection[int]) -> Placement:
    """Return the placement of a server that has its machine for itself; load hosts place their generators."""
    return Placement(
        server_cpus=frozenset(target), generator_cpus=frozenset(), is_co_located=False,
        note="apart: server and load generator run on separate machines",
    )  # fmt: skip


def read_cores(host: Host, allowed: Collection[int]) -> tuple[CpuSet, ...]:
    """Read which CPUs share a physical core; those of which the kernel says nothing are left out."""
    cores: list[CpuSet] = []
    look = host.look([PurePosixPath(TOPOLOGY.format(cpu)) for cpu in sorted(allowed)])
    for cpu in sorted(allowed):
        content = look.read(PurePosixPath(TOPOLOGY.format(cpu))).content
        with contextlib.suppress(ValueError):
            cores.append(frozenset(parse_cpus((content or b"").decode())))
    return tuple(dict.fromkeys(cores))


def _group(allowed: CpuSet, cores: Sequence[CpuSet]) -> list[CpuSet]:
    """Sort CPUs into physical cores; what is not known to share one stands alone."""
    known = [core & allowed for core in cores if core & allowed]
    alone = allowed.difference(*known)
    return sorted([*known, *(frozenset({cpu}) for cpu in alone)], key=min)


def _show(cpus: CpuSet) -> str:
    listed = ", ".join(str(cpu) for cpu in sorted(cpus))
    return f"CPU {listed}" if len(cpus) == 1 else f"CPUs {listed}"
