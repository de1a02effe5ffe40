"""Screens as a person sees them in a terminal: small or large, quiet or noisy, resized meanwhile."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from tests.e2e.command_line import TUNER, CommandLine
from tests.e2e.play_live import MANY, NOTES, OLDER, VERDICT
from tests.e2e.terminal import Size, Terminal, open_terminal
from tests.e2e.test_live_view import environment
from tests.finished_study import finish
from tests.more import leave_to_more
from tuner.study import load_study

ROOT = Path(__file__).parents[2]
SMALL, LARGE = (80, 24), (120, 40)
LOWEST = "× to "
"""In the last line of the quiet display; what stands above it is drawn before."""
PLAYED = leave_to_more([(SMALL, "noisy"), (SMALL, "quiet"), (LARGE, "noisy"), (LARGE, "quiet")])


@contextmanager
def playing(folder: Path, size: Size, kind: str) -> Iterator[tuple[Terminal, TextIO]]:
    """Play the search of a study in a terminal; each line that is written makes another trial."""
    file = folder / "trials"
    os.mkfifo(file)
    with open_terminal(folder, environment({"PYTHONPATH": str(ROOT)})) as terminal:
        terminal.run((sys.executable, "-m", "tests.e2e.play_live", file, kind), size)
        # Opened for both: it would wait for a reader otherwise, which may have failed.
        with os.fdopen(os.open(file, os.O_RDWR), "w", buffering=1) as trials:
            yield terminal, trials


@pytest.mark.parametrize(("size", "kind"), PLAYED)
def test_the_live_display_fits_the_terminal(size: Size, kind: str, tmp_path: Path) -> None:
    with playing(tmp_path, size, kind) as (terminal, trials):
        trials.write("\n")
        shown = terminal.wait_for("search (2 of 8), 1 of 20 trials", LOWEST)

    text = " ".join(" ".join(shown).split())
    assert len(shown) <= size[1]
    assert "…" not in text
    assert "..." not in text
    for words in ("2 min 10 s left", "baseline", "best estimate", "all change", "trials", "sendfile off"):
        assert words in text
    if kind == "noisy":
        assert re.search(r"now waiting for a quiet host, up to (1 h|59 min)", text)
        assert NOTES[-1] in text
    else:
        assert "now search 4 settings changed" in text


def test_nothing_is_left_of_the_live_display_when_its_terminal_is_resized(tmp_path: Path) -> None:
    with playing(tmp_path, LARGE, "quiet") as (terminal, trials):
        for number, size in enumerate((SMALL, (50, 24), LARGE), 1):
            terminal.resize(size)
            trials.write("\n")
            terminal.wait_for(f"{number} of 20 trials", LOWEST)
            lines = terminal.read_all()
            assert lines[:MANY] == [OLDER] * MANY, size
            assert sum("best estimate" in line for line in lines) == 1, size
            assert sum("━" in line for line in lines) == 1, size
        terminal.resize(SMALL)
        trials.close()
        terminal.wait_for(VERDICT)
        assert terminal.read_all() == [*[OLDER] * MANY, VERDICT]


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.more)])
def test_one_screen_shows_a_study_and_ends_with_verdict_and_next_command(size: Size, tmp_path: Path) -> None:
    study = CommandLine(tmp_path).write()
    finish(load_study(study), {"worker_connections": 2000})
    with open_terminal(tmp_path, environment({})) as terminal:
        terminal.run((TUNER, "show", study), size)
        terminal.wait_for("Next: ")
        *_, verdict, following = lines = terminal.read_all()

    assert verdict.startswith("test: ")
    assert verdict.endswith("pairs of winner against default")
    assert following.startswith("Next: tuner ")
    assert len(lines) < size[1]
