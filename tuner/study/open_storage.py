"""How a study's storage is opened, or made: a file, a PostgreSQL, or a proxy before one."""

import time
from pathlib import Path

import optuna

from tuner.errors import UsageError
from tuner.ports import Clock
from tuner.study.databases.database import (
    connect_database,
    connect_proxy,
    log_ahead,
    make_file,
    one_at_a_time,
    translated,
)
from tuner.study.databases.foreign import refuse_strange_file, understood
from tuner.study.databases.storage_url import GRPC, SHARED, SQLITE, show_url
from tuner.study.facts import FORMAT, HOSTS, VERSION
from tuner.study.storage import Storage, make_or_load
from tuner.study.workers.crew import Crew
from tuner.study.workers.file_locks import FileCrew
from tuner.study.workers.postgresql import PostgresCrew
from tuner.study.workers.proxy import ProxyCrew, name_beside


class NotBegun(UsageError):
    """There is no such study in the storage yet."""


def is_there(url: str) -> bool:
    """Return whether there is a storage to open; that of a server always is."""
    return not url.startswith(SQLITE) or Path(show_url(url)).exists()


def open_server(url: str) -> optuna.storages.RDBStorage:
    """Open a whole PostgreSQL, with its tables. Raises TargetError where it cannot be reached."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    where = show_url(url)
    with translated(where), one_at_a_time(url, where):
        return connect_database(url, where)


def open_storage(url: str, name: str, *, create: bool = True, clock: Clock = time) -> Storage:
    """Open a study, or make it.

    Raises:
        TargetError: the storage cannot be reached, read or written.
        UsageError: the study does not exist and `create` is false.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    where, is_file = show_url(url), url.startswith(SQLITE)
    if is_file and not create and not Path(where).exists():
        raise NotBegun(f"{where}: there is no study here yet. Start it with `tuner run`.")
    with translated(where), understood(where), one_at_a_time(url, where):
        is_new = is_file and not Path(where).exists()
        if is_new:
            make_file(Path(where), name)
        elif is_file:
            refuse_strange_file(Path(where))
        storage = _connect(url, where, is_new=is_new)
        known = [study.study_name for study in storage.get_all_studies()]
        if known and name not in known and is_file:
            raise UsageError(
                f"{where}: this storage holds the study {known[0]!r}, not {name!r}. "
                "Give the study file its old name back, or move the folder away."
            )
        if name not in known and not create:
            raise NotBegun(f"{where}: there is no study {name!r} here yet. Start it with `tuner run`.")
        opened = Storage(storage, make_or_load(storage, name), where, clock=clock)
    if url.startswith(SHARED):
        opened.crew = _make_crew(storage, name, where)
    elif is_file and opened.recall(HOSTS) is not None:
        opened.crew = FileCrew(folder=Path(where).parent)
    version = opened.recall(FORMAT) or 1
    if version > VERSION:
        raise UsageError(
            f"{where}: this study was written by a newer tuner (format {version}; this one reads up to "
            f"{VERSION}). Use that tuner, or give the study a new name."
        )
    return opened


def _connect(url: str, where: str, *, is_new: bool) -> optuna.storages.BaseStorage:
    if url.startswith(GRPC):
        return connect_proxy(url, where)
    storage = connect_database(url, where, is_known=is_new)
    if url.startswith(SQLITE):
        log_ahead(storage)
    return storage


def _make_crew(storage: optuna.storages.BaseStorage, name: str, where: str) -> Crew:
    """Return how the workers of a study are kept apart: by trials, once one of them came through a proxy."""
    with translated(where):
        known = [study.study_name for study in storage.get_all_studies()]
    if isinstance(storage, optuna.storages.RDBStorage) and name_beside(name) not in known:
        return PostgresCrew(storage=storage, name=name, where=where)
    return ProxyCrew(storage=storage, name=name, where=where)
