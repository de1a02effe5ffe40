"""What comes back from a remote shell."""

import re
from dataclasses import dataclass

from tuner.errors import TargetError

MOST_LINE_BYTES = 2**20
"""Of an answer: ids of processes, a few numbers."""
MOST_FRAMES = 2**12
MOST_ANSWER_BYTES = 2**28
"""Of all its parts; a command's outputs and a look at files have smaller bounds of their own."""
_COUNT = re.compile(r"[0-9]{1,15}", re.ASCII)
_SECONDS = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", re.ASCII)
_TIMES = re.compile(r"([0-9]{1,12})m([0-9]{1,12}(?:\.[0-9]{1,9})?)s", re.ASCII)


class ConnectionBroke(TargetError):
    """The connection was there and is gone, or gives no sign of life."""


class Secret(bytes):
    """Bytes that no traceback shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret(…)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One part of an answer: a word, words that belong to it, and what the command printed."""

    kind: str
    words: tuple[str, ...] = ()
    out: bytes = b""
    err: bytes = b""

    @property
    def size_bytes(self) -> int:
        """About what it takes to keep it."""
        return len(self.out) + len(self.err) + sum(map(len, self.words))


def read_count(word: str, where: str) -> int:
    """Read a number that is not negative. Raises TargetError for anything else."""
    if not _COUNT.fullmatch(word):
        raise _malformed(word, where)
    return int(word)


def read_seconds(word: str, where: str) -> float:
    """Read seconds as /proc/uptime has them. Raises TargetError for anything else."""
    if not _SECONDS.fullmatch(word):
        raise _malformed(word, where)
    return float(word)


def read_times(word: str, where: str) -> float:
    """Read what times(1) prints: 0m1.25s. Raises TargetError for anything else."""
    found = _TIMES.fullmatch(word)
    if found is None:
        raise _malformed(word, where)
    return int(found[1]) * 60 + float(found[2])


def _malformed(word: str, where: str) -> TargetError:
    return TargetError(f"{where}: its shell said {word[:40]!r} where a number belongs. Look at its /bin/sh.")
