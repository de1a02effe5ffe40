"""What a machine is, read from its kernel's files."""

import os
from pathlib import PurePosixPath

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.errors import TargetError
from tuner.hosts.machine import CAP_SYS_RESOURCE, FILES, parse_cpus, read_machine
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
    assert (machine.cores, machine.allowed) == (4, frozenset({0, 2, 3}))
    assert (machine.memory_mib, machine.somaxconn, machine.boot_id) == (2000, 128, "b")


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
    with pytest.raises(TargetError, match="its memory or CPUs cannot be read"):
        read_machine(host_with(**{missing: ""}))


def test_lists_of_cpus_are_read():
    assert parse_cpus("0,4-6\n") == (0, 4, 5, 6)
    with pytest.raises(ValueError, match="is no list of CPUs"):
        parse_cpus("")


def test_this_machine_is_read():
    machine = read_machine(LocalHost())

    assert machine.cores == os.cpu_count()
    assert machine.allowed == os.sched_getaffinity(0)
    assert machine.memory_mib > 100
    assert (
        LocalHost().read(PurePosixPath("/proc/sys/kernel/hostname")).content == f"{machine.name}\n".encode()
    )
