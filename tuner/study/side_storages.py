"""What is measured beside a study: each sweep and each load curve has a storage of its own in its folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.study.databases.storage_url import sqlite_url
from tuner.study.folder import list_files, require_own_database

if TYPE_CHECKING:
    from tuner.study import Study
    from tuner.study.storage import Storage

SWEEPS = "sweeps"
CURVES = "curves"


def list_databases(study_folder: Path, kind: str) -> Iterator[Path]:
    """Yield the databases of a kind, checked.

    Raises:
        UsageError: one is a link or another user's.
    """
    for path in list_files(study_folder / kind, study_folder=study_folder):
        if path.suffix == ".db":
            require_own_database(path)
            yield path


def open_storages(settings: "Study", kind: str) -> "Iterator[Storage]":
    """Open the storages of a kind, one after the other.

    Raises:
        UsageError: a storage is a link or another user's.
        TargetError: a storage cannot be read.
    """
    from tuner.study.open_storage import open_storage  # Optuna, which takes half a second to import

    for path in list_databases(settings.folder, kind):
        yield open_storage(sqlite_url(path), settings.name, create=False)
