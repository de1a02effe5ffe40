"""Errors in files of the user: place, fault with the value, remedy, and the nearest known name."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tuner.errors import UsageError

LISTED_NAMES = 12
SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something stands in the sources of a space or a study."""

    source: str
    """File as the user named it, or the number of the entry in the study's `space:` list."""
    line: int | None = None
    key: str = ""
    """Path of keys from the top, joined by dots."""

    def __str__(self) -> str:
        where = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{where}: {self.key}" if self.key else where


class Refused(ValueError):
    """A value is wrong: `wrong` says how, `remedy` what to write. Whoever knows its place adds that."""

    def __init__(self, wrong: str, remedy: str) -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.remedy = remedy


def problem(place: Place | str, wrong: str, remedy: str) -> UsageError:
    """Return the error: where, what is wrong, what to do."""
    return UsageError(f"{place}: {wrong}. {remedy}")


@contextmanager
def in_file(path: Path) -> Iterator[None]:
    """Put the name of a file before what is refused inside: several may be read by one command."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def quote(value: object) -> str:
    """Return a value as it was given, shortened when it is long."""
    text = repr(str(value)) if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the nearest known name, or with those there are."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6) or difflib.get_close_matches(
        name.lower(), names, n=1, cutoff=0.5
    )
    if near:
        return f"Did you mean {near[0]}?"
    if not names:
        return "There are none."
    listed = ", ".join(names[:LISTED_NAMES])
    return f"Known are {listed}{', …' if len(names) > LISTED_NAMES else ''}."
