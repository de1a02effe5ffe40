"""The commands on a host: put a winner into service, keep it, put originals back."""

from typing import Annotated

import typer

import tuner
from tuner.cli.agreement import agree_to_apply, agree_to_let_go
from tuner.cli.arguments import StudyPath, read_duration, read_study
from tuner.cli.printing import print_text, say
from tuner.errors import RestoreFailed


def apply(
    study: StudyPath,
    host: Annotated[
        str | None, typer.Option(help="local or ssh://user@host; the study's target when left out.")
    ] = None,
    url: Annotated[str | None, typer.Option(help="What must answer with 200 afterwards.")] = None,
    confirm_within: Annotated[
        str, typer.Option(help="Time until the host takes it back: 90s, 10m, 2h.")
    ] = "10m",
    undo: Annotated[bool, typer.Option("--undo", help="Take back what was applied.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would change, and end.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before it is changed.")] = False,
) -> None:
    """Put the winner on a host for good; it is taken back unless `tuner confirm` comes in time."""
    settings = read_study(study)
    from tuner import plugins

    place = host or settings.target.host
    if undo:
        from tuner.restore.recovery import undo as undo_host

        paths = undo_host(plugins.make_host(place))
        for path in paths:
            print_text(str(path))
        say(f"{place}: {len(paths)} originals put back." if paths else f"{place}: nothing was applied.")
        return
    from tuner.commands.apply import apply_winner, plan_change

    within_s = read_duration("--confirm-within", confirm_within)
    reading = tuner.read(settings, with_explanation=False)
    gain = reading.summary.gain
    if gain is not None and not gain.is_proven:
        say(f"{study}: the winner is not better for sure ({gain.verdict}). {reading.summary.reason}")
    if dry_run:
        change = plan_change(reading, host_name=host, url=url, confirm_within_s=within_s)
        print_text(change.as_text())
        return
    if not yes:
        agree_to_apply(settings, place)
    applied = apply_winner(reading, host_name=host, url=url, confirm_within_s=within_s)
    for warning in applied.warnings:
        say(warning)
    for path in applied.files:
        print_text(str(path))
    of_host = "" if place == "local" else f" --host {place}"
    say(
        f"{place}: the winner is in force and answers. Keep it with: tuner confirm{of_host}\n"
        f"Without that it is taken back in {confirm_within}. Later: tuner apply {study}{of_host} --undo"
    )


def confirm(host: Annotated[str, typer.Option(help="Where it was applied.")] = "local") -> None:
    """Keep what `tuner apply` has put on a host."""
    from tuner import plugins
    from tuner.restore.journal import open_journal
    from tuner.restore.recovery import confirm as confirm_host

    target = plugins.make_host(host)
    with open_journal() as journal:
        confirm_host(target)
        journal.discard(target.name)
    say(f"{host}: what was applied stays.")


def restore(
    host: Annotated[str, typer.Option(help="Whose originals to put back.")] = "local",
    accept: Annotated[
        bool, typer.Option("--accept", help="Let go of what cannot be put back; its originals are kept.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --accept: do not ask before.")] = False,
) -> None:
    """Put back what an earlier run changed outside a sandbox."""
    from tuner import plugins
    from tuner.deploy.load_target import remove_tokens
    from tuner.restore.journal import open_journal
    from tuner.restore.recovery import accept_host, restore_host

    target = plugins.make_host(host)
    with open_journal() as journal:
        try:
            restored = restore_host(target, journal, say)
        except RestoreFailed as error:
            if not accept:
                raise
            agree_to_let_go(host, str(error), yes=yes)
            restored, told = accept_host(target, journal, say)
            for sentence in told:
                say(sentence)
    restored = (*restored, *remove_tokens(target))
    for path in restored:
        print_text(str(path))
    say(f"{len(restored)} originals put back." if restored else "Nothing to restore.")
