"""The Optuna study in which everything is kept, and its fingerprint.

Each trial is one Optuna trial. Its parameters are the point (tuner.space dimensions), its value the log
speedup as it was known when the trial ended, its user attributes everything else: a window is on disk as
soon as it is over. Reports, speedups and verdicts are recomputed from here; nothing else remembers.
"""

import logging
import time
from bisect import insort
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from tuner.errors import UsageError
from tuner.optimize.optimizer import Point
from tuner.ports import Clock, Config
from tuner.records import Failure, Fingerprint, Metric, Role, State, Trial, Window
from tuner.records.as_json import (
    END,
    ending_to_json,
    is_trial,
    opening_to_json,
    trial_from_json,
    window_key,
    window_to_json,
)
from tuner.records.blend import Blend, Hosts
from tuner.records.machines import describe_differing, find_differing
from tuner.study.databases.database import translated
from tuner.study.databases.foreign import understood
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

LOG = logging.getLogger(__name__)

T = TypeVar("T")
FAILED_VALUE = -4.6
"""Value told for a trial without a measurement: a hundredth of the baseline's goodput, and infeasible."""

SHOWN_CHANGES = 4
REMEDY = (
    "Copy the study file to a new name, or move its folder away. To tune several machines at once, name them "
    "in `targets:`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is known of a trial before it is made."""

    role: Role
    config: Config
    point: Point | None = None
    arm: str = ""
    block: int | None = None


@dataclass(slots=True, kw_only=True)
class KnownTrials:
    """The trials of a study in the memory of the process that makes them."""

    ended: list[Trial] = field(default_factory=list)
    """In the order in which they were begun."""
    running: list[Trial] = field(default_factory=list)

    since: int = 0
    """Number of the first trial that counts."""

    def begin(self, trial: Trial) -> None:
        """Note that a trial is being made."""
        self.running.append(trial)

    def end(self, trial: Trial) -> None:
        """Note how a trial ended."""
        self.running[:] = [each for each in self.running if each.number != trial.number]
        if trial.number >= self.since:
            insort(self.ended, trial, key=lambda each: each.number)

    def forget_before(self, number: int) -> None:
        """Forget what was begun before: it cannot be compared with what follows."""
        self.since = number
        self.ended[:] = [each for each in self.ended if each.number >= number]


class Storage:
    """One study, on SQLite beside the study file."""

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
        """Trial number → what the storage knows it by, of those that are written here."""
        self._judged_by: tuple[Metric, Blend | None] | None = None
        self._attributes: Mapping[str, Any] | None = None
        """What was remembered, where nobody else writes."""
        self.known = KnownTrials()

    def write_alone(self) -> None:
        """Take it from now on that nobody else writes: then what was remembered is not read again."""
        self._attributes = self._read_attributes()

    def begin(
        self,
        opening: Opening,
        *,
        distributions: Mapping[str, BaseDistribution],
        session: str,
        host: str = "",
    ) -> Trial:
        """Record that a trial is about to be made."""
        trial = Trial(
            number=-1, role=opening.role, config=dict(opening.config), state=State.RUNNING,
            started_s=self._clock.time(), arm=opening.arm, block=opening.block, session=session, host=host,
        )  # fmt: skip
        params = dict(opening.point or {})
        template = create_trial(
            state=TrialState.RUNNING,
            params=params,
            distributions=dict(distributions) if params else {},
            user_attrs=opening_to_json(trial),
        )
        with translated(self._where):
            # A study's own `ask` takes no attributes: a trial would be there for a while without its role.
            identity = self._storage.create_new_trial(self._identity, template_trial=template)
            number = self._storage.get_trial_number_from_id(identity)
        self._ids[number] = identity
        trial = replace(trial, number=number)
        self.known.begin(trial)
        LOG.info("trial %d begins: %s %s %s", number, trial.role.label, trial.arm, dict(trial.config))
        return trial

    def keep_window(self, trial: Trial, window: Window) -> Trial:
        """Write one finished window."""
        key, data = window_key(len(trial.windows)), window_to_json(window)
        with translated(self._where):
            self._storage.set_trial_user_attr(self._ids[trial.number], key, data)
        metric, blend = self._recall_judges()
        spoiled = [f"{each.check}: {each.reason}" for each in window.verdicts]
        LOG.info("trial %d: %d correct in %g s %s", trial.number, window.correct, window.duration_s, spoiled)
        return replace(trial, windows=(*trial.windows, replace(window, metric=metric, blend=blend)))

    def end(self, trial: Trial, *, log_ratio: float | None, slacks: Mapping[str, float]) -> None:
        """Write how a trial ended: its value and its constraints (slack ≤ 0 is feasible).

        An invalid trial is told as failed, which no sampler sees; a failed one as complete and infeasible,
        so that samplers learn from it; a pruned one as complete, with the value that it has.
        """
        identity = self._ids[trial.number]
        with translated(self._where):
            self._storage.set_trial_user_attr(identity, END, ending_to_json(trial))
            if trial.state is State.INVALID:
                self._storage.set_trial_state_values(identity, TrialState.FAIL)
            else:
                # A trial of the storage's own would be read again and again, which takes longer than to
                # write it.
                told = create_trial(value=0.0)
                for name, slack in slacks.items():
                    told.set_constraint(name, slack)
                for key, attribute in told.system_attrs.items():
                    self._storage.set_trial_system_attr(identity, key, attribute)
                value = FAILED_VALUE if log_ratio is None else log_ratio
                self._storage.set_trial_state_values(identity, TrialState.COMPLETE, [value])
        self.known.end(trial)
        reason = "" if trial.failure is None else f"{trial.failure.kind}: {trial.failure.reason}"
        LOG.info("trial %d ends: %s %s", trial.number, trial.state, reason)

    def settle(
        self,
        trial: Trial,
        *,
        least_windows: int,
        constraints: Sequence[Constraint],
        baselines: Sequence[Trial],
    ) -> Trial:
        """End a trial that was cut off: its finished windows count when they are all there."""
        with translated(self._where):
            self._ids[trial.number] = self._storage.get_trial_id_from_study_id_trial_number(
                self._identity, trial.number
            )
        whole = len(trial.valid_windows) >= least_windows
        failure = None if whole else Failure(kind="interrupted", reason="cut off")
        ended = replace(trial, state=State.COMPLETE if whole else State.INVALID, failure=failure)
        self.end(ended, log_ratio=0.0, slacks=slacks(ended, constraints, baselines))
        return ended

    def trials(self) -> tuple[Trial, ...]:
        """Read every trial back, in the order in which they were made; judged by the study's metric.

        Those before the load was moved are left out: they are of another load.
        """
        stored = self._read_stored()
        since = max((each.since for each in (self.recall(MOVED_LOAD), self.recall(PACE)) if each), default=0)
        return tuple(
            self._read(each) for each in stored if is_trial(each.user_attrs) and each.number >= since
        )

    def judge(self, trial: Trial) -> Trial:
        """Return a trial whose windows are compared as the study compares them now."""
        metric, blend = self._recall_judges()
        windows = (replace(window, metric=metric, blend=blend) for window in trial.windows)
        return replace(trial, windows=tuple(windows))

    def _read_stored(self) -> Sequence[FrozenTrial]:
        with understood(self._where), translated(self._where):
            return self._study.get_trials(deepcopy=False)

    def _read(self, stored: FrozenTrial) -> Trial:
        # The end of a trial is written in two steps, the state last.
        with understood(f"{self._where}: trial {stored.number}"):
            trial = trial_from_json(
                stored.user_attrs, number=stored.number, has_ended=stored.state.is_finished()
            )
        return self.judge(trial)

    def plans(self) -> Mapping[str, Any]:
        """Return what the stages have planned and settled so far: key → JSON value."""
        attributes = self._read_attributes()
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
        """Keep a fact about the whole study."""
        data = fact.to_json(value)
        with translated(self._where):
            self._study.set_user_attr(fact.key, data)
        if self._attributes is not None:
            self._attributes = {**self._attributes, fact.key: data}
        self._judged_by = None  # what was remembered may be another

    def recall(self, fact: Fact[T]) -> T | None:
        """Read a fact about the whole study; None when it is not known.

        Raises:
            UsageError: it is not what a tuner writes.
        """
        with understood(f"{self._where}: {fact.key}"):
            return _find(fact, self._read_attributes())

    def _read_attributes(self) -> Mapping[str, Any]:
        if self._attributes is not None:
            return self._attributes
        with understood(self._where), translated(self._where):
            return self._study.user_attrs

    @property
    def hosts(self) -> Hosts | None:
        """Return the hosts for all of which the winner is to hold; None for a study with one target."""
        return self.recall(HOSTS)

    def claim(
        self, fingerprint: Fingerprint, *, definition: Mapping[str, str], free: Collection[str] = ()
    ) -> None:
        """Bind a new study to its machine and definition, or check that an old one agrees.

        One that has not a single finished window is new. While only the default was measured, other bounds
        may be set: what it shows may be the reason for them.

        Args:
            fingerprint: of the machine.
            definition: of the study, as its file has it now.
            free: in what the machine may differ from the one on which the study began.

        Raises:
            UsageError: the storage belongs to another machine or to another definition of the study.
        """
        if self._is_measured():
            self.refuse_another(fingerprint, definition=definition, free=free)
        elif self.recall(FINGERPRINT) is not None:
            # Begun, but nothing was measured: what was wrong may have been put right in the file.
            self._begin_anew()
        # The fingerprint last: a study that has one is whole, wherever the tuner was killed. An earlier
        # tuner cannot read what it holds from now on.
        self.remember(FORMAT, VERSION)
        self.remember(DEFINITION, definition)
        if self.recall(FINGERPRINT) is None:
            self.remember(FINGERPRINT, fingerprint)

    def admit(
        self,
        host: str,
        fingerprint: Fingerprint,
        definition: Mapping[str, str],
        *,
        free: Collection[str],
    ) -> None:
        """Let another host take part in a study that is claimed. Raises UsageError as `claim` does."""
        self._refuse_differing(fingerprint, free=free)
        self.refuse_changed(definition)
        known = self.recall(OTHER_HOSTS) or {}
        if self.recall(FINGERPRINT) != fingerprint and known.get(host) != fingerprint:
            self.remember(OTHER_HOSTS, {**known, host: fingerprint})

    def refuse_another(
        self, fingerprint: Fingerprint, *, definition: Mapping[str, str], free: Collection[str] = ()
    ) -> None:
        """Raise UsageError when what was measured is of another machine or definition; see `claim`."""
        if self.recall(FINGERPRINT) is None or not self._is_measured():
            return
        self._refuse_differing(fingerprint, free=free)
        self.refuse_changed(definition)

    def _refuse_differing(self, fingerprint: Fingerprint, free: Collection[str] = ()) -> None:
        before = self.recall(FINGERPRINT)
        if before is not None and (differing := find_differing(before, fingerprint, free={*free})):
            found = describe_differing(differing)
            raise UsageError(f"{self._where}: this study was measured on another machine ({found}). {REMEDY}")

    def refuse_changed(self, definition: Mapping[str, str]) -> None:
        """Raise UsageError when what was measured is of another definition; see `describe_changes`."""
        if changed := self.describe_changes(definition):
            raise UsageError(
                f"{self._where}: {changed}. Copy the study file to a new name, move its folder away, or "
                "undo the change."
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

    def _is_measured(self) -> bool:
        return self.recall(FINGERPRINT) is not None and any(trial.windows for trial in self.trials())

    def _knows_default_alone(self) -> bool:
        return all(trial.role is Role.BASELINE for trial in self.trials() if trial.windows)

    def _begin_anew(self) -> None:
        """Forget every trial and every fact."""
        LOG.info("%s: emptied and started again, because it had no measurements", self._where)
        name = self._study.study_name
        with translated(self._where):
            optuna.delete_study(study_name=name, storage=self._storage)
            self._study = make_or_load(self._storage, name)
            self._identity = self._storage.get_study_id_from_name(name)
        self._judged_by = None
        self._attributes = None if self._attributes is None else {}
        self._ids.clear()


def make_or_load(storage: optuna.storages.BaseStorage, name: str) -> optuna.Study:
    """Return the study of a name, made where there is none."""
    return optuna.create_study(storage=storage, study_name=name, direction="maximize", load_if_exists=True)


def _find(fact: Fact[T], attributes: Mapping[str, Any]) -> T | None:
    return fact.from_json(attributes[fact.key]) if fact.key in attributes else None


def _find_judges(attributes: Mapping[str, Any]) -> tuple[Metric, Blend | None]:
    """Return what is maximized, and what counts of several loads."""
    return _find(METRIC, attributes) or Metric.GOODPUT, _find(BLEND, attributes)


def _without_bounds(definition: Mapping[str, str]) -> dict[str, str]:
    """Return a definition without what decides only about trials that were measured."""
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
