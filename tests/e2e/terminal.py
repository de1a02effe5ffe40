"""A terminal that tests can look at and resize: a window of tmux, with a server of its own."""

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.integration.waiting import wait_until

Size = tuple[int, int]
"""Columns and rows."""
PATIENCE_S = 60.0
SETTINGS = """\
set -g status off
set -g default-terminal tmux-256color
"""
STAYS = ("sh", "-c", '"$@"; exec cat', "sh")
"""Keeps the window open after a program has ended."""


class Terminal:
    """What a program has written so far, as a person would see it."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._folder, self._variables = folder, variables

    def run(self, argv: Sequence[object], size: Size) -> None:
        """Begin to run a program in a new terminal."""
        (self._folder / "tmux.conf").write_text(SETTINGS)
        columns, rows = map(str, size)
        command = shlex.join([*STAYS, *map(str, argv)])
        self._tmux("-f", "tmux.conf", "new-session", "-d", "-x", columns, "-y", rows, command)

    def resize(self, size: Size) -> None:
        """Change the size, and wait until programs in the terminal are told of it."""
        columns, rows = map(str, size)
        self._tmux("resize-window", "-x", columns, "-y", rows)
        tty = os.open(self._tmux("display-message", "-p", "#{pane_tty}").strip(), os.O_RDWR | os.O_NOCTTY)
        try:
            wait_until(lambda: os.get_terminal_size(tty) == size)
        finally:
            os.close(tty)

    def read(self, *options: str) -> list[str]:
        """Return the lines on the screen, without empty ones at its end."""
        return self._tmux("capture-pane", "-p", *options).rstrip().split("\n")

    def read_all(self) -> list[str]:
        """Return the lines that scrolled out of the screen as well; those that it broke are whole again."""
        return [line.rstrip() for line in self.read("-J", "-S", "-")]

    def wait_for(self, *words: str) -> list[str]:
        """Wait until words are on the screen and nothing is drawn any more; return its lines."""
        lines: list[str] = []

        def is_drawn() -> bool:
            # Whole lines have the words. They are the same before and after: nothing is drawn meanwhile.
            before = self.read("-J")
            lines[:] = self.read()
            return all(each in "\n".join(before) for each in words) and before == self.read("-J")

        wait_until(is_drawn, patience_s=PATIENCE_S)
        return lines

    def close(self) -> None:
        subprocess.run(
            ("tmux", "-S", "tmux.socket", "kill-server"), cwd=self._folder, check=False, capture_output=True
        )

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ("tmux", "-u", "-S", "tmux.socket", *arguments), cwd=self._folder, env=self._variables,
            check=True, capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        return done.stdout


@contextmanager
def open_terminal(folder: Path, variables: Mapping[str, str]) -> Iterator[Terminal]:
    """Open a terminal in a folder, with a whole environment; what runs in it ends with the block."""
    terminal = Terminal(folder, variables)
    try:
        yield terminal
    finally:
        terminal.close()
