"""A host's files with a memory of the last look, so that one round trip answers several questions."""

import time
from collections.abc import Sequence
from pathlib import PurePosixPath

from tuner.ports import FileReader, FileState, Host

FRESH_S = 0.25
"""A look that is older than this is no answer any more."""


class FileCache:
    """Reads files of a host; every look also reads what its owner always wants to know.

    Args:
        host: where to read.
        paths: what every look takes in.
        trees: processes whose trees it takes in.
        lasting: what does not change as long as this object is used, and is read once.
    """

    def __init__(
        self,
        host: Host,
        *,
        paths: Sequence[PurePosixPath] = (),
        trees: Sequence[int] = (),
        lasting: Sequence[PurePosixPath] = (),
    ) -> None:
        self._host = host
        self._paths = tuple(paths)
        self._trees = tuple(trees)
        self._lasting = tuple(lasting)
        self._read_once: dict[PurePosixPath, FileState] = {}
        self._latest: FileReader = host
        self._looked_s = float("-inf")

    def read(self, path: PurePosixPath) -> FileState:
        """Read a file as it is now, or as it stays."""
        known = self._read_once.get(path)
        return self._host.read(path) if known is None else known

    def look(self, paths: Sequence[PurePosixPath] = (), *, trees: Sequence[int] = ()) -> FileReader:
        """Read many files in one round trip, those of the owner among them."""
        unread = [path for path in self._lasting if path not in self._read_once]
        self._latest = self._host.look(
            tuple(dict.fromkeys((*paths, *self._paths, *unread))),
            trees=tuple(dict.fromkeys((*trees, *self._trees))),
        )
        self._looked_s = time.monotonic()
        for path in unread:
            self._read_once[path] = self._latest.read(path)
        return self._latest

    def latest(self) -> FileReader:
        """Return the last look, or a new one when that is not fresh."""
        is_fresh = time.monotonic() - self._looked_s < FRESH_S
        return self._latest if is_fresh else self.look()

    def has_process(self, pid: int) -> bool:
        """Return whether a process is there and has not ended: a zombie has."""
        content = self.latest().read(PurePosixPath(f"/proc/{pid}/stat")).content or b""
        return content.rpartition(b")")[2].split()[:1] not in ([], [b"Z"], [b"X"])
