"""A snapshot asks a host once: over SSH each question more would be a round trip."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import pytest

from tests.unit.measure.golden import Moment
from tuner.measure.counters import find_quota, take
from tuner.measure.processes import find_interrupt_threads
from tuner.ports import ABSENT, FileReader, FileState
from tuner.testing.fakes import MemoryHost

OF_A_TREE = ("stat", "status", "limits", "cmdline", "task/{}/children")
"""What a look gives of each process in a tree: its times, threads, limits, command line and children."""
SERVER = 28762


class OneLookHost(MemoryHost):
    """Gives a file only to a look that named it, or a process above it."""

    looks: int = 0

    def look(self, paths: Sequence[PurePosixPath], *, trees: Sequence[int] = ()) -> FileReader:
        self.looks += 1
        known = {path: self.files.get(path, ABSENT) for path in paths}
        waiting = list(trees)
        while waiting:
            pid = waiting.pop()
            for name in OF_A_TREE:
                path = PurePosixPath(f"/proc/{pid}") / name.format(pid)
                known[path] = self.files.get(path, ABSENT)
            children = known[PurePosixPath(f"/proc/{pid}/task/{pid}/children")].content
            waiting += [int(child) for child in (children or b"").split()]
        return Known(known)

    def read(self, path: PurePosixPath) -> FileState:
        raise AssertionError(f"{path} is read by itself")


class Known:
    def __init__(self, files: dict[PurePosixPath, FileState]) -> None:
        self.files = files

    def read(self, path: PurePosixPath) -> FileState:
        assert path in self.files, f"{path} was not looked at"

        return self.files[path]


@pytest.fixture
def moment():
    loaded = Moment("loaded.before")
    loaded.files["/sys/fs/cgroup/cpu/cpu.stat"] = "nr_throttled 3\nthrottled_time 250000\n"
    return loaded


def test_a_snapshot_is_one_look_and_gives_what_single_reads_give(moment):
    host = OneLookHost(files=moment.host().files)
    groups = {name: moment.pids(name) for name in ("server", "tuner", "interrupts")}
    quota = find_quota(moment.host(), SERVER)

    taken = take(host, namespace_pid=moment.pids("sandbox")[0], groups=groups, quota=quota)

    singly = moment.take()
    assert host.looks == 1
    assert taken.totals == singly.totals
    assert taken.levels == singly.levels
    assert taken.groups == singly.groups
    assert taken.server == singly.server
    assert {"throttled_s", "pressure_io_full_s", "passive_opens", "packets"} <= taken.totals.keys()


def test_interrupt_threads_are_found_in_one_look():
    threads = {14: "ksoftirqd/0", 15: "rcu_preempt", 16: "irq/24-nvme0q0", 17: "napi/eth0-1"}
    names = {2: "kthreadd"} | threads
    stat = "{} ({}) S 2 " + "0 " * 40
    files = {f"/proc/{pid}/stat": stat.format(pid, name) for pid, name in names.items()}
    files["/proc/2/task/2/children"] = " ".join(map(str, threads))
    host = OneLookHost(
        files={PurePosixPath(path): FileState(content=text.encode()) for path, text in files.items()}
    )

    assert find_interrupt_threads(host) == (14, 16, 17)
    assert host.looks == 1


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ("0::/system.slice/nginx.service\n", "/sys/fs/cgroup/system.slice/nginx.service/cpu.stat"),
        ("0::/\n", "/sys/fs/cgroup/cpu.stat"),
        ("4:cpu:/web\n1:name=systemd:/init\n0::/web\n", "/sys/fs/cgroup/cpu/web/cpu.stat"),
        ("4:cpu,cpuacct:/web\n", "/sys/fs/cgroup/cpu/web/cpu.stat"),
        ("4:cpuset:/web\n3:cpuacct:/web\n", None),
        ("", None),
    ],
)
def test_the_account_of_a_cpu_quota_is_that_of_the_process_own_group(groups, found):
    path = PurePosixPath("/proc/7/cgroup")
    host = MemoryHost(files={path: FileState(content=groups.encode())})

    assert find_quota(host, 7) == (None if found is None else PurePosixPath(found))


def test_the_account_is_inside_the_tree_of_groups_whatever_a_group_is_called():
    host = MemoryHost(files={PurePosixPath("/proc/7/cgroup"): FileState(content=b"0:://etc\n")})

    assert re.match("/sys/fs/cgroup/", str(find_quota(host, 7)))
