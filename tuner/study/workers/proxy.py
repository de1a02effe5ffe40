"""The workers of a study behind a proxy, kept apart by what Optuna's storage can do.

The proxy has neither locks nor heartbeats. What it has are trials: only one of many can set a waiting one to
running, and only one can finish it. So a study has another one beside it, NAME/crew. In that one each worker
is a trial that runs as long as it takes part, in which it leaves a sign of life; and the turn is a trial that
runs while somebody has it, and waits otherwise. A worker that is silent for too long, by the clock of those
who look, is finished by them, and so is the turn that it had: the next one is another trial.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TypeVar

import optuna
from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from tuner.errors import TargetError, UsageError
from tuner.records import Start
from tuner.study.databases.database import StorageLost, translated

T = TypeVar("T")

HOST, WORKER, PATIENCE, BEAT, TURN = "host", "worker", "patience_s", "beat", "turn"
BEATS = 6
"""Signs of life within the time after which a silent worker is taken for dead."""
LEAST_BEAT_S, MOST_BEAT_S = 0.5, 20.0
LOOK_AGAIN_S, MOST_LOOK_S = 0.05, 0.5
"""Between two tries for the turn: longer and longer."""


@dataclass(kw_only=True)
class ProxyCrew:
    """One worker of a study, and what it sees of the others."""

    storage: optuna.storages.BaseStorage
    name: str
    """Of the study."""
    where: str
    """The storage, as messages name it."""
    host: str = ""
    worker: str = ""
    patience_s: float = 120.0
    """See `PostgresCrew`."""
    is_shared: bool = True
    _only_looks: bool = field(default=True, init=False)
    """Whether it takes no part, and so hears nothing of the others between one look and the next."""
    _beside: int | None = field(default=None, init=False)
    """The other study, by its identity; and so the trials below."""
    _member: int | None = field(default=None, init=False)
    _token: int | None = field(default=None, init=False)
    """The turn as it was last found."""
    _turn: int | None = field(default=None, init=False)
    """The turn while this one has it."""
    _owed: int | None = field(default=None, init=False)
    """The turn that was to be passed on when the storage was away."""
    _heard: dict[int, tuple[object, float]] = field(default_factory=dict, init=False)
    """Trial → what was last heard of it, and the monotonic time at which that was new."""

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Take part, and have the turn. Raises TargetError where another one is at work on the host."""
        ended = Event()
        beats = Thread(target=self._beat_until, args=(ended,), daemon=True)
        beats.start()
        self._only_looks = False
        try:
            self._take_turn()
            yield
        finally:
            self._only_looks = True
            ended.set()
            beats.join()
            self._leave()

    @contextmanager
    def others_turn(self) -> Iterator[None]:
        """Let others decide meanwhile; afterwards this one has the turn again."""
        self._pass_on()
        try:
            yield
        finally:
            self._take_turn()

    def alive(self, trial: int) -> AbstractContextManager[None]:  # noqa: ARG002 - whoever takes part is
        return nullcontext()

    def require_turn(self) -> None:
        """Raise StorageLost when the turn was lost, and others may have decided."""
        if self._turn is None or not self._beat(self._turn):
            self._turn = None
            raise StorageLost(f"{self.where}: the storage was lost (the turn was). The same command goes on.")

    def insist(self, write: Callable[[], T]) -> T:
        """Write, and try again where the storage is away, as long as the target may stay as it is."""
        deadline_s = time.monotonic() + self.patience_s
        while True:
            try:
                return write()
            except StorageLost:
                # Others may not have been able to show that they are alive.
                self._heard.clear()
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(MOST_LOOK_S)

    def silences(self) -> Mapping[int, float | None]:
        """Return start number → seconds since its worker was heard of, of those that run; None for never.

        By the clocks of the two machines, as far as they agree.
        """
        members = self._known_members()
        with translated(self.where):
            study = self.storage.get_study_id_from_name(self.name)
            running = self.storage.get_all_trials(study, deepcopy=False, states=(TrialState.RUNNING,))
        silences: dict[int, float | None] = {}
        for start in running:
            own = members.get(start.user_attrs.get(WORKER, ""))
            silences[start.number] = None if own is None else _age_s(own)
        return silences

    def find_lost(self, running: Sequence[Start]) -> list[Start]:
        """Return the starts that their workers will never end; this one is at none now."""
        members = self._known_members() if any(start.host != self.host for start in running) else {}
        dead = {worker for worker, member in members.items() if self._is_dead(member)}
        for worker in dead:
            # Should it come back, it finds that out.
            self._finish(self._identify(members[worker]))
        alive = members.keys() - dead
        return [start for start in running if start.host == self.host or start.worker not in alive]

    def is_at_work(self, host: str) -> bool:
        """Return whether a worker takes part on a host now."""
        return any(not self._is_dead(member) for member in self._members() if member.user_attrs[HOST] == host)

    def is_any_at_work(self) -> bool:
        """Return whether any worker takes part now."""
        return not all(map(self._is_dead, self._members()))

    # Taking part

    def _join(self) -> None:
        """Take part, once nobody else does on this host."""
        with translated(self.where):
            self._beside = self._beside or self._open_beside()
            attributes = {
                HOST: self.host, WORKER: self.worker, PATIENCE: self.patience_s, BEAT: time.time(),
            }  # fmt: skip
            template = create_trial(state=TrialState.RUNNING, user_attrs=attributes)
            member = self.storage.create_new_trial(self._beside, template_trial=template)
            number = self.storage.get_trial_number_from_id(member)
        for other in self._members():
            if other.user_attrs[HOST] == self.host and other.number < number:
                self._outlive(other, member)
        self._member = member

    def _outlive(self, other: FrozenTrial, member: int) -> None:
        """Wait until it is seen whether another one is alive. Raises TargetError where it is."""
        identity, first = self._identify(other), other.user_attrs[BEAT]
        while not other.state.is_finished() and other.user_attrs[BEAT] == first:
            if self._silent_s(other) > self.patience_s:
                self._finish(identity)
            time.sleep(MOST_LOOK_S)
            self._beat(member)
            with translated(self.where):
                other = self.storage.get_trial(identity)
        if not other.state.is_finished():
            self._finish(member)
            raise TargetError(
                f"{self.where}: another worker of {self.name} is at work on {self.host}. End it, or name "
                "another host: --target HOST."
            )

    def _leave(self) -> None:
        member, self._member = self._member, None
        self._pass_on()
        if member is not None:
            with suppress(StorageLost):
                self._finish(member)

    def _beat_until(self, ended: Event) -> None:
        each_s = min(MOST_BEAT_S, max(LEAST_BEAT_S, self.patience_s / BEATS))
        while not ended.wait(each_s):
            turn = self._turn
            try:
                self._is_member()
                if turn is not None:
                    self._beat(turn)
                self._end_owed()
            except TargetError:
                self._heard.clear()

    def _is_member(self) -> bool:
        """Show that this worker takes part; return whether it still does, and nobody took it for dead."""
        member = self._member
        if member is not None and not self._beat(member) and self._member == member:
            self._member = None
        return self._member is not None

    def _beat(self, trial: int) -> bool:
        """Show that this worker is alive; return whether others take it for that."""
        with translated(self.where):
            try:
                self.storage.set_trial_user_attr(trial, BEAT, time.time())
            except UpdateFinishedTrialError:
                return False
        return True

    # The turn

    def _take_turn(self) -> None:
        """Wait for the turn, however long others need; the database may be away for `patience_s`."""
        self.insist(self._try_to_take_turn)

    def _try_to_take_turn(self) -> None:
        """Take the turn as one that takes part, and join again where others have taken this one for dead."""
        self._end_owed()
        is_member = False
        while not is_member:
            if self._member is None:
                self._join()
            if self._wait():
                self._turn = self._token
                try:
                    is_member = self._is_member()
                finally:
                    if not is_member:
                        self._pass_on()

    def _wait(self) -> bool:
        """Wait for the turn; return whether it came before others took this one for dead."""
        looked_s, wait_s = time.monotonic(), LOOK_AGAIN_S
        while not self._take():
            if self._member is None:
                return False
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, MOST_LOOK_S)
            if time.monotonic() - looked_s > self.patience_s / BEATS:
                self._look_after_turn()
                looked_s = time.monotonic()
        return True

    def _take(self) -> bool:
        self._token = self._token or self._find_turn()
        with translated(self.where):
            try:
                return self.storage.set_trial_state_values(self._token, TrialState.RUNNING)
            except UpdateFinishedTrialError:
                self._token = None
                return False

    def _look_after_turn(self) -> None:
        """Take the turn for lost where whoever has it is dead: then the next one is another trial."""
        if self._token is None:
            return
        with translated(self.where):
            seen = self.storage.get_trial(self._token)
        if seen.state is TrialState.RUNNING and self._silent_s(seen) > self.patience_s:
            self._finish(self._token)

    def _find_turn(self) -> int:
        """Return the turn, and make one where there is none: of several, the oldest counts."""
        beside = self._beside
        if beside is None:
            raise StorageLost(f"{self.where}: not connected.")
        with translated(self.where):
            while True:
                for trial in self.storage.get_all_trials(beside, deepcopy=False):
                    if TURN in trial.user_attrs and not trial.state.is_finished():
                        return self._identify(trial)
                template = create_trial(state=TrialState.WAITING, user_attrs={TURN: True})
                self.storage.create_new_trial(beside, template_trial=template)

    def _pass_on(self) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        try:
            # Others may have taken this one for dead.
            with suppress(UpdateFinishedTrialError), translated(self.where):
                self.storage.set_trial_state_values(turn, TrialState.WAITING)
        except StorageLost:
            self._owed = turn

    def _end_owed(self) -> None:
        """End the turn that could not be passed on; who has it after all finds that out."""
        if self._owed is not None:
            self._finish(self._owed)
            self._owed = None

    def _finish(self, trial: int) -> None:
        with suppress(UpdateFinishedTrialError), translated(self.where):
            self.storage.set_trial_state_values(trial, TrialState.FAIL)

    # Others

    def _open_beside(self) -> int:
        """Return the study of the workers. Raises UsageError where others work without a proxy."""
        try:
            return self.storage.get_study_id_from_name(name_beside(self.name))
        except KeyError:
            study = self.storage.get_study_id_from_name(self.name)
        if self.storage.get_n_trials(study):
            raise UsageError(
                f"{self.where}: the study {self.name} was begun without a proxy. Go on with "
                "`storage: postgresql://…`, or give the study a new name."
            )
        try:
            return self.storage.create_new_study([StudyDirection.MAXIMIZE], name_beside(self.name))
        except DuplicatedStudyError:
            return self.storage.get_study_id_from_name(name_beside(self.name))

    def _identify(self, trial: FrozenTrial) -> int:
        """Return what the storage knows a trial of the workers' study by."""
        beside = self._beside
        if beside is None:
            raise StorageLost(f"{self.where}: not connected.")
        with translated(self.where):
            return self.storage.get_trial_id_from_study_id_trial_number(beside, trial.number)

    def _members(self) -> list[FrozenTrial]:
        with translated(self.where):
            if self._beside is None:
                try:
                    self._beside = self.storage.get_study_id_from_name(name_beside(self.name))
                except KeyError:
                    return []
            running = self.storage.get_all_trials(self._beside, deepcopy=False, states=(TrialState.RUNNING,))
        return [trial for trial in running if HOST in trial.user_attrs]

    def _known_members(self) -> dict[str, FrozenTrial]:
        """Return worker → what that one shows of itself."""
        return {each.user_attrs[WORKER]: each for each in self._members()}

    def _is_dead(self, member: FrozenTrial) -> bool:
        silent_s = _age_s(member) if self._only_looks else self._silent_s(member)
        return silent_s > float(member.user_attrs[PATIENCE])

    def _silent_s(self, trial: FrozenTrial) -> float:
        """Return for how long nothing was heard of a trial, since this worker looks."""
        now_s = time.monotonic()
        said = trial.user_attrs.get(BEAT), trial.datetime_start
        before, since_s = self._heard.get(trial.number, (None, now_s))
        if before != said:
            since_s = now_s
        self._heard[trial.number] = said, since_s
        return now_s - since_s


def name_beside(study: str) -> str:
    """Return the name of the study in which the workers of another one are."""
    return f"{study}/crew"


def _age_s(member: FrozenTrial) -> float:
    return max(0.0, time.time() - float(member.user_attrs[BEAT]))
