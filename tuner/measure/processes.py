"""Follows processes and their descendants through /proc, and sums what they used between two moments."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.hosts.load_places import ASK_SESSION
from tuner.measure.procfs import USER_HZ, ProcessTimes, parse_process
from tuner.ports import FileReader, Host, Lookable

KTHREADD = 2
"""Parent of all kernel threads (kernel/kthread.c); in a container the pid may be anybody's."""
SOFTIRQ_THREAD = "ksoftirqd/"
INTERRUPT_THREADS = (SOFTIRQ_THREAD, "napi/", "irq/")
"""Kernel threads that do the work of interrupts: kernel/softirq.c, net/core/dev.c (threaded NAPI),
kernel/irq/manage.c (threaded handlers)."""

Tree = Mapping[tuple[int, int], ProcessTimes]
"""Processes by pid and start: a pid alone may come back as another process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a tree used between two moments."""

    cpu_s: float
    cpu_error_s: float
    """Standard error of `cpu_s`: /proc rounds each number down to a tick."""
    minor_faults: int
    major_faults: int
    exits: int
    """Processes that were there before and are not any more."""


def read_forest(host: FileReader, groups: Mapping[str, Sequence[int]]) -> dict[str, Tree]:
    """Read the trees of all groups; a process belongs to the group of the nearest root above it.

    Only children of main threads are found: `/proc/PID/task` cannot be listed through a Host. Servers and the
    tuner fork from their main threads.
    """
    roots = {pid for pids in groups.values() for pid in pids}
    forest = {name: _read_tree(host, pids, roots) for name, pids in groups.items()}
    _refuse_kernel_without_children(host, [pid for tree in forest.values() for pid, _ in tree])
    return forest


def _refuse_kernel_without_children(host: FileReader, pids: Sequence[int]) -> None:
    """Raise TargetError when no process has a list of children; a single one may be just ending."""
    paths = [PurePosixPath(f"/proc/{pid}/task/{pid}/children") for pid in pids]
    if paths and all(host.read(path).content is None for path in paths):
        raise TargetError(
            f"counters: {paths[0]} does not exist: this kernel was built without CONFIG_PROC_CHILDREN, so a "
            "server's processes cannot be found. Use a distribution's kernel."
        )


def find_interrupt_threads(host: Lookable) -> tuple[int, ...]:
    """Find the kernel threads that do the work of interrupts; none where they cannot be seen (a container).

    They handle the load's own packets, so they are nobody's foreign CPU. They are there since boot: ask once.
    """
    looked = host.look((), trees=(KTHREADD,))
    parent = _read_process(looked, KTHREADD)
    if parent is None or parent.name != "kthreadd":
        return ()
    threads = (_read_process(looked, pid) for pid in _children(looked, KTHREADD))
    return tuple(each.pid for each in threads if each is not None and each.name.startswith(INTERRUPT_THREADS))


def find_own_process(host: Host) -> int:
    """Find the process that a host's commands are children of: tuner itself, or the session of its sshd.

    0 when that cannot be told; then what the commands use counts as foreign.
    """
    printed = host.run(ASK_SESSION, timeout_s=10).stdout.strip()
    return int(printed) if printed.isdigit() else 0


def spend(before: Tree, after: Tree) -> Spent:
    """Sum what a tree used in between, by those who came, stayed and went."""
    gone = before.keys() - after.keys()
    # An exited process lives on in the times of the parent that waited for it, so its own are subtracted like
    # those of the living. Nobody waits for a kernel thread.
    base = [before[key] for key in before if not (key in gone and before[key].is_kernel_thread)]
    ticks = _ticks(after.values()) - _ticks(base)
    moved = 0
    for key, each in after.items():
        earlier = before[key].cpu_ticks if key in before else (0, 0, 0, 0)
        moved += sum(now != then for now, then in zip(each.cpu_ticks, earlier, strict=True))
    return Spent(
        cpu_s=max(0.0, ticks / USER_HZ),
        # The difference of two numbers rounded down: variance 2/12 of a tick squared for each that moved.
        cpu_error_s=(moved / 6) ** 0.5 / USER_HZ,
        minor_faults=max(0, sum(p.minor_faults for p in after.values()) - sum(p.minor_faults for p in base)),
        major_faults=max(0, sum(p.major_faults for p in after.values()) - sum(p.major_faults for p in base)),
        exits=len(gone),
    )


def softirq_threads(tree: Tree) -> Tree:
    """Keep the threads, one for each CPU, whose time /proc/stat counts as softirq."""
    return {key: each for key, each in tree.items() if each.name.startswith(SOFTIRQ_THREAD)}


def _ticks(processes: Iterable[ProcessTimes]) -> int:
    return sum(sum(process.cpu_ticks) for process in processes)


def _read_tree(host: FileReader, pids: Iterable[int], roots: set[int]) -> Tree:
    found: dict[tuple[int, int], ProcessTimes] = {}
    waiting = list(dict.fromkeys(pids))
    while waiting:
        pid = waiting.pop()
        process = _read_process(host, pid)
        if process is None:
            continue
        found[pid, process.started_ticks] = process
        if not process.is_kernel_thread:  # all of those are children of kthreadd
            waiting += [child for child in _children(host, pid) if child not in roots]
    return found


def _read_process(host: FileReader, pid: int) -> ProcessTimes | None:
    content = host.read(PurePosixPath(f"/proc/{pid}/stat")).content
    return parse_process(content) if content else None


def _children(host: FileReader, pid: int) -> list[int]:
    """Return the children of a process; none of one that has ended meanwhile."""
    content = host.read(PurePosixPath(f"/proc/{pid}/task/{pid}/children")).content
    return [int(child) for child in (content or b"").split()]
