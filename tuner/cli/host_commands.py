"""The commands on a host: put a winner into service, keep it, put originals back."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

import tuner
from tuner.cli.agreement import agree_to_apply, agree_to_let_go, agree_to_undo
from tuner.cli.arguments import AsJson, StudyPath, read_duration, read_study
from tuner.cli.printing import print_files, print_json, print_text, say
from tuner.errors import RestoreFailed
from tuner.interrupts import signals_interrupt
from tuner.shell_words import write_command

if TYPE_CHECKING:
    from tuner.study import Study

APPLIES = "tuner has restored all changes, or the host restores them by itself."
CONFIRMS = "The apply may or may not be confirmed. Run the same command again."
RESTORES = (
    "The host finishes the restore by itself. Run the same command again to check that all is restored."
)


@contextmanager
def _told_when_stopped(place: str, told: str) -> Iterator[None]:
    """Let signals interrupt, and say what becomes of the host."""
    with signals_interrupt():
        try:
            yield
        except KeyboardInterrupt:
            say(f"{place}: {told}")
            raise


def apply(  # noqa: PLR0913, PLR0917 - the command's options
    study: StudyPath,
    host: Annotated[
        str | None, typer.Option(help="Host: local or ssh://user@host (default: the study's target).")
    ] = None,
    url: Annotated[str | None, typer.Option(help="URL that must return status 200 after the change.")] = None,
    confirm_within: Annotated[
        str, typer.Option(help="Time until rollback unless confirmed, 10s to 24h.")
    ] = "10m",
    undo: Annotated[bool, typer.Option("--undo", help="Roll back the last apply.")] = False,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept", help="With --undo: leave out files that somebody has changed since the apply."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes without making them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Change the host without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Apply the winner to a host permanently; it rolls back unless confirmed in time.

    Example: `tuner apply nginx.yaml --host ssh://root@web1`
    """
    settings = read_study(study)
    place = host or settings.target.host
    if undo:
        with _told_when_stopped(place, RESTORES):
            _undo(settings, place, accepts=accept, is_dry=dry_run, yes=yes, as_json=as_json)
        return
    from tuner.commands.apply import apply_winner, plan_change

    within_s = read_duration("--confirm-within", confirm_within)
    reading = tuner.read(settings, with_explanation=False)
    gain = reading.summary.gain
    if gain is not None and not gain.is_proven:
        say(f"{study}: the winner is not proven to be better ({gain.verdict}). {reading.summary.reason}")
    if dry_run:
        change = plan_change(reading, host_name=host, url=url, confirm_within_s=within_s)
        print_json(change.as_json()) if as_json else print_text(change.as_text())
        return
    if not yes:
        agree_to_apply(settings, place)
    with _told_when_stopped(place, APPLIES):
        applied = apply_winner(reading, host_name=host, url=url, confirm_within_s=within_s)
    for warning in applied.warnings:
        say(warning)
    of_host = () if place == "local" else ("--host", place)
    keep = write_command("tuner", "confirm", *of_host)
    print_files(
        applied.files, as_json=as_json, host=place, warnings=list(applied.warnings), rolls_back_in_s=within_s,
        keep=keep,
    )  # fmt: skip
    undo_it = write_command("tuner", "apply", study, *of_host, "--undo")
    say(
        f"{place}: the winner is active and the server answers. Keep the winner with: {keep}\n"
        f"Unless confirmed, the host rolls back in {confirm_within}. Undo the apply later with: {undo_it}"
    )


def _undo(settings: "Study", place: str, *, accepts: bool, is_dry: bool, yes: bool, as_json: bool) -> None:
    from tuner import plugins
    from tuner.commands.apply import find_own_apply
    from tuner.restore.journal import open_journal
    from tuner.restore.recovery import undo

    host = plugins.make_host(place)
    with open_journal() as journal:
        applied = find_own_apply(settings, host, journal)
        if applied is None:
            print_files((), as_json=as_json, host=place)
            say(f"{place}: nothing is applied.")
            return
        if is_dry:
            print_files(applied.paths, as_json=as_json, host=place, changed_since=dict(applied.changed))
            for path, versions in applied.changed.items():
                say(
                    f"{place}: somebody changed {path} after the apply ({versions}). --undo leaves this file "
                    "as it is, and needs --accept."
                )
            say(f"{place}: --undo restores {say_backups(applied.paths)}. Nothing was changed.")
            return
        if not yes:
            agree_to_undo(applied, place)
        paths = undo(host, journal, applied, accepts=accepts, warn=say)
    print_files(paths, as_json=as_json, host=place)
    say(f"{place}: {say_restored(paths)}")
    if applied.earlier:
        stay = "1 earlier winner stays" if applied.earlier == 1 else f"{applied.earlier} earlier winners stay"
        say(f"{place}: {stay} applied. To undo the latest of them as well, run --undo again, with its study.")


def confirm(
    host: Annotated[str, typer.Option(help="Host to confirm: local or ssh://user@host.")] = "local",
    as_json: AsJson = False,
) -> None:
    """Confirm the last apply on a host, so that it does not roll back.

    Example: `tuner confirm --host ssh://root@web1`
    """
    from tuner import plugins
    from tuner.restore.journal import open_journal
    from tuner.restore.recovery import confirm as confirm_host

    with _told_when_stopped(host, CONFIRMS), open_journal() as journal:
        confirm_host(plugins.make_host(host), journal, say)
    if as_json:
        print_json({"host": host, "kept": True})
    say(f"{host}: the applied winner stays active.")


def restore(
    host: Annotated[str, typer.Option(help="Host to restore: local or ssh://user@host.")] = "local",
    accept: Annotated[
        bool, typer.Option("--accept", help="Leave out files that cannot be restored; keep their backups.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --accept: do not ask for confirmation.")] = False,
    as_json: AsJson = False,
) -> None:
    """Restore what an interrupted run changed.

    Example: `tuner restore --host ssh://root@web1`
    """
    from tuner import plugins
    from tuner.deploy.load_target import remove_tokens
    from tuner.restore.journal import open_journal
    from tuner.restore.recovery import accept_host, restore_host

    target = plugins.make_host(host)
    let_go: tuple[str, ...] = ()
    with _told_when_stopped(host, RESTORES), open_journal() as journal:
        try:
            restored = restore_host(target, journal, say)
        except RestoreFailed as error:
            if not accept:
                raise
            agree_to_let_go(host, str(error), yes=yes)
            restored, let_go = accept_host(target, journal, say)
            for sentence in let_go:
                say(sentence)
        restored = (*restored, *remove_tokens(target))
    print_files(restored, as_json=as_json, host=host, accepted=list(let_go))
    say(say_restored(restored) if restored or let_go else "Nothing to restore.")


def say_restored(restored: Sequence[object]) -> str:
    """Return how many backups were restored, as a sentence."""
    return f"{say_backups(restored)} restored."


def say_backups(backups: Sequence[object]) -> str:
    """Return a number of backups in words."""
    return "1 backup" if len(backups) == 1 else f"{len(backups)} backups"
