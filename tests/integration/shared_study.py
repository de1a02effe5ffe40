"""A study that several workers share: their processes, and what has to be true of all their starts."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path

from tests.integration.waiting import wait_until
from tuner.records import Role, State
from tuner.statistics.ranking import config_key
from tuner.study import Study
from tuner.study.storage import Storage

SPEED = "20"
PATIENCE_S = 120.0
"""Processes that decide by a model take their time on a busy machine."""
ROOT = Path(__file__).parents[2]


class Worker:
    """One worker as a process; what it says is kept."""

    def __init__(self, settings: Study, host: str) -> None:
        command = (sys.executable, "-m", "tests.integration.work_simulated", settings.path, host, SPEED)
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.strip())

    def wait(self) -> str:
        """Wait for the verdict."""
        assert self.process.wait(timeout=300) == 0, self.said
        self._reader.join()
        return self.said[-1]

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


def await_measuring(storage: Storage, host: str) -> None:
    """Wait until a host is in the middle of a start."""

    def is_measuring() -> bool:
        return any(
            start.host == host and start.state is State.RUNNING and start.windows
            for start in storage.starts()
        )

    wait_until(is_measuring, patience_s=PATIENCE_S)


def assert_whole(storage: Storage) -> None:
    """Check that nothing was lost or measured twice, and that each pair was measured on one host."""
    starts = storage.starts()
    assert [start.number for start in starts] == list(range(len(starts)))
    assert not [start for start in starts if start.state is State.RUNNING]
    searched = [each for each in starts if each.role is Role.SEARCH and each.state is not State.INVALID]
    counted = Counter(config_key(start.config) for start in searched)
    twice = [each for each in searched if counted[config_key(each.config)] > 1]
    assert not twice, "two workers tried the same configuration"
    confirming = [start for start in starts if start.role is Role.CONFIRM and start.counts]
    blocks = Counter((start.block, start.arm) for start in confirming)
    assert set(blocks.values()) <= {1}, "a side of a pair was measured twice"
    hosts = {block: {start.host for start in confirming if start.block == block} for block, _ in blocks}
    assert all(len(each) == 1 for each in hosts.values())
    # One worker is at one thing at a time.
    for host in {start.host for start in starts}:
        own = [start for start in starts if start.host == host]
        assert all(one.started_s <= other.started_s for one, other in pairwise(own))
