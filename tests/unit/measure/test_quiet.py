"""On a remote target, the number of the tuner's process belongs to another program."""

import os
from pathlib import PurePosixPath

import pytest

from tests.unit.simulation import SimulatedClock
from tuner.measure.quiet import wait_until_quiet
from tuner.measure.window import Load
from tuner.ports import FileState
from tuner.study import LoadSettings
from tuner.testing.fakes import MemoryHost

HERE = os.getpid()
SESSION = HERE + 1
"""What the tuner's commands are children of on the target."""
ONE_CPU = 100
"""Ticks per second."""


class RemoteMachine:
    """A target whose clock passes only while somebody sleeps, and on which one process may be busy."""

    def __init__(self, busy: int | None) -> None:
        self.busy = busy
        self.clock = SimulatedClock()
        self.host = MemoryHost()
        self.used = 0
        self.sleep(0.0)

    def time(self) -> float:
        return self.clock.time()

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(seconds)
        self.used += round(ONE_CPU * seconds) if self.busy else 0
        idle = round(2 * ONE_CPU * (self.clock.now_s - 1_767_225_600.0)) - self.used
        self._write("/proc/sys/kernel/random/boot_id", "one")
        self._write(
            "/proc/stat",
            f"cpu0 {self.used} 0 0 {idle // 2} 0 0 0 0\ncpu1 0 0 0 {idle - idle // 2} 0 0 0 0\n"
            "ctxt 1\nprocesses 1\n",
        )
        for pid in (HERE, SESSION):
            ticks = self.used if pid == self.busy else 0
            self._write(f"/proc/{pid}/stat", f"{pid} (p) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 7 0 0")
            self._write(f"/proc/{pid}/task/{pid}/children", "")

    def _write(self, path: str, text: str) -> None:
        self.host.files[PurePosixPath(path)] = FileState(content=text.encode())


@pytest.mark.parametrize(
    ("busy", "quiet"), [(None, True), (SESSION, True), (HERE, False)], ids=["nothing", "session", "here"]
)
def test_of_a_remote_target_only_the_tuners_own_session_is_left_out(busy, quiet, monkeypatch):
    machine = RemoteMachine(busy)
    monkeypatch.setattr("tuner.measure.counters.time", machine)
    load = Load(generator=None, shape=LoadSettings(), interrupt_threads=(), tuner_pid=SESSION)

    assert wait_until_quiet(machine.host, load, most_s=20.0, clock=machine) is quiet
