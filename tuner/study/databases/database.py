"""The database of a study: made whole, opened through Optuna, its errors turned into one clear sentence."""

import fcntl
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from sqlalchemy import Engine, NullPool, create_engine, event, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from tuner.errors import TargetError, UsageError
from tuner.study.databases.away import Away
from tuner.study.databases.foreign import ForeignStorage
from tuner.study.databases.storage_url import POSTGRESQL, SQLITE, driver_url, sqlite_url
from tuner.study.databases.tables import bring_up_to_date

SERVER_SETTINGS = {
    "timezone": "UTC", "client_connection_check_interval": "5000",
    "tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
    "tcp_user_timeout": "30000",
}  # fmt: skip
CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000,
    "options": " ".join(f"-c {name}={value}" for name, value in SERVER_SETTINGS.items()),
}  # fmt: skip
"""How PostgreSQL is connected to (libpq, 34.1.2): both sides notice within half a minute that the other one
is gone, also without power, and heartbeats are in one time zone."""


DAMAGED = ("not a database", "malformed", "no such column", "could not decode", "datatype mismatch")


class StorageLost(TargetError):
    """The server of a storage is away; it may come back."""


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
        kind = StorageLost if _is_away(error) else ForeignStorage if _is_foreign(cause) else TargetError
        raise kind(f"{where}: the storage cannot be used ({said}). {_remedy(cause)}") from error


def _is_away(error: BaseException) -> bool:
    """Return whether a server ended the connection or refused it, rather than what was asked of it."""
    if isinstance(error, Away):
        return True
    found = error if isinstance(error, DBAPIError) else error.__cause__
    if not isinstance(found, OperationalError | InterfaceError):
        return False
    return type(found.orig).__module__.startswith("psycopg")


def _is_foreign(cause: BaseException) -> bool:
    """Return whether a file is no storage at all, or was damaged."""
    said = str(cause).lower()
    return isinstance(cause, json.JSONDecodeError) or any(each in said for each in DAMAGED)


def _remedy(cause: BaseException) -> str:
    said = str(cause).lower()
    if isinstance(cause, Away):
        return "Is `tuner proxy` at work there, and a tunnel to it open?"
    if "full" in said or "no space" in said:
        return "Free some space on that disk; the same command goes on where it stopped."
    if _is_foreign(cause):
        return "Move that file away if it is not this study's."
    return "Check the path, its permissions and the address."


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

    Others are kept away meanwhile, see `one_at_a_time`.
    """
    url, options = _way_to(url, where)
    with _understood(where):
        storage = optuna.storages.RDBStorage(url, engine_kwargs or options, skip_compatibility_check=True)
        if not is_known:
            bring_up_to_date(storage, where)
        return storage


def connect_proxy(url: str, where: str) -> optuna.storages.BaseStorage:
    """Open a database through its proxy."""
    try:
        from tuner.study.databases import proxy
    except ImportError as error:
        raise TargetError(
            f"{where}: gRPC is not installed. Install it: pip install 'servertuner[grpc]'"
        ) from error
    return proxy.connect_proxy(url, where)


@contextmanager
def one_at_a_time(url: str, where: str) -> Iterator[None]:
    """Keep others away while one makes or upgrades the tables."""
    if url.startswith(SQLITE):
        with _locked_folder(Path(where).parent):
            yield
        return
    if not url.startswith(POSTGRESQL):
        yield
        return
    url, options = _way_to(url, where)
    with _understood(where):
        engine = create_engine(url, poolclass=NullPool, connect_args=options["connect_args"])
        connection = engine.connect()
    with connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('tuner/tables', 0))"))
        yield


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Lock a folder itself; one that is not there has nothing to be kept from."""
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


def _way_to(url: str, where: str) -> tuple[str, dict[str, Any]]:
    """Return the address of a database as SQLAlchemy takes it, and its options."""
    if not url.startswith(POSTGRESQL):
        return url, {}
    if url.partition("://")[2].partition("/")[0].count("@") > 1:
        raise UsageError(f"{where}: this address cannot be understood. Write an @ in a password as %40.")
    return driver_url(url), {"pool_pre_ping": True, "connect_args": CONNECTION}


@contextmanager
def _understood(where: str) -> Iterator[None]:
    """Turn what is wrong with an address into one clear error; not quoted, as it may hold a password."""
    try:
        yield
    except ImportError as error:
        raise TargetError(
            f"{where}: the driver of this database is not installed. Install it (of PostgreSQL: "
            "`pip install 'psycopg[binary]'`), or write `storage: sqlite`."
        ) from error
    except (KeyError, ValueError) as error:
        raise UsageError(
            f"{where}: this address cannot be understood. Write postgresql://user:password@host:port/name."
        ) from error


@contextmanager
def checked_out(engine: Engine, check: Callable[[], None]) -> Iterator[None]:
    """Make a check before each use of a connection; where it raises, nothing is asked of the database."""

    def look(*_connection: object) -> None:
        check()

    event.listen(engine, "checkout", look)
    try:
        yield
    finally:
        event.remove(engine, "checkout", look)


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
