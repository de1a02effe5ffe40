"""The remote shells of one host: each thread borrows one of its own, and gives it back while it is of use."""

import contextlib
import threading
from collections.abc import Iterator

from tuner.adapters.hosts._ssh_connection import Connection
from tuner.adapters.hosts._ssh_shell import LOOP, RemoteShell

MOST_SHELLS = 8
"""sshd_config(5), MaxSessions: 10 channels of one connection, if nobody changed it."""


class Shells:
    """Shells that wait for requests, made when they are needed."""

    def __init__(self, connection: Connection, where: str) -> None:
        self._connection = connection
        self._where = where
        self._idle: list[RemoteShell] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_SHELLS)
        self.requests = 0
        """How many have been sent: each is one round trip."""

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
        """Close all that wait, and the connection."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()
        self._connection.close()

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
        return RemoteShell(self._connection.open_channel(LOOP), self._where, self._count)

    def _count(self) -> None:
        with self._lock:
            self.requests += 1
