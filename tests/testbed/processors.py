"""Processors of a test host's own, in /proc/stat: what else runs on this machine is none of its business.

A study refuses to measure on a host on which other programs run, and on a machine that runs tests side by
side there are always some. To a host of its own they would be unknown, as they are to one with lxcfs. What a
study of seconds finds is not looked at; that the whole machine is watched is tested where nothing else runs.
"""

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.testbed.host import TestHost

UPDATE_S = 0.02
IDLE_TICKS = 100
"""So much more idle time at each update: more than passes, so that an update that is late is none the less
enough."""
KEPT = ("ctxt", "btime", "processes", "procs_running", "procs_blocked")


@contextlib.contextmanager
def idle_processors(host: TestHost) -> Iterator[None]:
    """Let the processors of a host be idle but for its own processes, which are counted apart."""
    with _idle(host.root / "run/testbed-stat"):
        host.run(["mount", "--bind", "/run/testbed-stat", "/proc/stat"])
        try:
            yield
        finally:
            host.run(["umount", "/proc/stat"])


@contextlib.contextmanager
def idle_processors_here() -> Iterator[tuple[str, ...]]:
    """Yield what is put before a command, so that it finds this machine's processors idle in the same way."""
    with tempfile.TemporaryDirectory(prefix="testbed-stat-") as directory:
        file = Path(directory) / "stat"
        with _idle(file):
            # In mounts of its own, which end with it.
            mount = 'mount --bind "$0" /proc/stat; exec "$@"'
            yield ("unshare", "--mount", "--propagation", "private", "sh", "-ec", mount, str(file))


@contextlib.contextmanager
def _idle(file: Path) -> Iterator[None]:
    """Keep a file like /proc/stat in which nothing but idle time passes."""
    cpus = os.cpu_count() or 1
    file.write_bytes(_describe(cpus, 0))
    done = threading.Event()
    descriptor = os.open(file, os.O_WRONLY)

    def update() -> None:
        ticks = 0
        while not done.wait(UPDATE_S):
            ticks += IDLE_TICKS
            # In place, and of the same length: a reader never sees half a file.
            os.pwrite(descriptor, _describe(cpus, ticks), 0)

    thread = threading.Thread(target=update, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        os.close(descriptor)


def _describe(cpus: int, ticks: int) -> bytes:
    """Write /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal, guests."""
    columns = f"0 0 0 {ticks:012} 0 0 0 0 0 0"
    rest = [line for line in _REAL if line.split(" ", 1)[0] in KEPT]
    return "\n".join([f"cpu  {columns}", *(f"cpu{n} {columns}" for n in range(cpus)), *rest, ""]).encode()


_REAL = Path("/proc/stat").read_text().splitlines()
