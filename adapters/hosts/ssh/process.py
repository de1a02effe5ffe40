"""A program that was started over SSH and runs on; it ends with its channel."""

from typing import TYPE_CHECKING

from tuner.adapters.hosts.process import LAST_WORDS_S, RunningProcess
from tuner.adapters.hosts.ssh.requests import exit_status

if TYPE_CHECKING:
    from tuner.adapters.hosts.ssh.shell import RemoteShell, Shells

KILLED = -9


class SshProcess(RunningProcess):
    """A program that runs in a shell of its own."""

    def __init__(self, shell: "RemoteShell", pid: int, shells: "Shells") -> None:
        self._shell = shell
        self._shells = shells
        self._status: int | None = None
        self._is_closed = False
        super().__init__(pid)

    def poll(self) -> int | None:
        return self._wait(0)

    def stop(self, *, timeout_s: float) -> None:
        if self.poll() is None:
            self._shells.signal(self._pid, with_descendants=False)
            if self._wait(timeout_s) is None:
                self._shells.signal(self._pid, with_descendants=True)
                self._wait(LAST_WORDS_S)
        self._await_last_words()
        self.close()

    def close(self) -> None:
        """Close its channel: with that it ends, if it has not."""
        if self._status is None:
            self._status = KILLED
        if not self._is_closed:
            self._is_closed = True
            self._shell.close()
            self._shells.dismiss()

    def _wait(self, timeout_s: float) -> int | None:
        if self._status is None:
            status = self._shell.wait_for_status(timeout_s)
            self._status = None if status is None else exit_status(status)
        return self._status

    def _read(self) -> None:
        while data := self._shell.read_some():
            self._tail.add(data)
