"""What a running study shows: on a terminal lines that are redrawn, anywhere else a plain log."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.command_line import TUNER, CommandLine
from tests.more import leave_to_more
from tests.testbed.processors import idle_processors_here

ESCAPE = "\x1b"
COLUMNS = 80
PLAIN = ({"NO_COLOR": "1"}, {"CI": "true"}, {"CI": "1"}, {"TERM": "dumb"})
CLEAN = ("CI", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
"""Variables of whoever runs the tests that would change what is drawn."""
STORY = """\
from tuner.campaign.progress import Leader
from tuner.cli.printing import make_console, show_progress
from tuner.records import Role
from tuner.statistics.baseline_level import Speedup

leader = Leader(changes={"sendfile": (True, False)}, speedup=Speedup(log_ratio=0.2, variance=0.001), trials=3)
with show_progress() as progress:
    progress.stage("search", 3, 20)
    progress.trial_begins(Role.SEARCH, "2 settings changed")
    progress.time_left(130)
    progress.leaders([leader])
    progress.note("a compiler ran")
make_console().print("the end", style="bold green")
"""


def environment(variables: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in CLEAN}
    return {**kept, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **variables}


def on_terminal(argv: Sequence[object], variables: dict[str, str], folder: Path) -> tuple[int, str]:
    """Run a command on a terminal of its own; return its exit code and all that was written there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [*map(str, argv)], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment(variables), start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # how Linux says that nobody writes any more
        while read := os.read(ours, 65536):
            written += read
    os.close(ours)
    return process.wait(60), written.decode().replace("\r\n", "\n")


def through_pipe(argv: Sequence[object], variables: dict[str, str], folder: Path) -> str:
    ran = subprocess.run(
        [*map(str, argv)], cwd=folder, env=environment(variables), capture_output=True, text=True, check=True
    )
    return ran.stderr + ran.stdout


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_terminal_shows_lines_that_are_redrawn(tmp_path: Path):
    code, written = on_terminal([sys.executable, "-c", STORY], {}, tmp_path)

    assert code == 0, written
    assert f"{ESCAPE}[1A" in written  # up again, to draw over what is there
    for words in (
        "search",
        "3 of 20",
        "2 min 10 s left",
        "1.22×",
        "3 trials",
        "sendfile off",
        "a compiler ran",
    ):
        assert words in plain(written)
    assert max(map(len, plain(written).splitlines())) <= COLUMNS


@pytest.mark.parametrize("variables", PLAIN, ids=str)
def test_where_plain_text_is_wanted_a_terminal_gets_no_escape_code(variables, tmp_path: Path):
    code, written = on_terminal([sys.executable, "-c", STORY], variables, tmp_path)

    assert code == 0, written
    assert ESCAPE not in written
    assert "\r" not in written
    assert written.splitlines()[-4:] == [
        "search", "  best estimate 1.22× [1.15, 1.30]  sendfile off", "  a compiler ran", "the end"
    ]  # fmt: skip


@pytest.mark.parametrize("variables", leave_to_more([{}, *PLAIN]), ids=str)
def test_a_pipe_gets_plain_lines(variables, tmp_path: Path):
    written = through_pipe([sys.executable, "-c", STORY], variables, tmp_path)

    assert ESCAPE not in written
    assert "search\n  best estimate 1.22× [1.15, 1.30]  sendfile off\n  a compiler ran\nthe end\n" in written


@pytest.mark.parametrize(
    "variables", leave_to_more([{"FORCE_COLOR": "1", "CI": "true"}, {"FORCE_COLOR": "1"}]), ids=str
)
def test_forced_colours_in_a_log_redraw_nothing(variables, tmp_path: Path):
    written = through_pipe([sys.executable, "-c", STORY], variables, tmp_path)

    assert f"{ESCAPE}[1;32mthe end" in written
    assert "[1A" not in written
    assert "?25" not in written  # the cursor stays as it is


@pytest.mark.more
def test_a_whole_run_on_a_terminal_counts_down_and_leaves_its_result(tmp_path: Path):
    with idle_processors_here() as through:
        tuner = CommandLine(tmp_path, through=through)
        study = tuner.write()
        argv = [*through, TUNER, "run", study, "--preset", "quick", "--minutes", "0.4", "--trials", "3"]
        code, written = on_terminal(argv, {}, tmp_path)

    shown = plain(written)
    left_s = [int(seconds) for seconds in re.findall(r"about (\d+) s left", shown)]
    assert code in {0, 1}, shown
    for words in ("calibrate", "search", "best estimate", r"\b1 trial\b", "report   "):
        assert re.search(words, shown)
    assert left_s[-1] < left_s[0]
    assert max(len(line) for line in shown.splitlines() if str(study) not in line) <= COLUMNS
