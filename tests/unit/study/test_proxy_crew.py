"""Workers that are kept apart by trials: one has the turn, the dead lose it, a host has one of them."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import optuna
import pytest
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from tests.integration.waiting import wait_until
from tuner.errors import TargetError, UsageError
from tuner.records import Role, Start, State
from tuner.study.databases.away import Away
from tuner.study.databases.database import StorageLost
from tuner.study.facts import DIFFERENCES, FINALIST, SealedDifferences
from tuner.study.storage import Opening, Storage
from tuner.study.workers.proxy import ProxyCrew, name_beside

PATIENCE_S = 1.0
NAME = "nginx"


@pytest.fixture
def storage():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = optuna.storages.InMemoryStorage()
    made.create_new_study([StudyDirection.MAXIMIZE], NAME)
    return made


def join(storage: optuna.storages.BaseStorage, host: str) -> ProxyCrew:
    return ProxyCrew(
        storage=storage,
        name=NAME,
        where="memory",
        host=host,
        worker=f"worker of {host}",
        patience_s=PATIENCE_S,
    )


def die_in_turn(crew: ProxyCrew) -> ProxyCrew:
    """Take part and have the turn, and show no life from then on, as one that was killed."""
    crew._take_turn()
    return crew


def a_start(crew: ProxyCrew) -> Start:
    return Start(
        number=0, role=Role.SEARCH, config={}, state=State.RUNNING, started_s=0.0, host=crew.host,
        worker=crew.worker,
    )  # fmt: skip


@contextmanager
def beside(crew: ProxyCrew) -> Iterator[None]:
    """Let another worker take part for as long as the block lasts; it takes no turn from others."""
    is_there, may_end = threading.Event(), threading.Event()

    def work() -> None:
        with crew.at_work(), crew.others_turn():
            is_there.set()
            may_end.wait()

    thread = threading.Thread(target=work)
    thread.start()
    is_there.wait()
    try:
        yield
    finally:
        may_end.set()
        thread.join()


def test_one_at_a_time_has_the_turn(storage):
    having: list[str] = []
    seen: list[int] = []

    def work(crew: ProxyCrew) -> None:
        with crew.at_work():
            for _ in range(5):
                having.append(crew.host)
                seen.append(len(having))
                crew.require_turn()
                having.remove(crew.host)
                with crew.others_turn():
                    pass

    threads = [threading.Thread(target=work, args=(join(storage, f"web{each}"),)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 20
    assert not join(storage, "").is_any_at_work()


def test_whoever_died_in_its_turn_loses_it_and_would_notice(storage):
    dead = die_in_turn(join(storage, "web0"))
    with join(storage, "web1").at_work(), pytest.raises(StorageLost, match="the turn was"):
        dead.require_turn()


class AwayOnce(optuna.storages.InMemoryStorage):
    """Is away when a turn is to be passed on for the first time."""

    was_away = False

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        if state is TrialState.WAITING and not self.was_away:
            self.was_away = True
            raise Away
        return super().set_trial_state_values(trial_id, state, values)


def test_a_turn_that_could_not_be_passed_on_is_given_up_when_the_storage_is_back():
    storage = AwayOnce()
    storage.create_new_study([StudyDirection.MAXIMIZE], NAME)
    with beside(join(storage, "web0")), join(storage, "web1").at_work():
        assert storage.was_away


def test_starts_of_the_dead_are_lost_and_those_of_the_living_are_not(storage):
    dead, living, looking = (join(storage, f"web{each}") for each in range(3))
    die_in_turn(dead)
    with beside(living), beside(looking):
        running = [a_start(dead), a_start(living)]
        assert running[1] not in looking.find_lost(running)
        wait_until(lambda: looking.find_lost(running) == [running[0]], patience_s=60)
        assert looking.is_at_work("web1")
        assert not looking.is_at_work("web0")


def test_who_left_left_its_starts(storage):
    gone, looking = join(storage, "web0"), join(storage, "web1")
    with gone.at_work():
        pass
    with looking.at_work():
        assert looking.find_lost([a_start(gone)]) == [a_start(gone)]


def test_a_host_whose_worker_is_dead_is_taken_over(storage):
    dead = die_in_turn(join(storage, "web0"))
    with join(storage, "web0").at_work():
        assert storage.get_trial(dead._member).state is TrialState.FAIL


def test_a_host_whose_worker_lives_is_refused(storage):
    second, refused = join(storage, "web0"), pytest.raises(TargetError, match="is at work on web0")
    with beside(join(storage, "web0")), refused, second.at_work():
        pass


def test_a_study_that_was_begun_without_a_proxy_is_left_alone(storage):
    storage.create_new_trial(storage.get_study_id_from_name(NAME))
    with pytest.raises(UsageError, match="was begun without a proxy"), join(storage, "web0").at_work():
        pass
    assert name_beside(NAME) not in [each.study_name for each in storage.get_all_studies()]


def test_signs_of_life_are_told_by_start(storage):
    study, crew = storage.get_study_id_from_name(NAME), join(storage, "web0")
    with beside(crew):
        own = {"host": crew.host, "worker": crew.worker}
        for attributes in (own, {"host": "web9", "worker": "nobody"}):
            trial = storage.create_new_trial(study)
            for key, value in attributes.items():
                storage.set_trial_user_attr(trial, key, value)
        told = crew.silences()
    assert told[1] is None
    assert told[0] is not None


def test_who_was_taken_for_dead_while_it_waited_for_the_turn_joins_again(storage):
    leading, waiting = join(storage, "web0"), join(storage, "web1")
    states: list[TrialState] = []

    def work() -> None:
        with waiting.at_work():
            states.append(storage.get_trial(waiting._member).state)

    thread = threading.Thread(target=work)
    with leading.at_work():
        thread.start()
        wait_until(lambda: leading.is_at_work("web1"), patience_s=60)
        leading._finish(storage.get_all_trials(leading._beside)[-1]._trial_id)
        assert not leading.is_at_work("web1")
    thread.join()
    assert states == [TrialState.RUNNING]


def test_whoever_takes_part_judges_others_by_what_it_hears_and_not_by_their_clocks(storage):
    looking = join(storage, "web0")
    with looking.at_work():
        attributes = {"host": "web1", "worker": "late clock", "patience_s": 1.0, "beat": 0.0}
        storage.create_new_trial(
            looking._beside, template_trial=create_trial(state=TrialState.RUNNING, user_attrs=attributes)
        )
        looking._finish(looking._member)
        wait_until(lambda: looking._member is None)
        assert looking.is_at_work("web1")
    assert not looking.is_at_work("web1")


class TurnLost(optuna.storages.InMemoryStorage):
    """Ends the turn of whoever begins a start, as others do when it is silent."""

    crew: ProxyCrew | None = None

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        if self.crew is not None and study_id == self.get_study_id_from_name(NAME):
            self.crew._finish(self.crew._turn)
        return super().create_new_trial(study_id, template_trial)


def test_nothing_is_decided_by_one_that_lost_its_turn_while_it_did_so():
    kept = TurnLost()
    study = optuna.create_study(storage=kept, study_name=NAME, direction="maximize")
    opened = Storage(kept, study, "memory")
    opened.crew = kept.crew = join(kept, "web0")
    with opened.at_work():
        with pytest.raises(StorageLost, match="the turn was"):
            opened.begin(Opening(role=Role.SEARCH, config={}), distributions={}, session="first")
        with pytest.raises(StorageLost, match="the turn was"):
            opened.remember(FINALIST, ())
        opened.remember(DIFFERENCES, SealedDifferences(winner={}, text="", seal=""))
    [late] = opened.starts()
    assert (late.state, late.failure.reason) == (State.INVALID, "its worker had lost the turn")
    assert opened.recall(FINALIST) is None
