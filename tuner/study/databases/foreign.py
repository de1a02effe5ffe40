"""Tells what no tuner writes in a storage, before it is used: a folder or a database may be a stranger's."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pydantic import ValidationError

from tuner.errors import UsageError

UNLIKE = "the storage has content that tuner never writes"
MOVE_AWAY = "Move the file away if it does not belong to this study."
SHOWN = 80
"""Characters that are quoted of what was stored."""
FOREIGN = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What reading raises where values are of another form."""
JOURNAL_END = bytes.fromhex("d9d505f920a163d7")
"""Ends a journal that names another one; that of a single file ends otherwise."""


class ForeignStorage(UsageError):
    """A storage holds what no tuner writes."""


@contextmanager
def understood(where: str) -> Iterator[None]:
    """Turn what is no study of tuner's own into one clear error: others may write to a storage.

    Raises:
        UsageError: what was read is of another form, or says what cannot be.
    """
    try:
        yield
    except ForeignStorage:
        raise
    except FOREIGN as error:
        raise ForeignStorage(f"{where}: {UNLIKE} ({describe_foreign(error)}). {MOVE_AWAY}") from error


def describe_foreign(error: Exception) -> str:
    """Return in few words what is wrong with what was stored."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))[:SHOWN]}: {first['msg']}".removeprefix(": ")
    said = (str(error).splitlines() or [""])[0][:SHOWN]
    return f"{type(error).__name__} {said}".strip()


def refuse_strange_file(path: Path) -> None:
    """Check a file of SQLite that somebody else may have made, before anything of it is run.

    Raises:
        UsageError: it holds views, triggers or computed columns, all of which are programs; it is damaged;
            or its journal names another file, which SQLite would delete (sqlite.org/fileformat2.html).
        sqlite3.Error: it cannot be read.
    """
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists() and journal.read_bytes()[-len(JOURNAL_END) :] == JOURNAL_END:
        raise ForeignStorage(f"{journal}: {UNLIKE} (a journal that names another file). {MOVE_AWAY}")
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as database:
        database.execute("PRAGMA trusted_schema = OFF")
        for kind, name, sql in database.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
            is_virtual = kind == "table" and re.match(r"\s*create\s+virtual", str(sql), re.IGNORECASE)
            if kind not in {"table", "index"} or is_virtual:
                raise ForeignStorage(f"{path}: {UNLIKE} (a {kind} {name!r:.{SHOWN}}). {MOVE_AWAY}")
        computed = (
            "SELECT tables.name FROM sqlite_master AS tables, pragma_table_xinfo(tables.name) WHERE hidden"
        )
        if found := database.execute(computed).fetchone():
            raise ForeignStorage(
                f"{path}: {UNLIKE} (computed columns in the table {found[0]!r:.{SHOWN}}). {MOVE_AWAY}"
            )
        (said,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if said != "ok":
            raise ForeignStorage(f"{path}: the storage is damaged ({said!r:.{SHOWN}}). {MOVE_AWAY}")
