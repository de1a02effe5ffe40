"""The commands. The only place that prints and exits; heavy imports wait until a command needs them."""

import errno
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain
from typing import Annotated, Any, NoReturn

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]
from typer.core import TyperGroup

from tuner import __doc__ as about
from tuner import __version__
from tuner.cli.advise_command import advise
from tuner.cli.contest_commands import compare, versus
from tuner.cli.corpus_command import corpus
from tuner.cli.curve_command import curve
from tuner.cli.dashboard_command import dashboard
from tuner.cli.exit_codes import CANNOT_TELL, FAULT, INTERRUPTED, NOTHING_BETTER
from tuner.cli.fleet_command import fleet, worker
from tuner.cli.host_commands import apply, confirm, restore
from tuner.cli.init_command import init
from tuner.cli.list_commands import adapters, loads, schema, spaces, studies
from tuner.cli.printing import say
from tuner.cli.regression_commands import gate, verify
from tuner.cli.shell_commands import completion, man
from tuner.cli.streams import finish_output, prepare_streams
from tuner.cli.study_commands import check, explain, export, report, run, show
from tuner.cli.sweep_command import sweep
from tuner.cli.verbosity import Debug, Quiet, Verbose, Verbosity, raise_verbosity, with_verbosity
from tuner.cli.wrong_input import WrongInput, explain_input
from tuner.errors import TunerError

GROUPS: Mapping[str, tuple[Callable[..., None], ...]] = {
    "Start": (init, check, advise, studies),
    "Tune": (run, show, dashboard, fleet, worker),
    "Understand": (explain, report, compare, sweep, curve, versus),
    "Ship": (export, apply, confirm, restore),
    "Operate": (verify, gate),
    "More": (corpus, spaces, loads, adapters, schema, completion, man),
}
"""As `tuner --help` lists the commands."""
COMMANDS = tuple(chain.from_iterable(GROUPS.values()))


class _Grouped(TyperGroup):
    """Lists the commands in groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - typer has no public class
        longest = max(map(len, self.commands))
        for title, commands in GROUPS.items():
            names = [command.__name__ for command in commands]
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(longest), self.commands[name].get_short_help_str()) for name in names]
                )


app = typer.Typer(
    cls=_Grouped,
    name="tuner",
    help=(about or "").partition("\n")[0],
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # importing rich would double the time of `tuner --help`
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in COMMANDS:
    # Given so, the sentence is wrapped in the list of commands; otherwise it is cut off.
    app.command(short_help=(command.__doc__ or "").partition("\n")[0])(with_verbosity(command))

CANNOT_BE_WRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer passes it by position
    if value:
        print(f"tuner {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> None:
    """Read the options that come before the command."""
    raise_verbosity(quiet=quiet, verbose=verbose, debug=debug)


def main() -> NoReturn:
    """Run one command; whatever it raises ends in one message and an exit code that means only that."""
    # Matrices are small here: more threads would wait for each other, on CPUs that the server needs.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    prepare_streams()
    completion_init()
    code = _call(_run)
    lost = _call(lambda: finish_output(sys.stdout))
    with suppress(OSError):  # messages; the code says the same
        finish_output(sys.stderr)
    # A verdict that nobody could read is none; an error stays what it is.
    sys.exit(lost if lost and code in {0, NOTHING_BETTER, CANNOT_TELL} else code)


def _run() -> int:
    """Run what was typed and return its exit code. Raises UsageError for what typer refuses."""
    try:
        code = int(app(standalone_mode=False) or 0)
    except WrongInput as error:
        if error.ctx is not None and error.message == error.ctx.get_help():  # nothing was typed
            say(error.message)
            return error.exit_code
        raise explain_input(error) from error
    if code == INTERRUPTED:  # what typer makes of it; the commands themselves end by SystemExit
        raise KeyboardInterrupt
    return code


def _call(action: Callable[[], int | None]) -> int:
    """Return the exit code of what is done."""
    try:
        return action() or 0
    except SystemExit as ended:
        # typer ends with 1 when its reader has left, as `head` does.
        return INTERRUPTED if isinstance(ended.__context__, BrokenPipeError) else int(ended.code or 0)
    except TunerError as error:
        return _report(f"{error}", error.exit_code)
    except KeyboardInterrupt:
        return _report("stopped.", INTERRUPTED)
    except BrokenPipeError:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - code 1 would mean that nothing beat the default
        return _report(_describe_fault(error), FAULT)


def _describe_fault(error: Exception) -> str:
    """Return what to do about an error that nobody foresaw."""
    if isinstance(error, OSError) and error.errno in CANNOT_BE_WRITTEN and error.filename is None:
        return (
            f"output: tuner cannot write the output ({error.strerror}). Free some space, or write the output "
            "to another place."
        )
    return (
        f"this is a fault in tuner itself ({type(error).__name__}: {error}). All results so far are kept. To "
        "resume, run the same command again. To report the fault, add --debug."
    )


def _report(said: str, code: int) -> int:
    """Print why a command ends, with --debug where, and return its exit code."""
    with suppress(OSError):  # stderr may be full as well
        if Verbosity.debug:
            traceback.print_exc()
        say(f"tuner: {said}")
    return code
