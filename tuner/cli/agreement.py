"""Asks a person before anything changes that is installed on a host.

Where nobody can be asked, that is a UsageError; who does not agree ends the command as an interrupt does.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tuner.cli.exit_codes import INTERRUPTED
from tuner.cli.printing import say
from tuner.errors import UsageError

if TYPE_CHECKING:
    from tuner.study import Study


def agree_to_run(settings: "Study", study: Path, *, yes: bool) -> None:
    """Let a person agree before the first managed run on a host."""
    from tuner.restore.consent import has_agreed, remember_agreement

    host = settings.target.host
    if has_agreed(host):
        return
    if not yes:
        if not sys.stdin.isatty():
            msg = (
                f"{study}: target: a run changes and restarts what is installed on {host} (see `tuner check "
                f"{study} --plan`), and nobody can be asked here. Agree with --yes."
            )
            raise UsageError(msg)
        servers = ", ".join(settings.servers)
        say(
            f"This changes and restarts {servers} on {host}, many times, and puts everything back. "
            f"What exactly: tuner check {study} --plan"
        )
        if not typer.confirm("Go on?", err=True):
            sys.exit(INTERRUPTED)
    remember_agreement(host)


def agree_to_apply(settings: "Study", place: str) -> None:
    """Let a person agree before a winner goes into service."""
    if not sys.stdin.isatty():
        msg = f"apply: it changes and restarts {', '.join(settings.servers)} on {place}. Agree with --yes."
        raise UsageError(msg)
    if not typer.confirm(f"Change and restart {', '.join(settings.servers)} on {place}?", err=True):
        sys.exit(INTERRUPTED)


def agree_to_let_go(place: str, troubles: str, *, yes: bool) -> None:
    """Let a person agree to leave what cannot be put back as it is."""
    say(troubles)
    if yes:
        return
    if not sys.stdin.isatty():
        msg = f"restore: --accept leaves the above on {place} as it is. Agree with --yes."
        raise UsageError(msg)
    if not typer.confirm(f"Leave that on {place} as it is, and keep its originals aside?", err=True):
        sys.exit(INTERRUPTED)
