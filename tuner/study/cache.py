"""Keeps beside a study what took long to compute. Its folder may be deleted at any time.

What is kept has this user's seal (`tuner.study.seal`): a page that a stranger made is shown to nobody.
"""

import logging
import os
from functools import cache
from hashlib import sha256
from pathlib import Path

from tuner.errors import TunerError
from tuner.study.folder import read_file, write_file
from tuner.study.seal import is_sealed, make_seal

LOG = logging.getLogger(__name__)

FOLDER = "cache"
PACKAGE = Path(__file__).parents[1]


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
        LOG.info("%s is not kept: %s", name, error)


def _digest(*parts: bytes) -> bytes:
    return sha256(b"".join(parts)).hexdigest().encode()


@cache
def _digest_code() -> bytes:
    """Return a digest of this tuner's own files: a version may change while somebody works on it."""
    found = [Path(folder, name) for folder, _, names in os.walk(PACKAGE, followlinks=True) for name in names]
    files = sorted(path for path in found if path.suffix != ".pyc")
    return _digest(*(_digest(path.read_bytes()) for path in files))
