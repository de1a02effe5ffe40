"""The command that names the limits a running server meets, from what is there."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tuner.cli import names
from tuner.cli.arguments import AsJson, AsMarkdown, Form, choose_form
from tuner.cli.exit_codes import BITES
from tuner.cli.printing import print_json, print_text
from tuner.errors import UsageError

PAGE, MARKDOWN = ".html", ".md"


def advise(
    servers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SERVER]...",
            help="Servers to inspect (default: all known servers that run).",
            autocompletion=names.servers,
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Host to inspect: local or ssh://user@host.")] = "local",
    corpus: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of earlier studies that say what is worth trying; see `tuner corpus`."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Additional file for the result: .html or .md.")
    ] = None,
    rules: Annotated[
        bool, typer.Option("--rules", help="List all rules with conditions and sources; inspect nothing.")
    ] = False,
    as_json: AsJson = False,
    as_markdown: AsMarkdown = False,
) -> None:
    """Find within seconds the limits that running servers reach, without load or changes.

    Example: `tuner advise --host ssh://root@web1`
    """
    form = choose_form(as_json=as_json, as_markdown=as_markdown, as_csv=False)
    if output is not None and output.suffix not in {PAGE, MARKDOWN}:
        raise UsageError(f"--output: {output}: advice is written as {PAGE} or {MARKDOWN}. Name such a file.")
    if output is not None and not output.parent.is_dir():
        raise UsageError(f"--output: {output.parent}: there is no such folder. Make it, or name another one.")
    if rules:
        if output is not None or form is Form.MARKDOWN:
            raise UsageError("--rules: rules are printed as text or JSON. Leave --output and --markdown out.")
        _list_rules(servers or (), form)
        return
    from tuner.commands.advise import advise as look
    from tuner.plugins import make_host
    from tuner.report.advice import advice_json, advice_markdown, advice_page, advice_text

    found = look(make_host(host), servers or (), corpus=corpus)
    if form is Form.JSON:
        print_json(advice_json(found))
    else:
        print_text(advice_markdown(found) if form is Form.MARKDOWN else advice_text(found))
    if output is not None:
        from tuner.commands.outputs import write_text

        write_text(advice_page(found) if output.suffix == PAGE else advice_markdown(found), output)
        if form is Form.SCREEN:  # what scripts read is the result alone
            print_text(str(output))
    sys.exit(BITES if found.bites else 0)


def _list_rules(servers: Sequence[str], form: Form) -> None:
    from tuner.commands.advise import list_rules
    from tuner.report.advice import rules_json, rules_text

    found = list_rules(servers)
    if form is Form.JSON:
        print_json(rules_json(found))
    else:
        print_text(rules_text(found))
