"""The remote shells of one host: each thread borrows one of its own, and gives it back while it is of use."""

import contextlib
import threading
from collections.abc import Callable, Iterator

import paramiko

from tuner.adapters.hosts.ssh.shell import RemoteShell

MOST_SHELLS = 5
"""sshd_config(5), MaxSessions: 10 channels of a connection by default; the rest is a sandbox's."""
ANSWER_S = 20.0


class Shells:
    """Shells that wait for requests, made when they are needed."""

    def __init__(
        self, open_channel: Callable[[], paramiko.Channel], where: str, most: int = MOST_SHELLS
    ) -> None:
        self._open_channel = open_channel
        self._where = where
        self._idle: list[RemoteShell] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(most)
        self._requests = 0

    @property
    def requests(self) -> int:
        """How many have been sent: each is one round trip."""
        return self._requests

    @contextlib.contextmanager
    def borrow(self) -> Iterator[RemoteShell]:
        """Give a shell to one thread; when its use fails, it is closed."""
        with self._places:
            shell = self._take() or self._open()
            try:
                yield shell
            except BaseException:
                shell.close()
                raise
            with self._lock:
                self._idle.append(shell)

    def hire(self) -> RemoteShell:
        """Give a shell away for as long as a program runs in it; `dismiss` makes room for another."""
        self._places.acquire()
        try:
            return self._take() or self._open()
        except BaseException:
            self._places.release()
            raise

    def dismiss(self) -> None:
        """Make room for another shell."""
        self._places.release()

    def close(self) -> None:
        """Close all that wait."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    def signal(self, pid: int, *, with_descendants: bool) -> None:
        """Ask a process to end (SIGTERM), or kill it with all that descends from it."""
        script = b"tuner_kill %d ''" % pid if with_descendants else b"tuner_terminate %d" % pid
        with self.borrow() as shell:
            shell.ask(script, timeout_s=ANSWER_S)

    def _take(self) -> RemoteShell | None:
        """Find one that waits, and forget those that have ended meanwhile."""
        with self._lock:
            while self._idle:
                shell = self._idle.pop()
                if shell.is_usable:
                    return shell
                shell.close()
        return None

    def _open(self) -> RemoteShell:
        return RemoteShell(self._open_channel(), self._where, self.count)

    def count(self) -> None:
        """Count one request."""
        with self._lock:
            self._requests += 1
