"""Snapshots of /proc of a real machine: NAME.before.txt and NAME.after.txt, around one window.

Captured on a virtual machine with 2 CPUs, kernel 6.18: in a sandbox, nginx with two workers on CPU 0 and wrk
with `Connection: close` on CPU 1. The first line holds the clocks, the pids and what wrk used; then each file
follows its path. `loaded`: hardly anything else ran. `stolen`: a compiler ran, and the hypervisor
took CPU time.
"""

import dataclasses
from pathlib import Path, PurePosixPath

from tuner.measure.counters import Snapshot, difference, find_quota, take
from tuner.ports import FileState
from tuner.testing.fakes import MemoryHost

FOLDER = Path(__file__).parent
MARK = "==== "


class Moment:
    """One side of a window, which a test may change before it is read."""

    def __init__(self, name: str) -> None:
        head, *files = (FOLDER / f"{name}.txt").read_text().split(MARK)
        self.facts = dict(word.split("=") for word in head.split())
        self.files = dict(file.split("\n", 1) for file in files)

    def replace(self, path: str, old: str, new: str) -> None:
        """Put other text into one file."""
        assert old in self.files[path]

        self.files[path] = self.files[path].replace(old, new)

    def write_columns(self, cpu: str, **seconds: float) -> None:
        """Add seconds to columns of /proc/stat."""
        names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
        old = next(line for line in self.files["/proc/stat"].splitlines() if line.startswith(f"{cpu} "))
        words = old.split()
        for name, more_s in seconds.items():
            at = 1 + names.index(name)
            words[at] = str(int(words[at]) + round(100 * more_s))
        self.replace("/proc/stat", old, " ".join(words))

    def host(self) -> MemoryHost:
        """Give a host that has these files."""
        files = {PurePosixPath(path): FileState(content=text.encode()) for path, text in self.files.items()}
        return MemoryHost(files=files)

    def pids(self, name: str) -> list[int]:
        """Give the roots of a group."""
        return [int(pid) for pid in self.facts[name].split(",")]

    def take(self) -> Snapshot:
        """Read it, at the time when it was captured."""
        groups = {name: self.pids(name) for name in ("server", "tuner", "interrupts")}
        host = self.host()
        quota = find_quota(host, self.pids("server")[0])
        taken = take(host, namespace_pid=self.pids("sandbox")[0], groups=groups, quota=quota)
        return dataclasses.replace(
            taken,
            monotonic_s=float(self.facts["monotonic_s"]),
            wall_s=float(self.facts["wall_s"]),
        )


class GoldenWindow:
    """Both sides of a window."""

    def __init__(self, name: str) -> None:
        self.before = Moment(f"{name}.before")
        self.after = Moment(f"{name}.after")

    @property
    def generator_cpu_s(self) -> float:
        return float(self.after.facts["generator_cpu_s"])

    def counters(self) -> dict[str, float]:
        """Count what happened, with the generator's CPU known."""
        return difference(self.before.take(), self.after.take(), generator_cpu_s=self.generator_cpu_s)
