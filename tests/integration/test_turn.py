"""The turn of a study on a real PostgreSQL: who is frozen loses it, and nobody decides without it."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.integration.shared_study import PATIENCE_S
from tests.integration.waiting import wait_until
from tests.testbed.database import open_postgres
from tests.testbed.pool import open_pool
from tests.unit.simulated_study import FINGERPRINT
from tuner.errors import UsageError
from tuner.records import Role, Start
from tuner.study.databases.database import SERVER_SETTINGS, StorageLost
from tuner.study.facts import DIFFERENCES, FINALIST, OTHER_HOSTS, VERDICT, SealedDifferences
from tuner.study.open_storage import open_storage
from tuner.study.storage import Opening, Storage
from tuner.study.workers.proxy import ProxyCrew

ROOT = Path(__file__).parents[2]
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


@pytest.fixture(scope="module")
def postgres():
    with open_postgres() as server:
        yield server


@pytest.fixture
def join(postgres, tmp_path):
    """Open the test's own study for the worker of a host."""
    opened: list[Storage] = []

    def on(host: str) -> Storage:
        storage = open_storage(postgres.url, tmp_path.name)
        storage.join(host=host, worker=f"worker of {host}", patience_s=5)
        opened.append(storage)
        return storage

    yield on
    for storage in opened:
        leave(storage)


def leave(storage: Storage) -> None:
    storage._storage.remove_session()
    storage._storage.engine.dispose()


def ask(storage: Storage, statement: str, **values: str) -> object:
    """Ask the database by a connection that no worker has."""
    with storage._storage.engine.connect() as connection:
        return connection.execute(text(statement), values).scalar_one()


def test_a_worker_that_was_frozen_while_it_waited_for_the_turn_does_not_keep_it(postgres, join, tmp_path):
    leading = join("web0")
    program = (sys.executable, "-m", "tests.integration.wait_for_turn", postgres.url, tmp_path.name, "web1")
    with subprocess.Popen(program, cwd=ROOT) as frozen:
        try:
            with leading.crew.at_work():
                wait_until(lambda: ask(leading, WAITING) == 1, patience_s=PATIENCE_S)
                frozen.send_signal(signal.SIGSTOP)
            wait_until(lambda: not leading.crew._is_held("turn"), patience_s=PATIENCE_S)
            frozen.send_signal(signal.SIGCONT)
            assert frozen.wait(timeout=PATIENCE_S) == 0, "it finds that out, and waits again"
        finally:
            frozen.kill()


def test_nothing_is_decided_by_a_worker_whose_turn_is_gone(join):
    storage = join("web0")
    with storage.at_work():
        storage.remember(FINALIST, ())
        storage.crew._ask("SELECT pg_advisory_unlock_all() IS NULL")
        for decide in (begin, lambda late: late.remember(VERDICT, "confirmed")):
            with pytest.raises(StorageLost, match="the turn was lost"):
                decide(storage)
        storage.remember(DIFFERENCES, SealedDifferences(winner={}, text="", seal=""))
    assert storage.recall(FINALIST) == ()
    assert storage.recall(VERDICT) is None
    assert storage.starts() == ()


def begin(storage: Storage) -> Start:
    return storage.begin(Opening(role=Role.CONTROL, config={}), distributions={}, session="first")


def claim(storage: Storage, definition: str) -> None:
    own = replace(FINGERPRINT, host=storage.crew.host)
    storage.claim(own, definition={"study": definition})


def test_a_study_that_another_worker_has_begun_anew_is_gone_on_with(join):
    first, second, late = join("web0"), join("web1"), join("web2")
    with first.at_work():
        claim(first, "wrong")
    with second.at_work():
        claim(second, "right")
        begun = begin(second)
    with pytest.raises(StorageLost, match="has begun the study anew"):
        late.starts()
    with first.at_work():
        claim(first, "right")
        assert [start.number for start in first.starts()] == [begun.number]
        assert first.recall(OTHER_HOSTS).keys() == {"web0"}
    late.wait_until_back()
    assert late.starts() == first.starts()


def test_a_pool_in_which_workers_share_sessions_is_refused(postgres, tmp_path):
    with open_pool(postgres) as url:
        storage = open_storage(url, tmp_path.name)
        storage.join(host="web0", worker="one", patience_s=5)
        with pytest.raises(UsageError, match="Give the address of the database itself"), storage.at_work():
            pass
        assert not storage.crew.is_any_at_work()
        leave(storage)


def test_who_comes_without_a_proxy_at_the_same_time_as_others_through_one_is_refused(join):
    direct = join("web0")
    late = ProxyCrew(storage=direct._storage, name=direct._study.study_name, where="proxy", host="web1")
    with late.at_work(), late.others_turn():
        with pytest.raises(UsageError, match="Run the same command again"), direct.at_work():
            pass
        assert not direct.crew.is_any_at_work()
        again = join("web0")
        assert again.crew.is_at_work("web1")
        with again.at_work():
            assert begin(again).number == 0


def test_a_turn_without_a_proxy_ends_when_others_come_through_one(join):
    direct = join("web0")
    late = ProxyCrew(storage=direct._storage, name=direct._study.study_name, where="proxy", host="web1")
    with direct.at_work(), late.at_work(), pytest.raises(StorageLost):
        begin(direct)
    assert direct.starts() == ()


def test_the_database_is_told_to_notice_that_a_worker_has_lost_its_power(join):
    """A Unix socket, over which the tests come, has no such timers: what was asked for is in `reset_val`."""
    asked = "SELECT reset_val FROM pg_settings WHERE lower(name) = :name"
    storage = join("web0")

    told = {name: ask(storage, asked, name=name) for name in SERVER_SETTINGS}

    assert told == SERVER_SETTINGS
