"""The commands. The only place that prints and exits; heavy imports wait until a command needs them."""

import os
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from tuner import __doc__ as about
from tuner import __version__
from tuner.cli.curve_command import curve
from tuner.cli.exit_codes import INTERRUPTED
from tuner.cli.host_commands import apply, confirm, restore
from tuner.cli.list_commands import adapters, spaces
from tuner.cli.printing import say
from tuner.cli.study_commands import check, compare, explain, export, init, report, run, show
from tuner.cli.sweep_command import sweep
from tuner.errors import TunerError

COMMANDS: tuple[Callable[..., None], ...] = (
    init, check, run, show, explain, report, export, compare, sweep, curve, apply, confirm, restore,
    spaces, adapters,
)  # fmt: skip
"""As `tuner --help` lists them."""

app = typer.Typer(
    name="tuner",
    help=(about or "").partition("\n")[0],
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # importing rich would double the time of `tuner --help`
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    app.command()(command)


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer passes it by position
    if value:
        print(f"tuner {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    """Read the options that come before the command."""
    _Debug.on = debug


class _Debug:
    on = False


def main() -> NoReturn:
    """Run one command; every error that tuner means ends in one message and its exit code."""
    # Matrices are small here: more threads would wait for each other, on CPUs that the server needs.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        app()
    except TunerError as error:
        if _Debug.on:
            raise
        say(f"tuner: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        say("Stopped.")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(INTERRUPTED)
    sys.exit(0)
