"""How a study's storage, a file of SQLite, is opened or made."""

import time
from pathlib import Path

import optuna

from tuner.errors import UsageError
from tuner.ports import Clock
from tuner.study.databases.database import connect_database, locked_folder, log_ahead, make_file, translated
from tuner.study.databases.foreign import refuse_strange_file, understood
from tuner.study.databases.storage_url import show_url
from tuner.study.facts import FORMAT, VERSION
from tuner.study.storage import Storage, make_or_load


class NotBegun(UsageError):
    """There is no such study in the storage yet."""


def is_there(url: str) -> bool:
    """Return whether there is a storage to open."""
    return Path(show_url(url)).exists()


def open_storage(url: str, name: str, *, create: bool = True, clock: Clock = time) -> Storage:
    """Open a study, or make it.

    Raises:
        TargetError: the storage cannot be read or written.
        UsageError: the study does not exist and `create` is false.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    where = show_url(url)
    path = Path(where)
    if not create and not path.exists():
        raise NotBegun(f"{where}: this storage has no study yet. Start the study with `tuner run`.")
    with translated(where), understood(where), locked_folder(path.parent):
        is_new = not path.exists()
        if is_new:
            make_file(path, name)
        else:
            refuse_strange_file(path)
        storage = connect_database(url, where, is_known=is_new)
        log_ahead(storage)
        known = [study.study_name for study in storage.get_all_studies()]
        if known and name not in known:
            raise UsageError(
                f"{where}: this storage holds the study {known[0]!r}, not {name!r}. "
                f"Write `study: {known[0]}` in the study file again, or move this folder away."
            )
        if name not in known and not create:
            raise NotBegun(
                f"{where}: this storage has no study {name!r} yet. Start the study with `tuner run`."
            )
        # Under the lock: a run that begins anew replaces the file.
        opened = Storage(storage, make_or_load(storage, name), where, clock=clock)
    version = opened.recall(FORMAT) or 1
    if version > VERSION:
        raise UsageError(
            f"{where}: a newer tuner wrote this study (format {version}; your tuner reads formats up to "
            f"{VERSION}). Use the newer tuner, or copy the study file to a new name."
        )
    return opened
