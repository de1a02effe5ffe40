"""docs/adding-a-server.md, followed literally: a server that tuner does not know, from the page alone."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command_line import CommandLine
from tests.testbed.processors import idle_processors_here
from tests.unit.simulated_study import make_summary
from tuner.export import Rewritten, export
from tuner.plugins import make_host, make_installed_server

PAGE = (Path(__file__).parents[2] / "docs/adding-a-server.md").read_text()
PART = re.compile(r"^`(?P<path>[\w./-]+)`:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
"""A part of a file, which its path stands before; parts of one file follow each other."""
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUDGET = ("--minutes", "0.4", "--trials", "2")
PACKAGE = "tuner-lighttpd"
INSTALL = f"pip install ./{PACKAGE}"
Done = Mapping[str, subprocess.CompletedProcess[str]]
"""What came of each command."""


def read_files() -> dict[str, str]:
    """Read the files that the page has its reader write."""
    files: dict[str, str] = {}
    for part in PART.finditer(PAGE):
        files[part["path"]] = files.get(part["path"], "") + part["text"]
    return files


def read_commands() -> list[str]:
    """Read the commands that the page has its reader run."""
    return [line.removeprefix("$ ") for block in CONSOLE.findall(PAGE) for line in block.splitlines()]


@pytest.fixture(scope="module")
def tuner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """Yield the command line of a reader who has written the files and installed the package."""
    folder = tmp_path_factory.mktemp("walk")
    for path, text in read_files().items():
        file = folder / PACKAGE / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    site = str(folder / "site")
    variables = {
        "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": site,
        # Beside tuner, from what is here: no network, and this environment stays as it is.
        "PIP_TARGET": site,
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
    }
    with idle_processors_here() as through:
        tuner = CommandLine(folder, variables=variables, through=through)
        installed = run(tuner, INSTALL)
        assert installed.returncode == 0, installed.stderr
        yield tuner


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


@pytest.mark.more
def test_a_reader_who_runs_every_command_of_the_page_has_tuned_the_server(tuner: CommandLine):
    # One test, for side by side several would each need a study of their own.
    done = {command: run(tuner, command) for command in read_commands() if command != INSTALL}

    shown = json.loads(tuner.run("show", "lighttpd.yaml", "--json").stdout)
    expect_good_ends(done, shown)
    expect_contracts_of_both_modes(done["python -m tuner.testing lighttpd"].stdout)
    assert "tuner init lighttpd -o lighttpd.yaml" in done
    expect_study_of_the_real_server(shown)


def expect_good_ends(done: Done, shown: Mapping[str, Any]) -> None:
    for command, ended in done.items():
        allowed = {0}
        if command.startswith("tuner run"):
            # A study of seconds may prove nothing.
            allowed = {0, 1}
        elif command.startswith("tuner export") and shown["winner"] is None:
            allowed = {2}
        assert ended.returncode in allowed, f"{command}\n{ended.stdout}{ended.stderr}"


def expect_contracts_of_both_modes(printed: str) -> None:
    assert re.search(r"\b1[5-9] passed", printed), printed
    assert "skipped" not in printed


def expect_study_of_the_real_server(shown: Mapping[str, Any]) -> None:
    assert shown["fingerprint"]["servers"]["lighttpd"].startswith("1.4.")
    searched = [trial for trial in shown["trials"] if trial["role"] == "search"]
    # Whether one of them was worth a second window is its luck.
    assert any(trial["state"] in {"complete", "pruned"} for trial in searched)
    assert {"server.max-worker", "server.max-fds"} <= set(shown["default"]["config"])
    assert shown["default"]["goodput_rps"] > 0


def test_an_export_is_the_drop_in_with_what_was_changed(tuner: CommandLine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(tuner.variables["PYTHONPATH"])
    lighttpd = make_installed_server("lighttpd")
    installation = lighttpd.find(make_host("local"))
    after = lighttpd.rewrite({"server.max-worker": 2, "server.network-backend": "writev"}, installation)
    rewritten = Rewritten(before={}, after=after, service=installation.service)

    files = export(make_summary(searches=4), "lighttpd", rendered={"lighttpd": rewritten})

    assert set(files) == {"tuner-lighttpd.patch", "tuner-lighttpd-undo.sh"}
    assert (
        '+server.max-worker := 2\n+server.network-backend := "writev"\n'
        in files["tuner-lighttpd.patch"].decode()
    )
    assert "rm -f -- /etc/lighttpd/conf-enabled/zz-tuner.conf" in files["tuner-lighttpd-undo.sh"].decode()


def test_the_adapter_and_its_space_are_listed_with_the_package_that_brings_them(tuner: CommandLine):
    adapters = json.loads(tuner.run("adapters", "--json").stdout)
    spaces = json.loads(tuner.run("spaces", "--json").stdout)

    assert f"{PACKAGE} 1.0" in json.dumps([each for each in adapters if each["name"] == "lighttpd"])
    assert "lighttpd, static pages" in json.dumps([each for each in spaces if each["name"] == "lighttpd"])
