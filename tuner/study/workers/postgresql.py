"""The workers of a study on PostgreSQL, kept apart by its advisory locks.

The database lets go of a lock when its holder's connection ends, so nobody has to clean up after one that was
killed (postgresql.org/docs/current/explicit-locking.html, 13.3.5). Whether a worker is alive is told by the
heartbeats of Optuna's own table, by the database's clock: those of the workers' hosts may differ.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, TypeVar

import optuna
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from tuner.errors import TargetError, UsageError
from tuner.records import Start
from tuner.study.databases.database import StorageLost, translated
from tuner.study.workers.proxy import name_beside

T = TypeVar("T")

LEAVING_S = 7.0
"""Until then the database has noticed that a process is gone (`CONNECTION` of tuner.study.databases)."""
BEATS = 6
"""Heartbeats within the time after which a silent worker is taken for dead."""
LEAST_BEAT_S, MOST_BEAT_S = 0.5, 10.0
LOOK_AGAIN_S = 0.5

LOCK = "SELECT pg_advisory_lock(hashtextextended(:key, 0))"
TRY_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(:key, 0))"
UNLOCK = "SELECT pg_advisory_unlock(hashtextextended(:key, 0))"
LOCK_SHARED = "SELECT pg_advisory_lock_shared(hashtextextended(:key, 0))"
IS_FREE = "SELECT pg_try_advisory_xact_lock(hashtextextended(:key, 0))"
HOLDS = """
SELECT NOT EXISTS (SELECT FROM studies WHERE study_name = :beside) AND EXISTS (
  SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted
  AND (classid::bigint << 32) + objid::bigint = hashtextextended(:key, 0)
)
"""
"""A turn counts as long as nobody has come through a proxy: those have turns of their own."""
HAS_STUDY = "SELECT EXISTS (SELECT FROM studies WHERE study_name = :name)"
BOUND_IDLE = "SELECT set_config('idle_session_timeout', :value, false)"
SILENCES = """
SELECT trials.number, extract(epoch FROM localtimestamp - trial_heartbeats.heartbeat)
FROM studies JOIN trials USING (study_id) LEFT JOIN trial_heartbeats USING (trial_id)
WHERE studies.study_name = :name AND trials.state = 'RUNNING'
"""


@dataclass(kw_only=True)
class PostgresCrew:
    """One worker of a study, and what it sees of the others."""

    storage: optuna.storages.RDBStorage
    name: str
    """Of the study."""
    where: str
    """The storage, as messages name it."""
    host: str = ""
    worker: str = ""
    patience_s: float = 120.0
    """How long a target may stay as it is without a word from its worker, as its watchdog has it. After that
    the worker gives it back, and the others take it for dead."""
    most_of_a_turn_s: int = 120
    """After so long without a word the database ends the connection of whoever has the turn."""
    is_shared: bool = True
    _connection: Connection | None = field(default=None, init=False)
    _since_s: float = field(default=0.0, init=False)
    """Monotonic time since which the connection holds."""
    _has_turn: bool = field(default=False, init=False)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Take part, and have the turn. Raises TargetError where another one is at work on the host."""
        self._take_turn()
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def others_turn(self) -> Iterator[None]:
        """Let others decide meanwhile; afterwards this one has the turn again."""
        self._pass_on()
        try:
            yield
        finally:
            self._take_turn()

    @contextmanager
    def alive(self, trial: int) -> Iterator[None]:
        """Show that this worker is alive while it is at a trial, by its identity in the storage."""
        with translated(self.where):
            self.storage.record_heartbeat(trial)
        ended = Event()
        beats = Thread(target=self._beat, args=(trial, ended), daemon=True)
        beats.start()
        try:
            yield
        finally:
            ended.set()
            beats.join()

    def _beat(self, trial: int, ended: Event) -> None:
        each_s = min(MOST_BEAT_S, max(LEAST_BEAT_S, self.patience_s / BEATS))
        while not ended.wait(each_s):
            # A database that is away hears nothing; whether that took too long is seen by those who look.
            with suppress(TargetError), translated(self.where):
                self.storage.record_heartbeat(trial)

    def require_turn(self) -> None:
        """Raise StorageLost when the turn was lost, and others may have decided."""
        beside = name_beside(self.name)
        if self._has_turn and not self._ask(HOLDS, key=self._key("turn"), beside=beside):
            self._leave()
        if not self._has_turn:
            raise self._lost("the turn was lost")

    def insist(self, write: Callable[[], T]) -> T:
        """Write, and try again where the storage is away, as long as the target may stay as it is."""
        deadline_s = time.monotonic() + self.patience_s
        while True:
            try:
                return write()
            except StorageLost:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(LOOK_AGAIN_S)

    def silences(self) -> Mapping[int, float | None]:
        """Return start number → seconds since its worker was heard of, of those that run; None for never."""
        with translated(self.where), self.storage.engine.connect() as connection:
            rows = connection.execute(text(SILENCES), {"name": self.name}).all()
        return {number: None if silent is None else float(silent) for number, silent in rows}

    def find_lost(self, running: Sequence[Start]) -> list[Start]:
        """Return the starts that their workers will never end; this one is at none now.

        Where this one is at work nobody else is. A start without a heartbeat was begun by one who died in its
        turn. Others have been silent for long; when the database was away just now, they may only not have
        come back yet.
        """
        silences = self.silences() if any(start.host != self.host for start in running) else {}
        heard_s = time.monotonic() - self._since_s

        def is_lost(start: Start) -> bool:
            silent_s = silences.get(start.number, 0.0)
            return silent_s is None or min(silent_s, heard_s) > self.patience_s

        return [start for start in running if start.host == self.host or is_lost(start)]

    def is_at_work(self, host: str) -> bool:
        """Return whether a worker takes part on a host now."""
        return self._is_held(f"host {host}")

    def is_any_at_work(self) -> bool:
        """Return whether any worker takes part now."""
        return self._is_held("work")

    def _is_held(self, what: str) -> bool:
        with translated(self.where), self.storage.engine.connect() as connection:
            return not connection.execute(text(IS_FREE), {"key": self._key(what)}).scalar_one()

    # The turn

    def _take_turn(self) -> None:
        """Wait for the turn, however long others need; the database may be away for `patience_s`."""
        self.insist(self._try_to_take_turn)

    def _try_to_take_turn(self) -> None:
        is_new = self._connection is None
        if is_new:
            self._join()
        # Beforehand, as waiting is not idle: one that is frozen while it waits is given the turn, too.
        self._ask(BOUND_IDLE, value=f"{self.most_of_a_turn_s}s")
        self._ask(LOCK, key=self._key("turn"))
        if is_new:
            self._refuse_beside()
        self._has_turn = True

    def _join(self) -> None:
        """Connect, and hold the host."""
        with translated(self.where):
            self._connection = self.storage.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self._since_s = time.monotonic()
        self._refuse_pool()
        deadline_s = self._since_s + LEAVING_S
        while not self._ask(TRY_LOCK, key=self._key(f"host {self.host}")):
            if time.monotonic() > deadline_s:
                self._leave()
                raise TargetError(
                    f"{self.where}: another worker of {self.name} is at work on {self.host}. End it, or name "
                    "another host: --target HOST."
                )
            time.sleep(LOOK_AGAIN_S)
        self._ask(LOCK_SHARED, key=self._key("work"))

    def _refuse_pool(self) -> None:
        """Raise UsageError where another session answers than the one that was connected to.

        Behind a pool one session may serve several workers, statement by statement: all would have its locks.
        """
        connection = self._connection
        connected = None if connection is None else connection.connection.dbapi_connection
        if connected is None or connected.info.backend_pid != self._ask("SELECT pg_backend_pid()"):
            self._leave()
            raise UsageError(
                f"{self.where}: a pool of connections, as PgBouncer, stands before this database, and locks "
                "do not hold there. Give the address of the database itself, or use `tuner proxy`."
            )

    def _refuse_beside(self) -> None:
        """Raise UsageError where others have come through a proxy since the study was opened."""
        if self._ask(HAS_STUDY, name=name_beside(self.name)):
            self._leave()
            raise UsageError(
                f"{self.where}: others measure {self.name} through a proxy now. Run the same command again: "
                "it works with them."
            )

    def _pass_on(self) -> None:
        self._has_turn = False
        # Where the database is away, the turn is passed on by that.
        with suppress(StorageLost):
            # The bound last: one that is frozen between the two would keep the turn without it.
            if self._ask(UNLOCK, key=self._key("turn")):
                self._ask(BOUND_IDLE, value="0")
            else:
                self._leave()

    def _leave(self) -> None:
        """End the connection, and all locks with it."""
        connection, self._connection, self._has_turn = self._connection, None, False
        if connection is not None:
            with suppress(SQLAlchemyError):
                # Its locks end with it, not with its return to a pool.
                connection.invalidate()
                connection.close()

    def _ask(self, statement: str, **values: str) -> Any:  # noqa: ANN401 - one value of any type
        if self._connection is None:
            raise self._lost("not connected")
        try:
            with translated(self.where):
                return self._connection.execute(text(statement), values).scalar_one()
        except BaseException:
            # Interrupted while it waited for a lock, it may still be given it.
            self._leave()
            raise

    def _key(self, what: str) -> str:
        return f"tuner/{self.name}/{what}"

    def _lost(self, why: str) -> StorageLost:
        return StorageLost(f"{self.where}: the storage was lost ({why}). The same command goes on.")
