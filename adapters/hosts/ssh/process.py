"""A program that was started over SSH and runs on; it ends with its channel."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tuner.adapters.hosts.local.commands import Tail
from tuner.adapters.hosts.ssh.requests import exit_status

if TYPE_CHECKING:
    from tuner.adapters.hosts.ssh.shell import RemoteShell

LAST_WORDS_S = 1.0
KILLED = -9


class Signaller(Protocol):
    """What ends a process of the host."""

    def __call__(self, pid: int, *, with_descendants: bool) -> None:
        """Ask a process to end (SIGTERM), or kill it with all that descends from it."""


class SshProcess:
    """What it prints is read all the time, so that it never waits for us."""

    def __init__(self, shell: "RemoteShell", pid: int, signal: Signaller, closed: Callable[[], None]) -> None:
        self._shell = shell
        self._pid = pid
        self._signal = signal
        self._closed = closed
        self._status: int | None = None
        self._is_closed = False
        self._tail = Tail()
        self._reader = threading.Thread(target=self._read, name=f"output of {pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._pid

    def poll(self) -> int | None:
        return self._wait(0)

    def output(self) -> bytes:
        if self.poll() is not None:
            self._reader.join(timeout=LAST_WORDS_S)
        return self._tail.content()

    def stop(self, *, timeout_s: float) -> None:
        if self.poll() is None:
            self._signal(self._pid, with_descendants=False)
            if self._wait(timeout_s) is None:
                self._signal(self._pid, with_descendants=True)
                self._wait(LAST_WORDS_S)
        self._reader.join(timeout=LAST_WORDS_S)
        self.close()

    def close(self) -> None:
        """Close its channel: with that it ends, if it has not."""
        if self._status is None:
            self._status = KILLED
        if not self._is_closed:
            self._is_closed = True
            self._shell.close()
            self._closed()

    def _wait(self, timeout_s: float) -> int | None:
        if self._status is None:
            status = self._shell.wait_for_status(timeout_s)
            self._status = None if status is None else exit_status(status)
        return self._status

    def _read(self) -> None:
        while data := self._shell.read_some():
            self._tail.add(data)
