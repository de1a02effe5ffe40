"""What the command does before it runs anything, and with which code it ends whatever happens."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tuner.cli import GROUPS

COUNT_THREADS = """
import os, sys
from tuner.cli import main
sys.argv = ["tuner", "--help"]
try:
    main()
except SystemExit:
    import numpy, scipy.linalg
    print(len(os.listdir("/proc/self/task")), file=sys.stderr)
"""
FAULTY = """
import sys
from tuner import plugins
from tuner.cli import main

def fail(*_):
    raise ZeroDivisionError("nobody foresaw it")

plugins.list_adapters = fail
sys.argv = ["tuner", *sys.argv[1:]]
main()
"""
WITHOUT_INPUT = """
import sys
from tuner.cli.streams import prepare_streams

prepare_streams()
print(open("/dev/null").fileno())
sys.exit(sys.stdin.isatty() + len(sys.stdin.read()))
"""
PLACE = "import tuner.restore.recovery; tuner.restore.recovery.restore_host"
TUNER = str(Path(sys.executable).with_name("tuner"))
FAULT, INTERRUPTED = 5, 130


def call(
    *command: str, shell_text: str = "", variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command, or with `shell_text` a line of the shell in which "$@" stands for it."""
    through = ["bash", "-c", shell_text, "bash"] if shell_text else []
    return subprocess.run(
        [*through, *command], env={**os.environ, **(variables or {})}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_a_command_that_is_interrupted_says_what_becomes_of_the_host(tmp_path: Path):
    program = FAULTY.replace("ZeroDivisionError", "KeyboardInterrupt").replace("plugins.list_adapters", PLACE)
    stopped = call(sys.executable, "-c", program, "restore", variables={"TUNER_STATE": str(tmp_path)})

    assert stopped.returncode == INTERRUPTED
    assert "local: The host finishes the restore by itself." in stopped.stderr
    assert "tuner: stopped." in stopped.stderr


def test_the_libraries_of_a_command_start_no_threads():
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}

    ran = subprocess.run(
        [sys.executable, "-c", COUNT_THREADS], env=environment, capture_output=True, text=True, check=False
    )

    assert ran.stderr == "1\n"


def test_what_nobody_foresaw_has_a_code_of_its_own_and_no_traceback():
    ended = call(sys.executable, "-c", FAULTY, "adapters")

    assert ended.returncode == FAULT
    assert ended.stderr.startswith(
        "tuner: this is a fault in tuner itself (ZeroDivisionError: nobody foresaw it)."
    )
    assert "--debug" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("arguments", [("--debug", "adapters"), ("adapters", "--debug")])
def test_where_it_happened_is_shown_when_it_is_asked_for(arguments):
    ended = call(sys.executable, "-c", FAULTY, *arguments)

    assert ended.returncode == FAULT
    assert "Traceback" in ended.stderr
    assert "in fail" in ended.stderr


def test_commands_that_it_runs_are_shown_when_it_is_debugged(tmp_path: Path):
    arguments = ("init", "nginx", "-o", "/dev/null/a")
    debugged = call(TUNER, "--debug", *arguments)
    plain = CommandLine(tmp_path).call(*arguments)

    assert " DEBUG tuner.adapters.hosts.command_runner: ran " in debugged.stderr
    assert "DEBUG" not in plain.stderr


def test_an_error_keeps_its_code_when_it_is_debugged():
    ended = call(TUNER, "--debug", "spaces", "nowhere")

    assert ended.returncode == 2
    assert "Traceback" in ended.stderr


@pytest.mark.parametrize("arguments", [("adapters",), ("spaces", "nginx"), ("spaces", "nginx", "--json")])
def test_output_that_cannot_be_written_is_an_error_and_no_verdict(arguments):
    ended = call(TUNER, *arguments, shell_text='"$@" >/dev/full')

    assert ended.returncode == FAULT
    assert ended.stderr == (
        "tuner: output: tuner cannot write the output (No space left on device). Free some space, or write "
        "the output to another place.\n"
    )


def test_with_nowhere_to_say_it_the_code_is_the_same():
    assert call(TUNER, "adapters", shell_text='"$@" >/dev/full 2>/dev/full').returncode == FAULT


def test_a_reader_who_has_left_ends_the_command_without_a_verdict():
    ended = call(TUNER, "spaces", "nginx", shell_text='"$@" | sleep 0; exit ${PIPESTATUS[0]}')

    assert ended.returncode in {0, INTERRUPTED}, "it may be done before its reader is gone"
    assert ended.stderr == ""


def test_streams_that_the_caller_closed_are_no_files_of_the_command():
    assert call(TUNER, "adapters", shell_text='"$@" <&- >&- 2>&-').returncode == 0

    ended = call(sys.executable, "-c", WITHOUT_INPUT, shell_text='"$@" <&- 2>&-')

    assert (ended.returncode, int(ended.stdout) > 2) == (0, True)


@pytest.mark.parametrize("variables", [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "latin-1"},
])  # fmt: skip
def test_every_locale_can_print_a_space(variables):
    ended = call(TUNER, "spaces", "nginx", variables=variables)

    assert ended.returncode == 0, ended.stderr
    assert "worker_processes" in ended.stdout


@pytest.mark.parametrize("arguments", [("-h",), ("run", "-h"), ("show", "-h")])
def test_help_has_its_short_name(tmp_path: Path, arguments: tuple[str, ...]):
    ended = CommandLine(tmp_path).call(*arguments)

    assert ended.returncode == 0
    assert "Usage: tuner" in ended.stdout


@pytest.mark.parametrize("columns", ["80", "40"])
def test_the_list_of_commands_has_groups_and_cuts_no_sentence_off(tmp_path: Path, columns: str):
    said = CommandLine(tmp_path).call("-h", environment={"COLUMNS": columns}).stdout
    listed = " ".join(said.partition("\nStart:\n")[2].split())

    assert re.findall(r"^(\w+):$", said, re.MULTILINE)[1:] == [*GROUPS]
    assert "..." not in listed
    assert listed.startswith("init Write a commented study file for a server on this machine")


def test_a_command_takes_the_options_of_how_much_it_says_before_and_after_its_name(tmp_path: Path):
    for arguments in (("-q", "adapters"), ("adapters", "-q"), ("adapters", "--verbose"), ("-v", "adapters")):
        ended = CommandLine(tmp_path).call(*arguments)
        assert ended.returncode == 0, ended.stderr
        assert "server" in ended.stdout
