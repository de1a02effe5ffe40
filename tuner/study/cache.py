"""Keeps beside a study what took long to compute. Its folder may be deleted at any time.

What is kept has this user's seal (`tuner.study.cache`): a page that a stranger made is shown to nobody.
"""

import hmac
import logging
import os
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes, token_hex

from tuner.errors import TunerError
from tuner.restore.journal import find_state_directory
from tuner.study.folder import read_file, write_file

FILE = "seal.key"
LENGTH = 32


LOG = logging.getLogger(__name__)
FOLDER = "cache"
PACKAGE = Path(__file__).parents[1]


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


def make_key(*parts: bytes) -> bytes:
    """Return a key of everything that a result depends on; this tuner's own code is part of it."""
    return _digest(_digest_code(), *map(_digest, parts))


def look_up(study_folder: Path, name: str, key: bytes) -> bytes | None:
    """Return what was kept under this very key; None where there is nothing of this user's own."""
    try:
        found = read_file(study_folder / FOLDER / name, study_folder=study_folder)
    except (OSError, TunerError):
        return None
    head, _, content = found.partition(b"\n")
    seal = head.removeprefix(key).decode(errors="replace")
    return content if head.startswith(key) and is_sealed(seal, key, content) else None


def keep(study_folder: Path, name: str, key: bytes, content: bytes) -> None:
    """Keep a result in the place of an earlier one; where nothing can be written, none is kept."""
    seal = make_seal(key, content)
    if seal is None:
        return
    try:
        whole = key + seal.encode() + b"\n" + content
        write_file(study_folder / FOLDER / name, whole, study_folder=study_folder)
    except TunerError as error:
        LOG.info("%s is not cached: %s", name, error)


def _digest(*parts: bytes) -> bytes:
    return sha256(b"".join(parts)).hexdigest().encode()


@cache
def _digest_code() -> bytes:
    """Return a digest of this tuner's own files: a version may change while somebody works on it."""
    found = [Path(folder, name) for folder, _, names in os.walk(PACKAGE, followlinks=True) for name in names]
    files = sorted(path for path in found if path.suffix != ".pyc")
    return _digest(*(_digest(path.read_bytes()) for path in files))
