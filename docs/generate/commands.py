"""Writes the reference of the command line from the help of the commands, with examples of the guides."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from docs.generate.markdown import code, escape, put
from tuner.cli import app

HEAD = """\
# Command line

Every command with its arguments and options, as `tuner COMMAND --help` prints them, and with examples.
[Exit codes](../exit-codes.md) has the codes that scripts see.
"""
MOST_EXAMPLES = 6
PAGES_APART = {"adding-a-server", "own-servers"}
"""Guides whose studies only their readers have."""
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"^\$ (?P<call>tuner (?P<name>\w+)\b.*?)(?P<remark> +#.*)?$", re.MULTILINE)


def write_page(folder: Path) -> None:
    """Write `commands.md` into a folder below that of the guides."""
    # typer brings a click of its own, whose classes have no public name.
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="tuner", **group.context_settings)
    everywhere = _describe(group.get_params(context), context)
    examples = _find_examples(folder.parent)
    lines = [HEAD, "## Options of every command", "", *everywhere]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        own = typer.Context(command, parent=context, info_name=name)
        told = [line for line in _describe(command.get_params(own), own) if line not in everywhere]
        usage = " ".join([own.command_path, *command.collect_usage_pieces(own)])
        lines += ["", f"## tuner {name}", "", escape(command.help), "", f"```text\n{usage}\n```", "", *told]
        if calls := examples.get(name):
            lines += ["", "Examples:", "", "```console", *calls[:MOST_EXAMPLES], "```"]
    put(folder / "commands.md", "\n".join(lines) + "\n")


def _find_examples(guides: Path) -> dict[str, list[str]]:
    """Return command → how guides call it, each call once, those with a remark first."""
    found: dict[str, dict[str, str]] = {}
    for page in sorted(each for each in guides.glob("*.md") if each.stem not in PAGES_APART):
        for block in _CONSOLE.findall(page.read_text()):
            for call in _CALL.finditer(block):
                calls = found.setdefault(call["name"], {})
                calls[call["call"]] = calls.get(call["call"]) or call["remark"] or ""
    return {
        name: [f"$ {call}{calls[call]}" for call in sorted(calls, key=lambda call: not calls[call])]
        for name, calls in found.items()
    }


def _describe(parameters: Sequence[Any], context: typer.Context) -> list[str]:
    """Return a line for each argument or option that its help shows."""
    records = [parameter.get_help_record(context) for parameter in parameters]
    return [f"- {code(record[0])}: {escape(record[1])}" for record in records if record]
