"""A digest of everything that a stored study says, taken without understanding any of it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tuner.errors import TunerError
from tuner.space.sources import read_sources
from tuner.study.cache import make_key
from tuner.study.databases.foreign import refuse_strange_file
from tuner.study.folder import DATABASE, require_own_database
from tuner.study.settings import Study
from tuner.study.side_storages import CURVES, SWEEPS, list_databases


def make_study_key(settings: Study) -> bytes | None:
    """Return a key of a study, its spaces and all its databases; None where they cannot be read here."""
    try:
        sources = read_sources(settings.space, settings.path.parent)
        rows = [repr(row) for path in _list_databases(settings.folder) for row in _read_rows(path)]
    except (TunerError, sqlite3.Error):
        return None
    return make_key(repr((settings, sources)).encode(), *(row.encode(errors="replace") for row in rows))


def _list_databases(folder: Path) -> Iterator[Path]:
    require_own_database(folder / DATABASE)
    yield folder / DATABASE
    for kind in (SWEEPS, CURVES):
        yield from list_databases(folder, kind)


def _read_rows(path: Path) -> Iterator[tuple[object, ...]]:
    """Yield the rows of all tables: the bytes of the file change with whoever opens it, these do not."""
    yield (path.name,)
    refuse_strange_file(path)
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as database:
        database.execute("BEGIN")
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        for (name,) in tables.fetchall():
            quoted = name.replace('"', '""')
            yield (name,)
            yield from database.execute(f'SELECT * FROM "{quoted}" ORDER BY rowid')  # noqa: S608 - quoted
