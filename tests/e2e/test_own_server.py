"""The server that docs/own-servers.md describes, from its study to a confirmed winner."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.testbed.processors import idle_processors_here

BUDGET = ("--preset", "quick", "--minutes", "0.8", "--trials", "4")
PAGE = (Path(__file__).parents[2] / "docs/own-servers.md").read_text()
PART = re.compile(r"^`(?P<path>[\w./-]+)`:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
NARROWED = "\n  - {{only: [{name}]}}\n  - {{parameters: {{{name}: {bad}}}}}\n  - {{hints: off}}\n"
"""One setting with a default so bad that there is a winner, whatever the machine and its noise."""


def confirm(tuner: CommandLine, study: str) -> Mapping[str, object]:
    """Run a study to its verdict and return what is shown of it."""
    completed = tuner.run_in_peace("run", study, *BUDGET)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    shown = json.loads(tuner.run("show", study, "--json").stdout)
    assert shown["gain"]["verdict"] == "improved"
    assert shown["gain"]["low"] > 1
    assert {"baseline", "search", "confirm"} <= {trial["role"] for trial in shown["trials"]}
    return shown


@pytest.mark.more
def test_the_server_of_the_page_is_tuned_by_its_commands(tmp_path: Path):
    for part in PART.finditer(PAGE):
        (tmp_path / part["path"]).write_text(part["text"])
    study = tmp_path / "own.yaml"
    narrowed = NARROWED.format(name="server.max-keep-alive-requests", bad="{low: 2, default: 2}")
    study.write_text(study.read_text().replace(" [./web.yaml]\n", f"\n  - ./web.yaml{narrowed}"))

    with idle_processors_here() as through:
        tuner = CommandLine(tmp_path, through=through)
        refused = tuner.run("check", "own.yaml")
        trusted = tuner.run("check", "own.yaml", "--trust")
        shown = confirm(tuner, "own.yaml")

    assert refused.returncode == 2
    assert "servers: command: start runs `lighttpd -D -f '{directory}/web.conf'`" in refused.stderr
    assert trusted.returncode == 0, trusted.stderr
    assert "has no read_back" not in trusted.stdout
    assert shown["fingerprint"]["servers"] == {"command": ""}  # type: ignore[index]


def test_a_check_says_when_nothing_proves_what_is_in_force(tmp_path: Path):
    for part in PART.finditer(PAGE):
        (tmp_path / part["path"]).write_text(part["text"])
    study = tmp_path / "own.yaml"
    study.write_text(re.sub(r"\n    read_back: .*", "", study.read_text()))

    with idle_processors_here() as through:
        checked = CommandLine(tmp_path, through=through).run("check", "own.yaml", "--trust")

    assert checked.returncode == 0, checked.stderr
    assert (
        "command has no read_back, so tuner cannot check that the requested values are active"
        in checked.stdout
    )
