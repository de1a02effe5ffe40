"""The workers of a study in a file, all on the machine where the file is, kept apart by locks beside it.

The kernel lets go of a lock when its holder ends, however it ends (flock(2)): so a worker is alive as long as
its host is locked, and nobody has to clean up after one that was killed.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from tuner.errors import TargetError
from tuner.records import Start
from tuner.study.folder import make_folder, open_file, open_folder, translated

T = TypeVar("T")
FOLDER = "workers"
TURN, WORK = "turn", "work"
LOOKING_S = 1.0
"""For so long a lock may be held by those who only look whether it is."""
LOOK_AGAIN_S = 0.05


@dataclass(kw_only=True)
class FileCrew:
    """One worker of a study, and what it sees of the others."""

    folder: Path
    """Of the study."""
    host: str = ""
    worker: str = ""
    is_shared: bool = True
    _turn: int | None = field(default=None, init=False)
    """Descriptor of the lock while this worker takes part."""

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Take part, and have the turn. Raises TargetError where another one is at work on the host."""
        make_folder(self.folder / FOLDER)
        with self._opened(_name_host(self.host)) as own, self._opened(WORK) as work:
            if not _take_soon(own):
                raise TargetError(
                    f"{self.folder}: another worker of this study is at work on {self.host}. End it, or wait "
                    "for it; then run the same command again."
                )
            fcntl.flock(work, fcntl.LOCK_SH)
            with self._opened(TURN) as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                self._turn = turn
                try:
                    yield
                finally:
                    self._turn = None

    @contextmanager
    def others_turn(self) -> Iterator[None]:
        """Let others decide meanwhile; afterwards this one has the turn again."""
        if self._turn is None:
            yield
            return
        fcntl.flock(self._turn, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_EX)

    def alive(self, trial: int) -> AbstractContextManager[None]:  # noqa: ARG002 - the lock on the host shows it
        return nullcontext()

    def require_turn(self) -> None:
        """Return: nobody could have taken it."""

    def insist(self, write: Callable[[], T]) -> T:
        return write()

    def silences(self) -> Mapping[int, float | None]:
        return {}

    def find_lost(self, running: Sequence[Start]) -> list[Start]:
        """Return the starts that their workers will never end; this one is at none now."""
        return [start for start in running if start.host == self.host or not self.is_at_work(start.host)]

    def is_at_work(self, host: str) -> bool:
        """Return whether a worker takes part on a host now."""
        # Shared: two who look must not see each other.
        return self._is_held(_name_host(host), fcntl.LOCK_SH)

    def is_any_at_work(self) -> bool:
        """Return whether any worker takes part now."""
        return self._is_held(WORK, fcntl.LOCK_EX)

    def _is_held(self, name: str, kind: int) -> bool:
        try:
            with self._opened(name, create=False) as descriptor:
                return not _take(descriptor, kind)
        except FileNotFoundError:
            return False

    @contextmanager
    def _opened(self, name: str, *, create: bool = True) -> Iterator[int]:
        """Open a file of locks; closing it lets go of what was taken by it."""
        path = self.folder / FOLDER / name
        if not create and not path.exists():
            raise FileNotFoundError(path)
        with translated(path, "opened"):
            folder = open_folder(self.folder / FOLDER)
            try:
                descriptor = open_file(path, os.O_RDWR | (os.O_CREAT if create else 0), within=folder)
            finally:
                os.close(folder)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _name_host(host: str) -> str:
    """Return the name of the file that stands for a host."""
    return f"host {quote(host, safe='')}"


def _take(descriptor: int, kind: int) -> bool:
    """Take a lock, unless somebody else has it; return whether it was free."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _take_soon(descriptor: int) -> bool:
    """Take a lock for this worker alone; return whether nobody else keeps it."""
    deadline_s = time.monotonic() + LOOKING_S
    while not _take(descriptor, fcntl.LOCK_EX):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(LOOK_AGAIN_S)
    return True
