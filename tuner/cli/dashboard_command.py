"""The command that opens Optuna's dashboard on a study."""

import sys
from typing import Annotated

import typer

from tuner.cli.arguments import AsJson, StudyPath, read_study, refuse_outside
from tuner.cli.printing import print_json, print_text, say
from tuner.interrupts import signals_interrupt


def dashboard(
    study: StudyPath,
    port: Annotated[int, typer.Option(help="Local port to listen on; 0 takes any free one.")] = 8080,
    browser: Annotated[bool, typer.Option("--browser", help="Open the dashboard in a browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a study in Optuna's dashboard, even while it runs: read-only, on this machine.

    Example: `tuner dashboard nginx.yaml --browser`
    """
    refuse_outside("--port", port, 0, 65535)
    settings = read_study(study)
    from tuner.commands.dashboard import open_dashboard

    server, url = open_dashboard(settings, port)
    if as_json:
        print_json({"url": url})
    else:
        print_text(url)
    sys.stdout.flush()  # who reads this waits for it, and what follows takes until somebody ends it
    if browser:
        typer.launch(url)
    say("Press Ctrl-C to end the dashboard.")
    try:
        with signals_interrupt():
            server.serve_forever()
    except KeyboardInterrupt:
        say("Ended.")
    finally:
        server.server_close()
