"""Prints: results to stdout, all else to stderr."""

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def what_was_typed() -> str:
    """Return the command again: its program by name where the shell finds it so, else as it was called."""
    program, *arguments = sys.argv
    name = Path(program).name
    return shlex.join([name if shutil.which(name) == program else program, *arguments])


def print_json(value: object) -> None:
    """Print a result for scripts, as ASCII."""
    print(json.dumps(value, indent=1))


def print_text(text: str, *, file: TextIO | None = None) -> None:
    """Print a result for people, which may quote a server or a host: nothing in it steers the terminal."""
    from tuner.report.wording import make_lines_printable

    print(make_lines_printable(text), file=file)


def say(text: str) -> None:
    """Print a message to stderr."""
    print_text(text, file=sys.stderr)


def make_console(*, stderr: bool = False) -> "Console":
    """Return what draws results, or on stderr progress."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)
