"""Standard streams: open, able to show every letter, and written to the end before a command ends."""

import codecs
import os
import sys
from io import TextIOWrapper
from typing import TextIO

SPELLING = "tuner.spelling"
"""Name of the way in which letters are written that an encoding lacks."""
SPELLED = {
    "×": "x", "→": "->", "–": "-", "−": "-", "…": "...", "≤": "<=", "≥": ">=", "±": "+-", "µ": "u",
    "μ": "u", "σ": "sigma",
}  # fmt: skip
STANDARD_STREAMS = (0, 1, 2)


def prepare_streams() -> None:
    """Open the streams that the caller closed, and let both outputs spell what their encoding lacks."""
    for number in STANDARD_STREAMS:
        _open_if_closed(number)
    codecs.register_error(SPELLING, _spell)
    if sys.stdin is None:  # Python looks before it was opened
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - until the end
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - until the end
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=SPELLING)


def finish_output(stream: TextIO) -> None:
    """Write what is left of an output. Raises OSError, which Python would turn into a code of its own."""
    try:
        stream.flush()
    except OSError:
        # What is left would be tried once more at the very end.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        raise


def _open_if_closed(number: int) -> None:
    """Put /dev/null where nothing is: the next file to be opened, a database, would become an output."""
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        os.set_inheritable(opened, True)  # noqa: FBT003 - takes it by position only


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Spell letters as ASCII has them; those of names become question marks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(SPELLED.get(sign, "?") for sign in error.object[error.start : error.end]), error.end
