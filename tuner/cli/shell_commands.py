"""The commands that print what others read: the man page, made from `--help`, and what shells complete by."""

import os
import textwrap
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from tuner import __version__
from tuner.cli.arguments import AsJson
from tuner.cli.exit_codes import MEANINGS
from tuner.cli.printing import print_json, print_text

COMMAND = "tuner"
SECTION = 1
SHARED = ("-q", "-v", "--debug", "-h")
"""Options that every command has; they are described once, with those before the command's name."""
LINE = 64
"""Letters of a line, before some of them are spelled out."""
SPELLED = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga"}


class Shell(StrEnum):
    """A shell that completes command lines."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="Shell that runs the script.")],
    as_json: AsJson = False,
) -> None:
    """Print the script with which a shell completes commands, options and names.

    Example: `tuner completion fish > ~/.config/fish/completions/tuner.fish`
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(
        prog_name=COMMAND, complete_var=f"_{COMMAND.upper()}_COMPLETE", shell=shell.value
    )
    if as_json:
        print_json({"shell": shell.value, "script": script})
    else:
        print_text(script)


def man(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Print the man page.

    Example: `tuner man | man -l -`
    """
    page = "\n".join(_write_page(ctx.find_root()))
    if as_json:
        print_json({"section": SECTION, "page": page})
    else:
        print_text(page)


def _write_page(root: Any) -> Iterator[str]:  # noqa: ANN401 - typer gives its contexts no public class
    """Yield the lines of the page, in the macros of man(7)."""
    # As reproducible-builds.org has it: the day of the sources, where it is told.
    day = time.strftime("%Y-%m-%d", time.gmtime(float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    yield f'.TH {COMMAND.upper()} {SECTION} "{day}" "tuner {__version__}" "User Commands"'
    yield from (".SH NAME", *_set(f"{COMMAND} - {_lower(root.command.help)}"))
    yield from (".SH SYNOPSIS", f".B {COMMAND}", *_set(_usage(root)))
    yield from (".SH OPTIONS", *_set(f"{', '.join(SHARED)} may also follow the name of a command."))
    yield from _write_parameters(root, ())
    yield ".SH COMMANDS"
    for each in root.command.commands.values():
        yield from _write_command(root, each)
    yield ".SH EXIT STATUS"
    for code, meaning in MEANINGS.items():
        yield from (".TP", f".B {code}", *_set(meaning))


def _write_command(root: Any, command: Any) -> Iterator[str]:  # noqa: ANN401
    context = typer.Context(command, info_name=command.name, parent=root)
    yield from (f".SS {command.name}", f".B {COMMAND} {command.name}", *_set(_usage(context)))
    for paragraph in (command.help or "").split("\n\n"):
        yield from (".PP", *_set(paragraph))
    yield from _write_parameters(context, SHARED)


def _write_parameters(context: Any, left_out: tuple[str, ...]) -> Iterator[str]:  # noqa: ANN401
    """Yield what `--help` says of each argument and option."""
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or {*parameter.opts} & {*left_out}:
            continue
        written, told = record
        yield from (".TP", rf"\fB{_escape(written)}\fR", *_set(told))


def _usage(context: Any) -> str:  # noqa: ANN401
    return " ".join(context.command.collect_usage_pieces(context))


def _lower(sentence: str) -> str:
    """Return a sentence as the NAME of a page has it, which whatis(1) lists."""
    return (sentence[:1].lower() + sentence[1:]).rstrip(".")


def _set(text: str) -> Iterator[str]:
    """Yield a paragraph in short lines, none of which is a command of roff."""
    for line in textwrap.wrap(text, LINE, break_long_words=False, break_on_hyphens=False):
        yield _escape(line)


def _escape(text: str) -> str:
    r"""Return a line as roff prints it, in ASCII: `\[u2026]` for …, no command at its beginning."""
    plain = text.translate({ord(sign): spelled for sign, spelled in SPELLED.items()})
    ascii_only = "".join(sign if sign.isascii() else rf"\[u{ord(sign):04X}]" for sign in plain)
    return rf"\&{ascii_only}" if ascii_only.startswith(".") else ascii_only
