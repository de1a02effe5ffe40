"""The Optuna study in which everything is kept, and its fingerprint.

One Optuna trial is one start. Its parameters are the point (tuner.space dimensions), its value the log
speedup as it was known when the start ended, its user attributes everything else: a window is on disk as
soon as it is over. Reports, speedups and verdicts are recomputed from here; nothing else remembers.
"""

import json
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial
from sqlalchemy import event
from sqlalchemy.exc import SQLAlchemyError

from tuner.errors import TargetError, UsageError
from tuner.ports import Clock, Config
from tuner.records import Failure, Fingerprint, Role, Start, State, Window
from tuner.records.as_json import (
    ending_from_json,
    ending_to_json,
    fingerprint_from_json,
    fingerprint_to_json,
    window_from_json,
    window_to_json,
)
from tuner.study.objective import Constraint, slacks
from tuner.study.storage_url import SQLITE, show_url, sqlite_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optuna.distributions import BaseDistribution

    from tuner.optimize.optimizer import Point

FAILED_VALUE = -4.6
"""Value told for a start without a measurement: a hundredth of the control's goodput, and infeasible."""

SHOWN_CHANGES = 4
_WINDOW = "window:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is known of a start before it is made."""

    role: Role
    config: Config
    point: "Point | None" = None
    arm: str = ""
    block: int | None = None


class Storage:
    """One study, on SQLite beside the study file or at any Optuna storage URL."""

    def __init__(
        self, storage: optuna.storages.BaseStorage, study: optuna.Study, where: str, *, clock: Clock = time
    ) -> None:
        """Use `open_storage` instead."""
        self._storage = storage
        self._study = study
        self._where = where
        self._clock = clock
        self._ids: dict[int, int] = {}

    def begin(
        self,
        opening: Opening,
        *,
        distributions: "Mapping[str, BaseDistribution]",
        session: str,
    ) -> Start:
        """Record that a start is about to be made."""
        start = Start(
            number=-1, role=opening.role, config=dict(opening.config), state=State.RUNNING,
            started_s=self._clock.time(), arm=opening.arm, block=opening.block, session=session,
        )  # fmt: skip
        template = create_trial(
            state=TrialState.RUNNING,
            params=dict(opening.point or {}),
            distributions=dict(distributions) if opening.point else {},
            user_attrs={
                "role": start.role.value,
                "config": dict(start.config),
                "arm": start.arm,
                "block": start.block,
                "started_s": start.started_s,
                "session": session,
            },
        )
        with self._translated():
            identity = self._storage.create_new_trial(self._study._study_id, template_trial=template)  # noqa: SLF001 - Optuna offers no public way to add a running trial and learn its number
            number = self._storage.get_trial_number_from_id(identity)
        self._ids[number] = identity
        return replace(start, number=number)

    def keep_window(self, start: Start, window: Window) -> Start:
        """Put one finished window on disk."""
        index = len(start.windows)
        with self._translated():
            self._storage.set_trial_user_attr(
                self._ids[start.number], f"{_WINDOW}{index:03d}", window_to_json(window)
            )
        return replace(start, windows=(*start.windows, window))

    def end(self, start: Start, *, log_ratio: float | None, slacks: Mapping[str, float]) -> None:
        """Tell how a start ended: its value and its constraints (slack ≤ 0 is feasible).

        An invalid start is told as failed, which no sampler sees; a failed one as complete and infeasible,
        so that samplers learn from it; a pruned one as complete, with the value that it has.
        """
        identity = self._ids[start.number]
        with self._translated():
            self._storage.set_trial_user_attr(identity, "end", ending_to_json(start))
            if start.state is State.INVALID:
                self._storage.set_trial_state_values(identity, TrialState.FAIL)
                return
            # A trial of the storage's own would be read again and again, which takes longer than to write it.
            told = create_trial(value=0.0)
            for name, slack in slacks.items():
                told.set_constraint(name, slack)
            for key, attribute in told.system_attrs.items():
                self._storage.set_trial_system_attr(identity, key, attribute)
            value = FAILED_VALUE if log_ratio is None else log_ratio
            self._storage.set_trial_state_values(identity, TrialState.COMPLETE, [value])

    def settle(self, start: Start, *, least_windows: int, constraints: Sequence[Constraint]) -> Start:
        """End a start that was cut off: its finished windows count when they are all there."""
        whole = len(start.valid_windows) >= least_windows
        failure = None if whole else Failure(kind="interrupted", reason="cut off")
        ended = replace(start, state=State.COMPLETE if whole else State.INVALID, failure=failure)
        self.end(ended, log_ratio=0.0, slacks=slacks(ended, constraints))
        return ended

    def starts(self) -> tuple[Start, ...]:
        """Read every start back, in the order in which they were made."""
        with self._translated():
            trials = self._study.get_trials(deepcopy=False)
        for trial in trials:
            self._ids[trial.number] = trial._trial_id  # noqa: SLF001 - see begin
        return tuple(_start(trial) for trial in trials if "role" in trial.user_attrs)

    def remember(self, key: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Keep a fact about the whole study."""
        with self._translated():
            self._study.set_user_attr(key, value)

    def recall(self, key: str, default: Any = None) -> Any:  # noqa: ANN401 - any JSON value
        """Read a fact about the whole study."""
        with self._translated():
            return self._study.user_attrs.get(key, default)

    def fingerprint(self) -> Fingerprint | None:
        """Read on what the study was measured."""
        data = self.recall("fingerprint")
        return None if data is None else fingerprint_from_json(data)

    def claim(self, fingerprint: Fingerprint, *, definition: Mapping[str, str]) -> None:
        """Bind a new study to its machine and definition, or check that an old one agrees.

        One that has not a single finished window is new.

        Raises:
            UsageError: the storage belongs to another machine or to another definition of the study.
        """
        before = self.fingerprint()
        if before is not None and not any(start.windows for start in self.starts()):
            # Begun, but nothing was measured: what was wrong may have been put right in the file.
            self._begin_anew()
            before = None
        if before is None:
            # The fingerprint last: a study that has one is whole, wherever the tuner was killed.
            self.remember("definition", dict(definition))
            self.remember("fingerprint", fingerprint_to_json(fingerprint))
            return
        old, new = fingerprint_to_json(before), fingerprint_to_json(fingerprint)
        differing = [f"{key} was {old[key]!r}, is {new[key]!r}" for key in new if old.get(key) != new[key]]
        if differing:
            msg = (
                f"{self._where}: this study was measured on another machine ({'; '.join(differing)}). "
                "Give the study a new name, or move its folder away."
            )
            raise UsageError(msg)
        changed = _changes(self.recall("definition"), definition)
        if changed:
            more = f", and {len(changed) - SHOWN_CHANGES} more" if len(changed) > SHOWN_CHANGES else ""
            msg = (
                f"{self._where}: the study file or a search space has changed since this study began "
                f"({'; '.join(changed[:SHOWN_CHANGES])}{more}). "
                "Give the study a new name, move its folder away, or undo the change."
            )
            raise UsageError(msg)

    def _begin_anew(self) -> None:
        """Forget every start and every fact."""
        name = self._study.study_name
        with self._translated():
            optuna.delete_study(study_name=name, storage=self._storage)
            self._study = optuna.create_study(storage=self._storage, study_name=name, direction="maximize")
        self._ids.clear()

    @contextmanager
    def _translated(self) -> "Iterator[None]":
        with translated(self._where):
            yield


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Name what differs between two definitions."""
    changed = []
    for name in (*now, *(name for name in before if name not in now)):
        if name not in before:
            changed.append(f"{name} is new")
        elif name not in now:
            changed.append(f"{name} is gone")
        elif before[name] != now[name]:
            changed.append(f"{name} was {before[name]!r}, is {now[name]!r}")
    return changed


@contextmanager
def translated(where: str) -> "Iterator[None]":
    """Turn what a storage raises into one clear error."""
    try:
        yield
    except (
        SQLAlchemyError, optuna.exceptions.StorageInternalError, json.JSONDecodeError, OSError
    ) as error:  # fmt: skip
        cause = error.__cause__ or error
        said = (str(cause).splitlines() or [type(cause).__name__])[0]
        msg = f"{where}: the storage cannot be used ({said}). {_remedy(cause)}"
        raise TargetError(msg) from error


def _remedy(cause: BaseException) -> str:
    text = str(cause).lower()
    if "full" in text or "no space" in text:
        return "Free some space on that disk; the same command goes on where it stopped."
    if isinstance(cause, json.JSONDecodeError) or "not a database" in text or "malformed" in text:
        return "Move that file away if it is not this study's."
    return "Check the path, its permissions and the address."


def is_there(url: str) -> bool:
    """Say whether there is a storage to open; that of a server always is."""
    return not url.startswith(SQLITE) or Path(show_url(url)).exists()


def open_storage(url: str, name: str, *, create: bool = True, clock: Clock = time) -> Storage:
    """Open a study, or make it.

    Raises:
        TargetError: the storage cannot be reached, read or written.
        UsageError: the study does not exist and `create` is false.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    where, is_file = show_url(url), url.startswith(SQLITE)
    if is_file and not create and not Path(where).exists():
        msg = f"{where}: there is no study here yet. Start it with `tuner run`."
        raise UsageError(msg)
    with translated(where):
        is_new = is_file and not Path(where).exists()
        if is_new:
            _make_file(Path(where), name)
        storage = _connect(url, where, is_known=is_new)
        if is_file:
            _make_quick(storage)
        known = [study.study_name for study in storage.get_all_studies()]
        if known and name not in known and is_file:
            msg = (
                f"{where}: this storage holds the study {known[0]!r}, not {name!r}. "
                "Give the study file its old name back, or move the folder away."
            )
            raise UsageError(msg)
        if name not in known and not create:
            msg = f"{where}: there is no study {name!r} here yet. Start it with `tuner run`."
            raise UsageError(msg)
        study = optuna.create_study(
            storage=storage, study_name=name, direction="maximize", load_if_exists=True
        )
    return Storage(storage, study, where, clock=clock)


def _make_file(path: Path, name: str) -> None:
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

    storage = _connect(sqlite_url(aside), str(path), is_known=True, engine_kwargs={"creator": connect})
    optuna.create_study(storage=storage, study_name=name, direction="maximize")
    storage.remove_session()
    storage.engine.dispose()
    with aside.open("rb") as file:
        os.fsync(file.fileno())
    aside.replace(path)


def _connect(
    url: str, where: str, *, is_known: bool = False, engine_kwargs: dict[str, Any] | None = None
) -> optuna.storages.RDBStorage:
    """Open a database; that Optuna's version fits one of our own making need not be looked up, which is slow.

    What is wrong with the address is not quoted: it may hold a password.
    """
    try:
        return optuna.storages.RDBStorage(url, engine_kwargs, skip_compatibility_check=is_known)
    except ImportError as error:
        msg = (
            f"{where}: the driver of this database is not installed. Install it, or write `storage: sqlite`."
        )
        raise TargetError(msg) from error
    except RuntimeError as error:
        msg = f"{where}: this storage was written by another version of Optuna. {error}"
        raise TargetError(msg) from error
    except (KeyError, ValueError) as error:
        msg = f"{where}: this address cannot be understood. Write postgresql://user:password@host:port/name."
        raise UsageError(msg) from error


def _make_quick(storage: optuna.storages.RDBStorage) -> None:
    """Write-ahead logging: a window survives kill -9 without waiting for the disk (sqlite.org/wal.html)."""

    @event.listens_for(storage.engine, "connect")
    def set_pragmas(connection: Any, _record: object) -> None:  # noqa: ANN401 - a DB-API connection
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        # The log of a whole campaign: carrying it over into the database waits for the disk.
        cursor.execute("PRAGMA wal_autocheckpoint=20000")
        cursor.close()

    storage.engine.dispose()


def _start(trial: FrozenTrial) -> Start:
    attributes = trial.user_attrs
    windows = tuple(
        window_from_json(attributes[key]) for key in sorted(attributes) if key.startswith(_WINDOW)
    )
    # Its end is written in two steps, the state last.
    ending = ending_from_json(attributes["end"]) if trial.state.is_finished() else {"state": State.RUNNING}
    return Start(
        number=trial.number,
        role=Role(attributes["role"]),
        config=attributes["config"],
        started_s=attributes["started_s"],
        arm=attributes["arm"],
        block=attributes["block"],
        session=attributes["session"],
        windows=windows,
        **ending,
    )
