"""Every command can be read by a script."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from tests.e2e.command_line import TUNER
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
    environment = {**os.environ, "TUNER_STATE": str(tmp_path / "state")}
    ran = subprocess.run(
        [TUNER, command, *HERE[command], "--json"], cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)


def test_a_written_schema_is_told_as_a_file(tmp_path: Path):
    ran = subprocess.run(
        [TUNER, "schema", "-o", "study.schema.json", "--json"], cwd=tmp_path, capture_output=True, check=True
    )

    assert json.loads(ran.stdout) == {"files": ["study.schema.json"]}
    assert json.loads((tmp_path / "study.schema.json").read_text())["title"] == "tuner study"
