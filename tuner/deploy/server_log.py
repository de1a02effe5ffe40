"""Quotes the logs of servers and the output of commands."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from tuner.ports import Argv

LOG_TAIL_BYTES = 2**16
QUOTED_LINES = 3


def tail_command(log: PurePosixPath) -> Argv:
    """Return the command that prints the end of a log, which may be too long to be read whole."""
    return ("tail", f"--bytes={LOG_TAIL_BYTES}", "--", str(log))


def quote_words(sentences: Sequence[str], printed: bytes) -> str:
    """Return the sentences that explain, or else the last lines that were printed."""
    lines = sentences or [line for line in printed.decode(errors="replace").splitlines() if line.strip()]
    return " / ".join(line.strip() for line in lines[-QUOTED_LINES:]) or "it said nothing."
