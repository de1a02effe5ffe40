"""Every command can be read by a script."""

import json
from pathlib import Path

import pytest
from typer.main import get_command

from tests.e2e.command_line import CommandLine
from tuner.cli import COMMANDS, app

HERE = {
    "adapters": (), "loads": (), "spaces": ("nginx",), "studies": (), "schema": ("space",), "man": (),
    "completion": ("bash",), "init": ("nginx",), "restore": (),
}  # fmt: skip
"""Those that need no measured study, with what they are called with."""


def test_every_command_has_json():
    commands = get_command(app).commands

    assert len(commands) == len(COMMANDS)
    assert [
        name
        for name, command in commands.items()
        if not any("--json" in parameter.opts for parameter in command.params)
    ] == []


@pytest.mark.parametrize("command", HERE)
def test_what_it_prints_then_is_json_and_nothing_else(tmp_path: Path, command: str):
    environment = {"TUNER_STATE": str(tmp_path / "state")}
    ran = CommandLine(tmp_path).call(command, *HERE[command], "--json", environment=environment)

    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)


def test_a_written_schema_is_told_as_a_file(tmp_path: Path):
    ran = CommandLine(tmp_path).call("schema", "-o", "study.schema.json", "--json")

    assert json.loads(ran.stdout) == {"files": ["study.schema.json"]}
    assert json.loads((tmp_path / "study.schema.json").read_text())["title"] == "tuner study"
