"""Prints: results to stdout, all else to stderr."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TextIO

from tuner.cli.arguments import Form
from tuner.cli.exit_codes import INTERRUPTED
from tuner.cli.verbosity import Verbosity

if TYPE_CHECKING:
    from rich.console import Console

    from tuner.campaign.progress import Progress
    from tuner.report.forms import Forms


def what_was_typed() -> str:
    """Return the command again: its program by name where the shell finds it so, else as it was called."""
    program, *arguments = sys.argv
    name = Path(program).name
    return shlex.join([name if shutil.which(name) == program else program, *arguments])


def print_json(value: object) -> None:
    """Print a result for scripts, as ASCII."""
    print(json.dumps(value, indent=1))


def print_files(paths: Iterable[PurePath], *, as_json: bool, **more: object) -> None:
    """Print the files that a command has written, each on its line; for scripts with what else there is."""
    files = [str(path) for path in paths]
    if as_json:
        print_json({"files": files, **more})
        return
    for file in files:
        print_text(file)


def print_text(text: str, *, file: TextIO | None = None) -> None:
    """Print a result for people, which may quote a server or a host: nothing in it steers the terminal."""
    from tuner.report.wording import make_lines_printable

    print(make_lines_printable(text), file=file)


def say(text: str) -> None:
    """Print a message to stderr."""
    print_text(text, file=sys.stderr)


def remark(text: str) -> None:
    """Print to stderr what nobody needs who asked for the result only."""
    if not Verbosity.quiet:
        say(text)


def show_progress() -> "AbstractContextManager[Progress]":
    """Open the display of progress on stderr, as verbose as was asked."""
    from tuner.report.progress import open_progress

    return open_progress(make_console(stderr=True), verbose=Verbosity.verbose)


@contextmanager
def measuring(*, resumes: bool = False) -> "Iterator[Progress]":
    """Show the progress of what is measured; end the process when it is interrupted.

    Args:
        resumes: whether the same command resumes it.
    """
    try:
        with show_progress() as progress:
            yield progress
    except KeyboardInterrupt:
        how = f" Resume with: {what_was_typed()}" if resumes else ""
        say(f"Stopped. Everything is in its earlier state again.{how}")
        sys.exit(INTERRUPTED)


def show_result(forms: "Forms", form: Form, output: Path | None = None) -> None:
    """Print a result in a form, and write it to the file that is asked for. Raises TargetError."""
    if form is Form.JSON:
        print_json(forms.as_json())
    elif form is Form.SCREEN:
        make_console().print(forms.screen())
    else:
        text = forms.markdown() if form is Form.MARKDOWN else forms.csv()
        print_text(text.rstrip("\n"))
    if output is not None:
        from tuner.commands.outputs import write_text

        write_text(forms.write_for(output), output)
        if form is Form.SCREEN:  # what scripts read is the result alone
            print_text(str(output))


def make_console(*, stderr: bool = False) -> "Console":
    """Return what draws results, or on stderr progress.

    Lines are redrawn on a terminal alone; nothing is styled where plain text is wanted.
    """
    from rich.console import Console

    is_silent, is_plain = stderr and Verbosity.quiet, wants_plain_text()
    is_live = (sys.stderr if stderr else sys.stdout).isatty() and not is_plain
    return Console(
        stderr=stderr, highlight=False, markup=False, emoji=False, quiet=is_silent,
        force_terminal=False if is_silent else None, force_interactive=None if is_live else False,
        color_system=None if is_plain else "auto",
    )  # fmt: skip


def wants_plain_text() -> bool:
    """Return whether escape codes are unwelcome even on a terminal.

    NO_COLOR as https://no-color.org defines it; CI, as the common services set it, stands for a log, in which
    FORCE_COLOR asks for colours all the same; a dumb terminal knows no codes.
    """
    variables = os.environ
    is_log = variables.get("CI", "").lower() not in {"", "0", "false"} and not variables.get("FORCE_COLOR")
    return bool(variables.get("NO_COLOR")) or is_log or variables.get("TERM") in {"dumb", "unknown"}
