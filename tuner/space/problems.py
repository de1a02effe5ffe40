"""Errors in files of the user: place, fault with the value, remedy, and the nearest known name."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tuner.errors import UsageError

LISTED_NAMES = 12
SHOWN_CHARACTERS = 80
LETTERS_PER_ERROR = 3
"""A name with one wrong letter in three, or fewer, is taken for a typing error."""


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
    """A value is wrong: `wrong` says how, `remedy` what to write. Whoever knows its place adds that.

    `at` leads from there to the key that is to blame.
    """

    def __init__(self, wrong: str, remedy: str, *, at: tuple[str | int, ...] = ()) -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.remedy = remedy
        self.at = at


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
    # A short word is near to many others: auth is no typing error for path.
    bound = max(1, len(name) // LETTERS_PER_ERROR)
    ranks = {each: _distance(name.lower(), each.lower()) for each in names}
    near = [each for each in names if ranks[each] <= bound]
    if near:
        return f"Did you mean {min(near, key=ranks.__getitem__)}?"
    if not names:
        return "None exist."
    listed = ", ".join(names[:LISTED_NAMES])
    return f"Known are {listed}{', …' if len(names) > LISTED_NAMES else ''}."


def _distance(name: str, other: str) -> int:
    """Count letters that are wrong, missing, too many or swapped; a part of a word counts as one."""
    is_part = min(len(name), len(other)) >= LETTERS_PER_ERROR and (name in other or other in name)
    if is_part or (len(name) > 1 and other.startswith(name)):
        return int(name != other)
    rows = [list(range(len(other) + 1))]
    for index, letter in enumerate(name):
        row = [index + 1]
        for column, wanted in enumerate(other):
            row.append(min(rows[-1][column] + (letter != wanted), rows[-1][column + 1] + 1, row[-1] + 1))
            if index and column and (letter, name[index - 1]) == (other[column - 1], wanted):
                row[-1] = min(row[-1], rows[-2][column - 1] + 1)
        rows.append(row)
    return rows[-1][-1]
