"""Writes the reference of the command line from what the commands say of themselves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from docs.generate.markdown import code, escape, put
from tuner.cli import app

HEAD = """\
# Command line

Every command with its arguments and options, as `tuner COMMAND --help` prints them.
[Read the result](../index.md#read-the-result) has the exit codes.
"""


def write_page(folder: Path) -> None:
    """Write `commands.md` into a folder."""
    # typer brings a click of its own, whose classes have no public name.
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="tuner", **group.context_settings)
    everywhere = _describe(group.get_params(context), context)
    lines = [HEAD, "## Options of every command", "", *everywhere]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        own = typer.Context(command, parent=context, info_name=name)
        told = [line for line in _describe(command.get_params(own), own) if line not in everywhere]
        usage = " ".join([own.command_path, *command.collect_usage_pieces(own)])
        lines += ["", f"## tuner {name}", "", escape(command.help), "", f"```text\n{usage}\n```", "", *told]
    put(folder / "commands.md", "\n".join(lines) + "\n")


def _describe(parameters: Sequence[Any], context: typer.Context) -> list[str]:
    """Return a line for each argument or option that its help shows."""
    records = [parameter.get_help_record(context) for parameter in parameters]
    return [f"- {code(record[0])}: {escape(record[1])}" for record in records if record]
