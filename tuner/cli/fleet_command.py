"""The commands of studies on several hosts: a worker for one of them, and who is at work."""

import time
from pathlib import Path
from typing import Annotated

import typer

from tuner.cli.agreement import agree_to_run
from tuner.cli.arguments import Agreed, AsJson, StudyPath, read_study, refuse_outside
from tuner.cli.printing import make_console, print_json, print_text, say
from tuner.errors import UsageError

CLEAR = "\x1b[H\x1b[2J"


def worker(
    study: StudyPath,
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address of the Dask scheduler, such as tls://host:8786.")
    ],
    target: Annotated[
        str | None, typer.Option(metavar="HOST", help="Host to measure on: local or ssh://user@host:port.")
    ] = None,
    yes: Agreed = False,
    as_json: AsJson = False,
) -> None:
    """Run the trials of one host for `tuner run STUDY --scheduler ADDRESS`.

    Example: `tuner worker nginx.yaml --scheduler tls://host:8786`
    """
    settings = read_study(study)
    if target is not None:
        from tuner.study.file import choose_target

        settings = choose_target(settings, target)
    if settings.target.is_managed:
        agree_to_run(settings, study, yes=yes)
    from tuner.commands.all_targets import import_fleet

    try:
        import_fleet("worker").work_for(settings, scheduler)
    except KeyboardInterrupt:
        say("The worker has ended. The host is in its earlier state again.")
    if as_json:
        print_json({"host": settings.target.host, "scheduler": scheduler})


def fleet(
    study: StudyPath,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until you press Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between refreshes, 0.2 to 3600.")] = 2.0,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address of the Dask scheduler, such as tls://host:8786."),
    ] = None,
    prometheus: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Additional file for node_exporter's textfile collector."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the hosts of a study: current trial, its start, trials per hour, failures.

    Example: `tuner fleet nginx.yaml --watch`
    """
    refuse_outside("--every", every, 0.2, 3600)
    if watch and as_json:
        raise UsageError(
            "--watch, --json: --watch shows a screen, and prints no JSON. Leave one of these options out."
        )
    settings = read_study(study)
    from tuner.commands.fleet.look import look_at_fleet, write_prometheus
    from tuner.report.fleet.screen import fleet_text

    while True:
        found = look_at_fleet(settings, scheduler)
        if prometheus is not None:
            write_prometheus(found, prometheus)
        if watch and make_console().is_terminal:
            print(CLEAR, end="")
        print_json(found.as_json()) if as_json else print_text(fleet_text(found))
        if not watch:
            return
        time.sleep(every)
