"""What is read of one running server: the memory of its workers."""

import os
from pathlib import PurePosixPath

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.advice.server_look import KnownFiles, RunningProcess, find_first, find_sizes, list_processes
from tuner.ports import FileState

Worker = tuple[int, int]
"""Its memory (PSS) in MiB, and its CPU time in ticks."""


def read_workers(*workers: Worker) -> dict[str, float]:
    """Return what is found of the memory of these workers."""
    contents = {}
    for pid, (size_mib, ticks) in enumerate(workers, start=8):
        contents[f"{pid}/smaps_rollup"] = f"Rss: 90000 kB\nPss: {1024 * size_mib} kB\n"
        contents[f"{pid}/stat"] = f"{pid} (php-fpm) S 7 7 7 0 -1 64 1 0 0 0 {ticks} 0 0 0 20 0 1 0 5 1"
    states = {
        PurePosixPath("/proc", name): FileState(content=text.encode()) for name, text in contents.items()
    }
    return find_sizes(KnownFiles(states), range(8, 8 + len(workers)))


@pytest.mark.parametrize(
    ("workers", "grown_mib"),
    [([(1, 0), (1, 0)], 0), ([(1, 0), (40, 12)], 40), ([(20, 3), (40, 12)], 30)],
    ids=["all are new", "one has served requests", "all have served requests"],
)
def test_the_memory_of_a_new_worker_is_no_measure(workers: list[Worker], grown_mib: float):
    found = read_workers(*workers)

    assert found["used_mib"] == sum(size_mib for size_mib, _ in workers)
    assert found["grown_mib"] == grown_mib


def test_memory_that_cannot_be_read_is_no_fact():
    assert find_sizes(KnownFiles({}), [8]) == {}


def test_a_process_of_root_is_looked_at_before_what_another_user_named_like_it():
    title = "nginx: master process nginx"
    forged = RunningProcess(pid=80, parent=1, command=f"{title} -c /home/eve/nginx.conf", user=1000)
    service = RunningProcess(pid=812, parent=1, command=title)
    worker = RunningProcess(pid=813, parent=812, command="nginx: worker process", user=33)

    assert find_first([forged, service, worker], "^nginx: master process") == (service, forged)


def test_the_user_of_each_process_is_known():
    found = {each.pid: each for each in list_processes(LocalHost())}

    assert found[os.getpid()].user == os.geteuid()
    assert found[os.getpid()].parent == os.getppid()
