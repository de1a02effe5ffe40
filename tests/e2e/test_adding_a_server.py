"""docs/adding-a-server.md, followed literally: a server that tuner does not know, from the page alone."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine

pytestmark = pytest.mark.alone

PAGE = (Path(__file__).parents[2] / "docs/adding-a-server.md").read_text()
PART = re.compile(r"^`(?P<path>[\w./-]+)`:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
"""A part of a file, which its path stands before; parts of one file follow each other."""
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUDGET = ("--minutes", "0.4", "--trials", "2")
PACKAGE = "tuner-lighttpd"


def read_files() -> dict[str, str]:
    """Read the files that the page has its reader write."""
    files: dict[str, str] = {}
    for part in PART.finditer(PAGE):
        files[part["path"]] = files.get(part["path"], "") + part["text"]
    return files


def read_commands() -> list[str]:
    """Read the commands that the page has its reader run."""
    return [line.removeprefix("$ ") for block in CONSOLE.findall(PAGE) for line in block.splitlines()]


@dataclass(frozen=True)
class Walk:
    """What a reader has who did all that the page says."""

    tuner: CommandLine
    done: Mapping[str, subprocess.CompletedProcess[str]]
    """What came of each command."""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    folder = tmp_path_factory.mktemp("walk")
    for path, text in read_files().items():
        file = folder / PACKAGE / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    site = str(folder / "site")
    tuner = CommandLine(
        folder,
        variables={
            "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": site,
            # Beside tuner, from what is here: no network, and this environment stays as it is.
            "PIP_TARGET": site,
            "PIP_NO_DEPS": "1",
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",
        },
    )
    return Walk(tuner, {command: run(tuner, command) for command in read_commands()})


def run(tuner: CommandLine, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the page; a study with a budget of seconds."""
    program, *arguments = shlex.split(command)
    if program == "tuner":
        if arguments[0] == "run":
            return tuner.run_in_peace(*arguments, *BUDGET)
        return tuner.run(*arguments)
    return subprocess.run(
        [program, *arguments], cwd=tuner.folder, env=tuner.environment, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def test_the_page_has_its_reader_write_three_files_of_less_than_300_lines():
    files = read_files()

    assert len(files) <= 3
    assert sum(text.count("\n") for text in files.values()) <= 300


def test_every_command_of_the_page_ends_well(walk: Walk):
    for command, done in walk.done.items():
        allowed = {0, 1} if command.startswith("tuner run") else {0}
        assert done.returncode in allowed, f"{command}\n{done.stdout}{done.stderr}"


def test_the_contracts_were_run_with_both_modes(walk: Walk):
    suite = next(command for command in walk.done if "tuner.testing" in command)

    printed = walk.done[suite].stdout

    assert re.search(r"\b1[5-9] passed", printed), printed
    assert "skipped" not in printed


def test_the_study_ran_the_real_server_with_other_settings(walk: Walk):
    shown = json.loads(walk.tuner.run("show", "lighttpd.yaml", "--json").stdout)

    assert shown["fingerprint"]["servers"]["lighttpd"].startswith("1.4.")
    searched = [trial for trial in shown["trials"] if trial["role"] == "search"]
    assert any(trial["state"] == "complete" for trial in searched)
    assert {"server.max-worker", "server.max-fds"} <= set(shown["default"]["config"])
    assert shown["default"]["goodput_rps"] > 0


def test_the_adapter_and_its_space_are_listed_with_the_package_that_brings_them(walk: Walk):
    adapters = json.loads(walk.tuner.run("adapters", "--json").stdout)
    spaces = json.loads(walk.tuner.run("spaces", "--json").stdout)

    assert f"{PACKAGE} 1.0" in json.dumps([each for each in adapters if each["name"] == "lighttpd"])
    assert "lighttpd, static pages" in json.dumps([each for each in spaces if each["name"] == "lighttpd"])
