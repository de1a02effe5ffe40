"""The log: what tuner does and why, without secrets.

Each module has `logging.getLogger(__name__)`: the events of a study are INFO, commands on hosts DEBUG.
A study keeps the log in its folder; --debug shows all of it on stderr.
"""

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOGGER = logging.getLogger("tuner")
MOST_BYTES, OLDER_FILES = 1_000_000, 3
"""Of one file, and how many are kept besides: four megabytes in all."""
MOST_LETTERS = 4000
"""Of one record. What is longer is cut after secrets are hidden: half of one could not be found."""
HIDDEN = "(hidden)"
LEAST_LETTERS = 4
"""Of a secret: anything shorter would hide half of the log."""
NAMED = re.compile(
    r"((?:authorization|cookie|passw(?:or)?d|secret|token|api-?key)[\w-]*['\"]?\s*[:=]).*",
    re.IGNORECASE,
)
"""A secret by its name: all that follows on its line is hidden, as nobody knows where it ends."""
USER = re.compile(r"://[^\s/@]*:\S*@")
"""User and password in an address."""

_secrets: set[str] = set()


def hide(secrets: Iterable[str]) -> None:
    """Keep texts out of the log from here on, however a shell quotes them."""
    parts = (part for secret in secrets for part in (secret, *re.split(r"['\"\\]", secret)))
    _secrets.update(part for part in parts if len(part) >= LEAST_LETTERS)


def without_secrets(text: str) -> str:
    """Return a text without what was hidden, what its name gives away, and passwords in addresses."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return NAMED.sub(rf"\1 {HIDDEN}", USER.sub(f"://{HIDDEN}@", text))


class _Formatter(logging.Formatter):
    """Writes a record without secrets, and without characters that would command a terminal."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        lines = without_secrets(super().format(record))[:MOST_LETTERS].splitlines()
        return "\n".join("".join(each if each.isprintable() else "?" for each in line) for line in lines)


class BoundedLog(RotatingFileHandler):
    """A log file of a bounded size. A disk that is full ends no run: what cannot be written is left out."""

    def __init__(self, path: Path, open_file: Callable[[Path], int]) -> None:
        """Open it, or raise what `open_file` does, which returns a descriptor to append to."""
        self._open_file = open_file
        super().__init__(path, maxBytes=MOST_BYTES, backupCount=OLDER_FILES, encoding="utf-8")
        self.setFormatter(_Formatter())

    def _open(self) -> TextIOWrapper:
        return os.fdopen(self._open_file(Path(self.baseFilename)), "a", encoding="utf-8", errors="replace")

    def handleError(self, _: logging.LogRecord) -> None:  # noqa: N802 - the name that `logging` gives it
        """Go on."""

    def close(self) -> None:
        """Close the file, whether or not the rest of it can be written."""
        with suppress(OSError):
            super().close()


def show_log() -> None:
    """Write all of the log to stderr, as it is then; asked for twice it is shown once."""
    if not any(type(each) is logging.StreamHandler for each in LOGGER.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Formatter())
        LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
