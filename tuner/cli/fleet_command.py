"""The commands of studies with many workers: who works on one, and the proxy through which they reach it."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from tuner.cli.arguments import AsJson, StudyPath, read_study, refuse_outside
from tuner.cli.printing import make_console, print_json, print_text, say
from tuner.errors import UsageError
from tuner.interrupts import signals_interrupt

CLEAR = "\x1b[H\x1b[2J"


def fleet(
    study: StudyPath,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks.")] = 2.0,
    prometheus: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write it for node_exporter's textfile collector, too."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show who works on a study: what is measured on each host, since when, starts per hour, failures."""
    refuse_outside("--every", every, 0.2, 3600)
    if watch and as_json:
        raise UsageError("--watch, --json: what is watched is for people. Call it again for each look.")
    settings = read_study(study)
    from tuner.commands.fleet import look_at_fleet, write_prometheus
    from tuner.report.fleet.screen import fleet_text

    while True:
        found = look_at_fleet(settings)
        if prometheus is not None:
            write_prometheus(found, prometheus)
        if watch and make_console().is_terminal:
            print(CLEAR, end="")
        print_json(found.as_json()) if as_json else print_text(fleet_text(found))
        if not watch:
            return
        time.sleep(every)


def proxy(
    study: StudyPath,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where workers reach it.")
    ] = "127.0.0.1:13000",
    as_json: AsJson = False,
) -> None:
    """Let very many workers reach the PostgreSQL of a study: they write `storage: grpc://HOST:PORT`."""
    settings = read_study(study)
    from tuner.commands.proxy import is_for_all, open_proxy

    server = open_proxy(settings, listen)
    storage = f"grpc://{listen}"
    print_json({"storage": storage}) if as_json else print_text(storage)
    sys.stdout.flush()  # who reads this waits for it, and what follows takes until somebody ends it
    if is_for_all(listen):
        say(f"Whoever reaches {listen} can read and change every study there: nobody is asked who they are.")
    say("Ctrl-C ends it.")
    try:
        with signals_interrupt():
            server.wait_for_termination()
    except KeyboardInterrupt:
        say("Ended.")
    finally:
        server.stop(grace=1.0).wait()
