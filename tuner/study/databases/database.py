"""The database of a study: made whole, opened through Optuna, its errors turned into one clear sentence."""

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from sqlalchemy import event
from sqlalchemy.exc import SQLAlchemyError

from tuner.errors import TargetError
from tuner.study.databases.foreign import ForeignStorage
from tuner.study.databases.storage_url import sqlite_url

DAMAGED = ("not a database", "malformed", "no such column", "could not decode", "datatype mismatch")


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn what a storage raises into one clear error."""
    try:
        yield
    except (
        SQLAlchemyError, sqlite3.Error, optuna.exceptions.StorageInternalError, json.JSONDecodeError, OSError
    ) as error:  # fmt: skip
        cause = error.__cause__ or error
        said = (str(cause).splitlines() or [type(cause).__name__])[0]
        kind = ForeignStorage if _is_foreign(cause) else TargetError
        raise kind(f"{where}: the storage cannot be used ({said}). {_remedy(cause)}") from error


def _is_foreign(cause: BaseException) -> bool:
    """Return whether a file is no storage at all, or was damaged."""
    said = str(cause).lower()
    return isinstance(cause, json.JSONDecodeError) or any(each in said for each in DAMAGED)


def _remedy(cause: BaseException) -> str:
    said = str(cause).lower()
    if "full" in said or "no space" in said:
        return "Free some space on that disk, then run the same command again to resume."
    if _is_foreign(cause):
        return "Move the file away if it does not belong to this study."
    return "Check the path and its permissions."


def make_file(path: Path, name: str) -> None:
    """Make a study's file aside and put it in its place whole.

    Who opens a storage makes the tables that it lacks: a reader who came upon a file that is being made would
    make them too, and one of the two would fail.
    """
    aside = path.with_name(f"{path.name}.new")
    for left in aside.parent.glob(f"{aside.name}*"):  # by one who was cut off
        left.unlink()

    def connect() -> sqlite3.Connection:
        """Wait for the disk once, in the end, and not for every table: nobody reads a part of it."""
        connection = sqlite3.connect(aside, check_same_thread=False)
        connection.execute("PRAGMA synchronous=OFF")
        return connection

    storage = connect_database(
        sqlite_url(aside), str(path), is_known=True, engine_kwargs={"creator": connect}
    )
    optuna.create_study(storage=storage, study_name=name, direction="maximize")
    storage.remove_session()
    storage.engine.dispose()
    with aside.open("rb") as file:
        os.fsync(file.fileno())
    aside.replace(path)


def connect_database(
    url: str, where: str, *, is_known: bool = False, engine_kwargs: dict[str, Any] | None = None
) -> optuna.storages.RDBStorage:
    """Open a database; that Optuna's version fits one of our own making need not be looked up: it is slow.

    Others are kept away meanwhile, see `locked_folder`. Raises TargetError where it does not fit.
    """
    storage = optuna.storages.RDBStorage(url, engine_kwargs, skip_compatibility_check=True)
    if is_known:
        return storage
    have, want = storage.get_current_version(), storage.get_head_version()
    if have != want:
        is_later = have not in storage.get_all_versions()
        remedy = (
            "Upgrade Optuna: pip install --upgrade optuna."
            if is_later
            else "Keep a copy of the file, then upgrade its tables: optuna storage upgrade --storage "
            f"sqlite:///{where}"
        )
        raise TargetError(
            f"{where}: the tables of this storage are of another version of Optuna ({have}; the installed "
            f"one needs {want}). {remedy}"
        )
    return storage


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep others away from a folder while tables are made; one that is not there needs no lock."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def log_ahead(storage: optuna.storages.RDBStorage) -> None:
    """Write-ahead logging: a window survives kill -9 without waiting for the disk (sqlite.org/wal.html)."""

    @event.listens_for(storage.engine, "connect")
    def set_pragmas(connection: Any, _record: object) -> None:  # noqa: ANN401 - a DB-API connection
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA trusted_schema=OFF")
        cursor.execute("PRAGMA temp_store=MEMORY")
        # The log of a whole campaign: carrying it over into the database waits for the disk.
        cursor.execute("PRAGMA wal_autocheckpoint=20000")
        cursor.close()

    storage.engine.dispose()
