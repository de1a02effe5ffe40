"""What comes back from a remote shell."""

from dataclasses import dataclass

from tuner.errors import TargetError


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
