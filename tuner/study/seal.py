"""Marks of this user's own on what it keeps in places where others may write.

A study's folder or database may come from somebody else. What was computed, or read on a target, is taken
from there only with a mark that nobody else can make.
"""

import hmac
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_bytes, token_hex

from tuner.restore.journal import find_state_directory

FILE = "seal.key"
LENGTH = 32


def make_seal(*parts: bytes) -> str | None:
    """Return this user's mark on some bytes; None where no key can be kept."""
    key = _read_key(find_state_directory() / FILE)
    if key is None:
        return None
    return hmac.new(key, b"".join(b"%d:%s" % (len(part), part) for part in parts), "sha256").hexdigest()


def is_sealed(seal: str, *parts: bytes) -> bool:
    """Return whether a mark on some bytes is this user's own."""
    own = make_seal(*parts)
    return own is not None and hmac.compare_digest(seal.encode(errors="replace"), own.encode())


@cache
def _read_key(path: Path) -> bytes | None:
    """Read the key, made where there is none; None where that cannot be."""
    with suppress(OSError):
        if not path.exists():
            _make_key(path)
        key = path.read_bytes()
        return key if len(key) == LENGTH else None
    return None


def _make_key(path: Path) -> None:
    """Write a new key aside and give it its name; of two that do so at once, the first one's stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f"{FILE}.{token_hex(4)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(token_bytes(LENGTH))
    with suppress(FileExistsError):
        os.link(aside, path)
    aside.unlink()
