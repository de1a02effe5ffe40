"""The Optuna study in which everything is kept, and its fingerprint.

One Optuna trial is one start. Its parameters are the point (tuner.space dimensions), its value the log
speedup as it was known when the start ended, its user attributes everything else: a window is on disk as
soon as it is over. Reports, speedups and verdicts are recomputed from here; nothing else remembers.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import TrialState, create_trial

from tuner.errors import UsageError
from tuner.optimize.optimizer import Point
from tuner.ports import Clock, Config
from tuner.records import Failure, Fingerprint, Metric, Role, Start, State, Window, blended, measured_by
from tuner.records.as_json import (
    END,
    ending_to_json,
    is_start,
    opening_to_json,
    start_from_json,
    window_key,
    window_to_json,
)
from tuner.records.blend import Blend
from tuner.records.hosts import Hosts
from tuner.records.machines import HARDWARE, describe_differing, find_differing
from tuner.study.databases.database import (
    StorageLost,
    checked_out,
    translated,
)
from tuner.study.databases.foreign import understood
from tuner.study.databases.trial_rows import TrialRow, TrialRows, as_row
from tuner.study.facts import (
    BLEND,
    DEFINITION,
    FINGERPRINT,
    FORMAT,
    HOSTS,
    METRIC,
    MOVED_LOAD,
    OTHER_HOSTS,
    PACE,
    PLANS,
    VERSION,
    Fact,
)
from tuner.study.objective import Constraint, slacks
from tuner.study.settings import CONSTRAINTS
from tuner.study.workers.crew import ALONE, Crew
from tuner.study.workers.file_locks import FileCrew
from tuner.study.workers.postgresql import PostgresCrew
from tuner.study.workers.proxy import ProxyCrew

LOG = logging.getLogger(__name__)

T = TypeVar("T")
FAILED_VALUE = -4.6
"""Value told for a start without a measurement: a hundredth of the control's goodput, and infeasible."""

SHOWN_CHANGES = 4
LOOK_AGAIN_S = 1.0
"""Between two looks whether a storage is back."""
REMEDY_ALONE = (
    "Give the study a new name, or move its folder away. Several machines that are alike measure one study "
    "with `storage: postgresql://…`."
)
REMEDY_SHARED = "Let machines join that are alike, or give the study a new name."


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is known of a start before it is made."""

    role: Role
    config: Config
    point: Point | None = None
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
        self._identity = storage.get_study_id_from_name(study.study_name)
        """What the storage knows the study by."""
        self._ids: dict[int, int] = {}
        """Start number → what the storage knows it by, of those that are written here."""
        self._judged_by: tuple[Metric, Blend | None] | None = None
        self._ended: dict[int, Start] = {}
        """Starts that change no more, as they were read."""
        self._ended_by: tuple[Metric, Blend | None] | None = None
        """By what those are judged."""
        self._rows: TrialRows | None = None
        self.crew: Crew = ALONE

    def join(self, *, host: str, worker: str, patience_s: float, is_shared: bool = False) -> None:
        """Become one of several workers, where the study is for several.

        Args:
            host: where this one measures.
            worker: its name.
            patience_s: see `PostgresCrew`.
            is_shared: whether a study in a file is for several; one on a server is in any case.
        """
        if isinstance(self.crew, PostgresCrew | ProxyCrew):
            self.crew = replace(self.crew, host=host, worker=worker, patience_s=patience_s)
        elif is_shared:
            self.crew = FileCrew(folder=Path(self._where).parent, host=host, worker=worker)
        self._join_rows()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Take part in the study as it is by then, and have the turn. Raises TargetError as the crew does."""
        with self.crew.at_work():
            self._look_up()
            yield

    def _look_up(self) -> None:
        """Look the study up by its name: since it was opened another worker may have begun it anew."""
        with self._translated():
            self._study = make_or_load(self._storage, self._study.study_name)
            identity = self._storage.get_study_id_from_name(self._study.study_name)
        if identity != self._identity:
            self._take_up(identity)

    def _take_up(self, identity: int) -> None:
        """Go on with another study of the same name; what was read so far is of the one before."""
        self._identity = identity
        self._judged_by = None
        self._ids.clear()
        self._ended.clear()
        self._join_rows()

    def _join_rows(self) -> None:
        """Read only what is new from now on: that others measure is enough to know."""
        if self.crew.is_shared and isinstance(self._storage, optuna.storages.RDBStorage):
            self._rows = TrialRows(storage=self._storage, study=self._identity)

    def begin(
        self,
        opening: Opening,
        *,
        distributions: Mapping[str, BaseDistribution],
        session: str,
    ) -> Start:
        """Record that a start is about to be made. Raises StorageLost where others may decide by now."""
        start = Start(
            number=-1, role=opening.role, config=dict(opening.config), state=State.RUNNING,
            started_s=self._clock.time(), arm=opening.arm, block=opening.block, session=session,
            host=self.crew.host, worker=self.crew.worker,
        )  # fmt: skip
        params = dict(opening.point or {})
        is_whole = self._rows is None or not params
        template = create_trial(
            state=TrialState.RUNNING,
            params=params if is_whole else {},
            distributions=dict(distributions) if params and is_whole else {},
            user_attrs=opening_to_json(start),
        )
        with self._translated(), self._only_in_turn():
            # A study's own `ask` takes no attributes: a trial would be there for a while without its role.
            identity = self._storage.create_new_trial(self._identity, template_trial=template)
            number = self._storage.get_trial_number_from_id(identity)
            if self._rows is not None and params:
                self._rows.write_params(identity, params, distributions)
        self._ids[number] = identity
        start = replace(start, number=number)
        LOG.info("trial %d begins: %s %s %s", number, start.role, start.arm, dict(start.config))
        try:
            self.crew.require_turn()
        except StorageLost:
            failure = Failure(kind="late", reason="its worker had lost the turn")
            with suppress(StorageLost):
                self._end(replace(start, state=State.INVALID, failure=failure), None, {})
            raise
        return start

    @contextmanager
    def _only_in_turn(self) -> Iterator[None]:
        """Raise StorageLost instead of writing what another worker may have decided otherwise meanwhile.

        Where its connection breaks, Optuna tries again by itself, for some seconds: by then the turn is gone.
        """
        self.crew.require_turn()
        if not isinstance(self.crew, PostgresCrew):
            yield
            return
        with checked_out(self.crew.storage.engine, self.crew.require_turn):
            yield

    def wait_until_back(self) -> None:
        """Wait until the storage answers again, however long it takes."""
        while True:
            try:
                self._look_up()
                self.plans()
            except StorageLost as lost:
                LOG.info("%s", lost)
                self._clock.sleep(LOOK_AGAIN_S)
            else:
                return

    @contextmanager
    def elsewhere(self, start: Start) -> Iterator[None]:
        """Let others decide while a start is made."""
        with self.crew.alive(self._ids[start.number]), self.crew.others_turn():
            yield

    def keep_window(self, start: Start, window: Window) -> Start:
        """Write one finished window; nothing once others have taken its worker for dead."""
        key, data = window_key(len(start.windows)), window_to_json(window)

        def write() -> tuple[Metric, Blend | None]:
            with self._translated(), self._unless_settled():
                self._storage.set_trial_user_attr(self._ids[start.number], key, data)
            return self._recall_judges()

        metric, blend = self.crew.insist(write)
        spoiled = [f"{each.gate}: {each.reason}" for each in window.verdicts]
        LOG.info("trial %d: %d correct in %g s %s", start.number, window.correct, window.duration_s, spoiled)
        return replace(start, windows=(*start.windows, replace(window, metric=metric, blend=blend)))

    def end(self, start: Start, *, log_ratio: float | None, slacks: Mapping[str, float]) -> None:
        """Write how a start ended: its value and its constraints (slack ≤ 0 is feasible).

        An invalid start is told as failed, which no sampler sees; a failed one as complete and infeasible,
        so that samplers learn from it; a pruned one as complete, with the value that it has. One that others
        have settled stays as they left it.
        """
        self.crew.insist(lambda: self._end(start, log_ratio, slacks))
        reason = "" if start.failure is None else f"{start.failure.kind}: {start.failure.reason}"
        LOG.info("trial %d ends: %s %s", start.number, start.state, reason)

    def _end(self, start: Start, log_ratio: float | None, slacks: Mapping[str, float]) -> None:
        identity = self._ids[start.number]
        with self._translated(), self._unless_settled():
            self._storage.set_trial_user_attr(identity, END, ending_to_json(start))
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

    def settle(
        self,
        start: Start,
        *,
        least_windows: int,
        constraints: Sequence[Constraint],
        controls: Sequence[Start],
    ) -> Start:
        """End a start that was cut off: its finished windows count when they are all there."""
        start = self._read_windows(start)
        whole = len(start.valid_windows) >= least_windows
        reason = "its worker was lost" if start.worker else "cut off"
        failure = None if whole else Failure(kind="interrupted", reason=reason)
        ended = replace(start, state=State.COMPLETE if whole else State.INVALID, failure=failure)
        self.end(ended, log_ratio=0.0, slacks=slacks(ended, constraints, controls))
        return ended

    def starts(self) -> tuple[Start, ...]:
        """Read every start back, in the order in which they were made; judged by the study's metric.

        Those before the load was moved are left out: they are of another load.
        """
        trials = self._read_trials()
        since = max((each.since for each in (self.recall(MOVED_LOAD), self.recall(PACE)) if each), default=0)
        return tuple(
            self._read(trial) for trial in trials if is_start(trial.attributes) and trial.number >= since
        )

    def _judge(self, start: Start) -> Start:
        metric, blend = self._recall_judges()
        if metric is not Metric.GOODPUT:
            return measured_by(start, metric)
        return start if blend is None else blended(start, blend)

    def _read_trials(self) -> Sequence[TrialRow]:
        with understood(self._where), self._translated():
            if self._rows is not None:
                return self._rows.read()
            return [as_row(trial) for trial in self._study.get_trials(deepcopy=False)]

    def _read(self, trial: TrialRow) -> Start:
        if self._ended_by != self._recall_judges():
            self._ended_by = self._recall_judges()
            self._ended.clear()
        known = self._ended.get(trial.number)
        if known is not None:
            return known
        # The end of a start is written in two steps, the state last.
        with understood(f"{self._where}: start {trial.number}"):
            start = start_from_json(trial.attributes, number=trial.number, has_ended=trial.has_ended)
        start = self._judge(start)
        if trial.has_ended:
            self._ended[trial.number] = start
        return start

    def _read_windows(self, start: Start) -> Start:
        """Return a start with the windows that it has by now."""
        with self._translated():
            identity = self._storage.get_trial_id_from_study_id_trial_number(self._identity, start.number)
            trial = self._storage.get_trial(identity)
        self._ids[start.number] = identity
        return self._read(as_row(trial))

    def plans(self) -> Mapping[str, Any]:
        """Return what the stages have planned and settled so far: key → JSON value.

        What is maximized is looked up anew from here on: another worker may have settled it.
        """
        attributes = self._read_attributes()
        self._judged_by = _find_judges(attributes)
        return {fact.key: attributes.get(fact.key) for fact in PLANS}

    @property
    def metric(self) -> Metric:
        """Return what the study maximizes."""
        return self._recall_judges()[0]

    @property
    def blend(self) -> Blend | None:
        """Return what counts of several loads; None for one load."""
        return self._recall_judges()[1]

    def _recall_judges(self) -> tuple[Metric, Blend | None]:
        if self._judged_by is None:
            with understood(f"{self._where}: {METRIC.key}, {BLEND.key}"):
                self._judged_by = _find_judges(self._read_attributes())
        return self._judged_by

    def remember(self, fact: Fact[T], value: T) -> None:
        """Keep a fact about the whole study. Raises StorageLost where others may decide by now."""
        with self._translated(), self._only_in_turn() if fact.is_decided else nullcontext():
            self._study.set_user_attr(fact.key, fact.to_json(value))
        self._judged_by = None  # what was remembered may be another

    def recall(self, fact: Fact[T]) -> T | None:
        """Read a fact about the whole study; None when it is not known.

        Raises:
            UsageError: it is not what a tuner writes.
        """
        with understood(f"{self._where}: {fact.key}"):
            return _find(fact, self._read_attributes())

    def _read_attributes(self) -> Mapping[str, Any]:
        with understood(self._where), self._translated():
            return self._study.user_attrs

    @property
    def hosts(self) -> Hosts | None:
        """Return the hosts for all of which the winner is to hold; None for a study with one target."""
        return self.recall(HOSTS)

    def claim(
        self, fingerprint: Fingerprint, *, definition: Mapping[str, str], models_unlike: bool = False
    ) -> None:
        """Bind a new study to its machine and definition, or check that an old one agrees.

        One that has not a single finished window is new. While only the default was measured, other bounds
        may be set: what it shows may be the reason for them.

        Raises:
            UsageError: the storage belongs to another machine or to another definition of the study.
        """
        if not self._is_measured():
            if self.recall(FINGERPRINT) is not None:
                # Begun, but nothing was measured: what was wrong may have been put right in the file.
                self._begin_anew()
            # The fingerprint last: a study that has one is whole, wherever the tuner was killed.
            self.remember(FORMAT, VERSION)
            self.remember(DEFINITION, definition)
            self.remember(FINGERPRINT, fingerprint)
            return
        self.refuse_another(fingerprint, definition=definition, models_unlike=models_unlike)
        self.remember(DEFINITION, definition)
        if self.crew.is_shared and self.recall(FINGERPRINT) != fingerprint:
            self.remember(OTHER_HOSTS, self._other_hosts() | {self.crew.host: fingerprint})
        # From now on it holds what an earlier tuner cannot read.
        self.remember(FORMAT, VERSION)

    def refuse_another(
        self, fingerprint: Fingerprint, *, definition: Mapping[str, str], models_unlike: bool = False
    ) -> None:
        """Raise UsageError when what was measured is of another machine or definition; see `claim`."""
        before = self.recall(FINGERPRINT)
        if before is None or not self._is_measured():
            return
        # Others may join, on machines that are alike.
        free = {"host"} if self.crew.is_shared else set()
        differing = find_differing(before, fingerprint, free=free | HARDWARE if models_unlike else free)
        if differing:
            remedy = REMEDY_SHARED if self.crew.is_shared else REMEDY_ALONE
            found = describe_differing(differing)
            raise UsageError(f"{self._where}: this study was measured on another machine ({found}). {remedy}")
        self.refuse_changed(definition)

    def refuse_changed(self, definition: Mapping[str, str]) -> None:
        """Raise UsageError when what was measured is of another definition; see `describe_changes`."""
        if changed := self.describe_changes(definition):
            raise UsageError(
                f"{self._where}: {changed}. Give the study a new name, move its folder away, or undo the "
                "change."
            )

    def describe_changes(self, definition: Mapping[str, str]) -> str:
        """Return what makes the study another one than was measured; empty where nothing does."""
        known = self.recall(DEFINITION) or {}
        changed = _changes(known, definition)
        are_bounds = _without_bounds(known) == _without_bounds(definition)
        if not changed or not self._is_measured() or (are_bounds and self._knows_default_alone()):
            return ""
        more = f", and {len(changed) - SHOWN_CHANGES} more" if len(changed) > SHOWN_CHANGES else ""
        shown = "; ".join(changed[:SHOWN_CHANGES])
        return f"the study file or a search space has changed since this study began ({shown}{more})"

    def _other_hosts(self) -> dict[str, Fingerprint]:
        known: Mapping[str, Fingerprint] | None = self.recall(OTHER_HOSTS)
        return dict(known or {})

    def _is_measured(self) -> bool:
        return self.recall(FINGERPRINT) is not None and any(
            start.windows or (self.crew.is_shared and start.state is State.RUNNING) for start in self.starts()
        )

    def _knows_default_alone(self) -> bool:
        return all(start.role is Role.CONTROL for start in self.starts() if start.windows)

    def _begin_anew(self) -> None:
        """Forget every start and every fact."""
        LOG.info("%s: begun anew, as nothing was measured", self._where)
        name = self._study.study_name
        with self._translated():
            optuna.delete_study(study_name=name, storage=self._storage)
            self._study = make_or_load(self._storage, name)
            self._take_up(self._storage.get_study_id_from_name(name))

    @contextmanager
    def _unless_settled(self) -> Iterator[None]:
        """Leave a start as it is that others have settled: its worker was silent for too long."""
        try:
            yield
        except optuna.exceptions.UpdateFinishedTrialError:
            if not self.crew.is_shared:
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            with translated(self._where):
                yield
        except KeyError as error:
            if not self.crew.is_shared:
                raise
            raise StorageLost(
                f"{self._where}: another worker has begun the study anew, as nothing was measured yet. The "
                "same command goes on."
            ) from error


def make_or_load(storage: optuna.storages.BaseStorage, name: str) -> optuna.Study:
    """Return the study of a name, made where there is none."""
    while True:
        # Of two looks that this takes, others may begin it anew between them.
        with suppress(KeyError):
            return optuna.create_study(
                storage=storage, study_name=name, direction="maximize", load_if_exists=True
            )


def _find(fact: Fact[T], attributes: Mapping[str, Any]) -> T | None:
    return fact.from_json(attributes[fact.key]) if fact.key in attributes else None


def _find_judges(attributes: Mapping[str, Any]) -> tuple[Metric, Blend | None]:
    """Return what is maximized, and what counts of several loads."""
    return _find(METRIC, attributes) or Metric.GOODPUT, _find(BLEND, attributes)


def _without_bounds(definition: Mapping[str, str]) -> dict[str, str]:
    """Return a definition without what decides only about starts that were measured."""
    return {name: text for name, text in definition.items() if name != CONSTRAINTS}


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return what differs between two definitions."""
    changed = []
    for name in (*now, *(name for name in before if name not in now)):
        if name not in before:
            changed.append(f"{name} is new")
        elif name not in now:
            changed.append(f"{name} is gone")
        elif before[name] != now[name]:
            changed.append(f"{name} was {before[name]!r}, is {now[name]!r}")
    return changed
