"""Asks a person before anything changes that is installed on a host.

Where nobody can be asked, that is a UsageError; a person who does not agree ends the command as Ctrl-C does.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tuner.cli.exit_codes import INTERRUPTED
from tuner.cli.printing import say
from tuner.errors import UsageError
from tuner.shell_words import write_command

if TYPE_CHECKING:
    from tuner.restore.recovery import LastApply
    from tuner.study import Study


def agree_to_run(settings: "Study", study: Path, *, yes: bool) -> None:
    """Ask before the first managed run on a host; in a sandbox nothing of a host changes."""
    if not settings.target.is_managed:
        return
    from tuner.restore.consent import has_agreed, remember_agreement

    host = settings.target.host
    if has_agreed(host):
        return
    if not yes:
        look = write_command("tuner", "check", study, "--plan")
        _refuse_without_terminal(
            f"{study}: target: a run changes and restarts installed services on {host} (see `{look}`), and "
            "tuner has no terminal to ask you."
        )
        say(
            f"A run changes and restarts {', '.join(settings.servers)} on {host} many times, and then "
            f"restores everything. To see the changes: {look}"
        )
        _ask("Continue?")
    remember_agreement(host)


def agree_to_apply(settings: "Study", place: str) -> None:
    """Ask before a winner goes into service."""
    servers = ", ".join(settings.servers)
    _refuse_without_terminal(
        f"apply: this command changes and restarts {servers} on {place}, and tuner has no terminal to ask "
        "you."
    )
    _ask(f"Change and restart {servers} on {place}?")


def agree_to_undo(applied: "LastApply", place: str) -> None:
    """Ask before what was applied is rolled back."""
    restarted = f" and restart {', '.join(applied.services)}" if applied.services else ""
    files = ", ".join(map(str, applied.paths))
    said = (
        f"restore {files}{restarted} on {place} (applied for {applied.study or 'a study'}, {applied.since})"
    )
    _refuse_without_terminal(
        f"apply --undo: this command would {said}, and tuner has no terminal to ask you."
    )
    _ask(f"{said[0].upper()}{said[1:]}?")


def agree_to_let_go(place: str, troubles: str, *, yes: bool) -> None:
    """Ask before what cannot be restored is left as it is."""
    say(troubles)
    if not yes:
        _refuse_without_terminal(
            f"restore: --accept leaves the items above on {place} as they are, and tuner has no terminal to "
            "ask you."
        )
        _ask(f"Leave the items above on {place} as they are, and set their backups aside?")


def _refuse_without_terminal(problem: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"{problem} Agree with --yes.")


def _ask(question: str) -> None:
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:  # the end of the input is no answer
        agreed = False
    if not agreed:
        sys.exit(INTERRUPTED)
