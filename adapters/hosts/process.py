"""Programs that run on, and the end of what they print."""

import threading
from abc import ABC, abstractmethod

OUTPUT_LIMIT_BYTES = 8 * 2**20
"""What is kept of each stream: its end, where generators print their counts and servers their last words."""
CHUNK_BYTES = 2**16
LAST_WORDS_S = 1.0


class Tail:
    """The end of a stream, bounded."""

    def __init__(self, limit_bytes: int = OUTPUT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._kept = bytearray()
        self._left_out_bytes = 0
        self._lock = threading.Lock()

    def add(self, data: bytes) -> None:
        """Append what was read."""
        with self._lock:
            self._kept += data
            if len(self._kept) > 2 * self._limit_bytes:
                self._shorten()

    def content(self) -> bytes:
        """Return what is kept."""
        with self._lock:
            self._shorten()
            return mark_shortened(bytes(self._kept), self._left_out_bytes)

    def _shorten(self) -> None:
        surplus_bytes = len(self._kept) - self._limit_bytes
        if surplus_bytes > 0:
            del self._kept[:surplus_bytes]
            self._left_out_bytes += surplus_bytes


def mark_shortened(kept: bytes, left_out_bytes: int) -> bytes:
    """Put in front of a shortened output how much was left out."""
    return (b"[%d earlier bytes left out]\n" % left_out_bytes if left_out_bytes else b"") + kept


class RunningProcess(ABC):
    """A program that runs on; what it prints is read all the time, so that it never waits for us."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._tail = Tail()
        self._reader = threading.Thread(target=self._read, name=f"output of {pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._pid

    @abstractmethod
    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""

    def output(self) -> bytes:
        if self.poll() is not None:
            self._await_last_words()
        return self._tail.content()

    def _await_last_words(self) -> None:
        """Wait for what may still be on its way when the program has ended."""
        self._reader.join(timeout=LAST_WORDS_S)

    @abstractmethod
    def _read(self) -> None:
        """Add to the tail what the program prints, until it closes its outputs."""
