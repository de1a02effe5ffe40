"""The tables of a database, as the Optuna that is installed wants them."""

import optuna
from sqlalchemy import text

from tuner.errors import TargetError

OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
AND pid NOT IN (
  SELECT pid FROM pg_locks WHERE locktype = 'advisory'
  AND (classid::bigint << 32) + objid::bigint = hashtextextended('tuner/tables', 0)
)
"""
"""Connections to the database but for those that have the tables to themselves or wait for that."""


def bring_up_to_date(storage: optuna.storages.RDBStorage, where: str) -> None:
    """Bring tables of an earlier Optuna up to date, all of them or none: PostgreSQL does so in a transaction.

    Raises:
        TargetError: they are a later Optuna's; others use them now; or they are in a file, where what is cut
            off stays half done.
    """
    have, want = storage.get_current_version(), storage.get_head_version()
    if have == want:
        return
    begun = f"{where}: the tables of this storage are of another version of Optuna ({have}, not {want})."
    if have not in storage.get_all_versions():
        raise TargetError(f"{begun} It is later than the one here: pip install --upgrade optuna.")
    if storage.engine.dialect.name != "postgresql":
        raise TargetError(
            f"{begun} Keep a copy of the file, and bring it up to date: optuna storage upgrade --storage "
            f"sqlite:///{where}"
        )
    storage.remove_session()
    storage.engine.dispose()
    with storage.engine.connect() as connection:
        others = connection.execute(text(OTHERS)).scalar_one()
    storage.engine.dispose()
    if others:
        raise TargetError(
            f"{begun} They are brought up to date once nobody else uses them: {others} other connection"
            f"{'' if others == 1 else 's'} to this database now. End all workers, proxies and dashboards "
            "first, or go on with the tuner that they have."
        )
    storage.upgrade()
