"""The command that names the limits a running server meets, from what is there."""

import sys
from typing import Annotated

import typer

from tuner.cli import names
from tuner.cli.arguments import AsJson, AsMarkdown, Form, choose_form
from tuner.cli.exit_codes import BITES
from tuner.cli.printing import print_json, print_text


def advise(
    servers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SERVER]...",
            help="Servers to inspect (default: all known ones that run).",
            autocompletion=names.servers,
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Host to inspect: local or ssh://user@host.")] = "local",
    as_json: AsJson = False,
    as_markdown: AsMarkdown = False,
) -> None:
    """Find the limits that running servers reach, in seconds, without load or changes.

    Example: `tuner advise --host ssh://root@web1`
    """
    form = choose_form(as_json=as_json, as_markdown=as_markdown, as_csv=False)
    from tuner.commands.advise import advise as look
    from tuner.plugins import make_host
    from tuner.report.advice import advice_json, advice_markdown, advice_text

    found = look(make_host(host), servers or ())
    if form is Form.JSON:
        print_json(advice_json(found))
    else:
        print_text(advice_markdown(found) if form is Form.MARKDOWN else advice_text(found))
    sys.exit(BITES if found.bites else 0)
