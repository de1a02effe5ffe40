"""Options that every command takes, before its name or after it: how much it says besides its result."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, ClassVar

import typer

from tuner.log import show_log

Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only results and errors.")]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Print more: each window, failures in full, all checks.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Print the log, and tracebacks of errors.")]


class Verbosity:
    """How much this process says."""

    quiet: ClassVar[bool] = False
    verbose: ClassVar[bool] = False
    debug: ClassVar[bool] = False


def raise_verbosity(*, quiet: bool, verbose: bool, debug: bool) -> None:
    """Note what was asked for, here or before the command's name."""
    Verbosity.quiet |= quiet
    Verbosity.verbose |= verbose
    Verbosity.debug |= debug
    if debug:
        show_log()


def with_verbosity(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes the three options, too."""

    @functools.wraps(command)
    def run(*, quiet: bool, verbose: bool, debug: bool, **given: object) -> None:
        raise_verbosity(quiet=quiet, verbose=verbose, debug=debug)
        command(**given)

    own = inspect.signature(command, eval_str=True)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
        for name, option in (("quiet", Quiet), ("verbose", Verbose), ("debug", Debug))
    ]
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *more])  # type: ignore[attr-defined]
    return run
