"""Says what is wrong with the words of a command line, in the form of every other message."""

import re
from typing import TYPE_CHECKING, cast

import typer

from tuner.errors import UsageError

if TYPE_CHECKING:
    from pydantic import ValidationError

WrongInput = cast("type[typer.BadParameter]", typer.BadParameter.__base__)
"""Base of all that typer refuses; typer exports its subclasses only."""
OF_PARAMETER = re.compile(r"Invalid value for (?P<where>'[^:]+'): (?P<wrong>.*)", re.DOTALL)
NUMBERS = {"int_parsing": "a whole number", "float_parsing": "a number"}
"""By pydantic's name of the fault (docs.pydantic.dev/latest/errors/validation_errors)."""


def explain_input(error: typer.BadParameter) -> UsageError:
    """Return the message for a refused command line: where, what is wrong, and which help to read."""
    context, said = error.ctx, " ".join(error.format_message().split())
    command = "tuner" if context is None else context.command_path
    if found := OF_PARAMETER.fullmatch(said):
        where, wrong = found["where"].replace("'", ""), _say_number(error) or found["wrong"]
        wrong = wrong.removeprefix("Value error, ")
    else:
        where, wrong = command.partition(" ")[2], f"{said[:1].lower()}{said[1:]}"
    place = f"{where}: " if where else ""
    stop = "" if wrong.endswith((".", "?")) else "."
    return UsageError(f"{place}{wrong}{stop} See: {command} -h")


def _say_number(error: typer.BadParameter) -> str:
    """Return what is wrong with a number; empty where it is something else."""
    cause = cast("ValidationError | None", error.__cause__)
    faults = () if cause is None else cause.errors()
    return next(
        (f"{each['input']!r} is not {NUMBERS[each['type']]}" for each in faults if each["type"] in NUMBERS),
        "",
    )
