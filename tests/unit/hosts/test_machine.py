"""What a machine is, read from its kernel's files."""

import os
from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.errors import TargetError
from tuner.hosts.machine import CAP_SYS_RESOURCE, FILES, narrow, parse_cpus, read_machine
from tuner.ports import FileState
from tuner.testing.fakes import MemoryHost

MAY_RAISE = 1 << CAP_SYS_RESOURCE
CONTENTS = {
    "name": "web1\n",
    "kernel": "6.1.0\n",
    "online": "0-3\n",
    "memory": "MemTotal:        2048000 kB\nMemFree: 1 kB\n",
    "processors": "processor\t: 0\nmodel name\t: Fast CPU\n",
    "nr_open": "1000000\n",
    "somaxconn": "128\n",
    "status": "CapEff:\t0000000000000000\nCpus_allowed_list:\t0,2-3\n",
    "limits": "Max open files            1024                 20000                files\n",
    "boot": "b\n",
}


def host_with(**changed: str) -> MemoryHost:
    contents = {**CONTENTS, **changed}
    return MemoryHost(
        files={FILES[name]: FileState(content=text.encode()) for name, text in contents.items()}
    )


def test_a_machine_is_read_from_its_kernel():
    machine = read_machine(host_with())

    assert (machine.name, machine.kernel, machine.cpu) == ("web1", "6.1.0", "Fast CPU")
    assert (machine.online_cores, machine.cores, machine.allowed) == (4, 3, frozenset({0, 2, 3}))
    assert (machine.memory_mib, machine.somaxconn, machine.boot_id) == (2000, 128, "b")
    assert machine.limits == "3 of 4 CPUs"


NEWER = {
    "system.slice/web.service/cpu.max": "150000 100000\n",
    "system.slice/web.service/memory.max": "max\n",
    "system.slice/cpu.max": "max 100000\n",
    "system.slice/memory.max": f"{512 * 2**20}\n",
}
"""Control groups of version 2; the root has no limits."""
OLDER = {
    "cpu/web/cpu.cfs_quota_us": "-1\n",
    "cpu/web/cpu.cfs_period_us": "100000\n",
    "cpu/cpu.cfs_quota_us": "50000\n",
    "cpu/cpu.cfs_period_us": "100000\n",
    "memory/web/memory.limit_in_bytes": "9223372036854771712\n",
    "memory/memory.limit_in_bytes": f"{64 * 2**20}\n",
}
"""Those of version 1, as a container sees them: the roots are the container's own groups."""


def limited_host(groups: str, files: Mapping[str, str], **changed: str) -> MemoryHost:
    host = host_with(groups=groups, **changed)
    for path, text in files.items():
        host.files[PurePosixPath("/sys/fs/cgroup", path)] = FileState(content=text.encode())
    return host


@pytest.mark.parametrize(
    ("groups", "files", "cores", "memory_mib", "limits"),
    [
        (
            "0::/system.slice/web.service\n",
            NEWER,
            2,
            512,
            "3 of 4 CPUs, CPU quota 1.5 of 3 CPUs, 512 of 2,000 MiB",
        ),
        (
            "5:memory:/web\n4:cpu,cpuacct:/web\n1:name=systemd:/init\n0::/\n",
            OLDER,
            1,
            64,
            "3 of 4 CPUs, CPU quota 0.5 of 3 CPUs, 64 of 2,000 MiB",
        ),
        ("0::/elsewhere\n", {"cpu.max": "800000 100000\n", "memory.max": "none\n"}, 3, 2000, "3 of 4 CPUs"),
        ("0::/elsewhere\n", {"cpu.max": "1 0\n", "memory.max": f"{'9' * 5000}\n"}, 3, 2000, "3 of 4 CPUs"),
    ],
)
def test_the_limits_of_every_control_group_up_to_the_root_bound_what_may_be_used(
    groups: str, files: Mapping[str, str], cores: int, memory_mib: int, limits: str
):
    machine = read_machine(limited_host(groups, files))

    assert (machine.cores, machine.memory_mib, machine.limits) == (cores, memory_mib, limits)
    assert (machine.online_cores, machine.memory_total_mib) == (4, 2000)


def process(pid: int, cpus: str, group: str) -> dict[PurePosixPath, FileState]:
    contents = {"status": f"Cpus_allowed_list:\t{cpus}\n", "cgroup": f"0::/{group}\n"}
    return {
        PurePosixPath(f"/proc/{pid}/{name}"): FileState(content=text.encode())
        for name, text in contents.items()
    }


def test_services_have_the_limits_of_their_own_control_groups():
    host = limited_host("0::/system.slice/web.service\n", NEWER)
    host.files |= process(7, "0-1", "small") | process(8, "1-2", "system.slice/web.service")
    host.files |= process(9, "3", "free")
    host.files[PurePosixPath("/sys/fs/cgroup/small/cpu.max")] = FileState(content=b"50000 100000\n")
    session = read_machine(host)

    assert narrow(session, host, [7]).limits == "2 of 4 CPUs, CPU quota 0.5 of 2 CPUs"
    both = narrow(session, host, [7, 8])
    assert (both.allowed, both.cores, both.memory_mib) == (frozenset({0, 1, 2}), 2, 512)
    assert narrow(session, host, [7, 9]).limits == "3 of 4 CPUs"
    # Of what has ended, or may not be looked at, nothing is known.
    assert narrow(session, host, [1234]) == narrow(session, host, []) == session


def test_whoever_may_raise_limits_can_open_as_many_files_as_the_kernel_allows():
    assert read_machine(host_with(status=f"CapEff:\t{MAY_RAISE | 1:016x}\n")).open_files_max == 1_000_000
    assert (
        read_machine(host_with(status=f"CapEff:\t{MAY_RAISE:016x}\n", nr_open="")).open_files_max == 1_048_576
    )


def test_others_can_open_as_many_files_as_their_hard_limit():
    assert read_machine(host_with()).open_files_max == 20_000
    assert read_machine(host_with(nr_open="500")).open_files_max == 500
    assert read_machine(host_with(limits="Max open files 1024 unlimited files\n")).open_files_max == 1_000_000


@pytest.mark.parametrize("missing", ["memory", "online"])
def test_what_is_no_linux_is_refused(missing: str):
    with pytest.raises(TargetError, match="tuner cannot read the memory or the CPUs of this host"):
        read_machine(host_with(**{missing: ""}))


def test_lists_of_cpus_are_read():
    assert parse_cpus("0,4-6\n") == (0, 4, 5, 6)
    with pytest.raises(ValueError, match="is no list of CPUs"):
        parse_cpus("")


def test_this_machine_is_read():
    machine = read_machine(LocalHost())

    assert machine.online_cores == os.cpu_count()
    assert machine.allowed == os.sched_getaffinity(0)
    assert 1 <= machine.cores <= len(machine.allowed)
    assert machine.memory_mib > 100
    assert (
        LocalHost().read(PurePosixPath("/proc/sys/kernel/hostname")).content == f"{machine.name}\n".encode()
    )
