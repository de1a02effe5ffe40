"""A study on several simulated hosts: its controller's process, and what has to be true of its trials."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from tests.integration.simulated_fleet import HELD, name_of
from tests.integration.waiting import is_running
from tuner.records import Role, State, Trial
from tuner.statistics.ranking import config_key
from tuner.study import Study
from tuner.study.storage import Storage

SPEED = "20"
PATIENCE_S = 120.0
"""Processes that decide by a model take their time on a busy machine."""
ROOT = Path(__file__).parents[2]


class Controller:
    """The controller of a study as a process; what it says is kept."""

    def __init__(self, settings: Study, *program: str) -> None:
        """Begin it: a module and its arguments, by default that of simulated hosts."""
        program = program or ("tests.integration.simulated_fleet", str(settings.path), SPEED)
        command = (sys.executable, "-m", *program)
        self.settings = settings
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
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

    def find_workers(self, host: str) -> list[int]:
        """Return the processes that hold a host."""
        held = self.settings.folder / HELD
        names = [path.name.split() for path in held.glob("*")] if held.exists() else []
        return [int(pid) for name, pid in names if name == name_of(host) and is_running(int(pid))]

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> None:
        """End it and its workers, which hold the same pipe: its reader would wait for them."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


def assert_whole(storage: Storage) -> None:
    """Check that nothing was lost or measured twice, and that one worker is at one thing at a time."""
    trials = storage.trials()
    assert [*find_wrong_trials(trials)] == []
    for host in {trial.host for trial in trials}:
        own = [trial for trial in trials if trial.host == host]
        assert all(one.started_s <= other.started_s for one, other in pairwise(own))


def find_wrong_trials(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield what is wrong with the trials of a study that has come to its end, whatever broke meanwhile.

    A pair that was cut off is measured anew, both sides of it: in one session, and so on one host.
    """
    if [trial.number for trial in trials] != [*range(len(trials))]:
        yield "numbers are missing"
    for trial in trials:
        if trial.state is State.RUNNING or (trial.state is State.INVALID and trial.failure is None):
            yield f"trial {trial.number} has no outcome"
    searched = [trial for trial in trials if trial.role is Role.SEARCH]
    done = Counter(config_key(each.config) for each in searched if each.state is not State.INVALID)
    for trial in searched:
        if (times := done[config_key(trial.config)]) != 1:
            yield f"the configuration of trial {trial.number} was tried {times} times"
    confirming = [trial for trial in trials if trial.role is Role.CONFIRM and trial.counts]
    sides = Counter((trial.block, trial.session, trial.arm) for trial in confirming)
    yield from (f"side {side} was measured {times} times" for side, times in sides.items() if times > 1)
    whole = Counter(block for block, session, arm in sides if (block, session, _other(arm)) in sides)
    for block in {block for block, *_ in sides}:
        if whole[block] != 2:  # its two sides
            yield f"pair {block} was measured {whole[block] / 2:g} times"


def _other(arm: str) -> str:
    return {"default": "winner", "winner": "default"}[arm]
