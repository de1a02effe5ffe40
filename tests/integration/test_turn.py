"""The turn of a study on a real PostgreSQL: who is frozen loses it, and nobody decides without it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.integration.shared_study import PATIENCE_S
from tests.integration.waiting import wait_until
from tests.testbed.database import open_postgres
from tuner.study.databases.database import SERVER_SETTINGS
from tuner.study.open_storage import open_storage
from tuner.study.storage import Storage

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
        storage._storage.remove_session()
        storage._storage.engine.dispose()


def ask(storage: Storage, statement: str, **values: str) -> object:
    """Ask the database by a connection that no worker has."""
    with storage._storage.engine.connect() as connection:
        return connection.execute(text(statement), values).scalar_one()


def test_a_worker_that_was_frozen_while_it_waited_for_the_turn_does_not_keep_it(postgres, join, tmp_path):
    leading = join("web0")
    program = (sys.executable, "-m", "tests.integration.wait_for_turn", postgres.url, tmp_path.name, "web1")
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as frozen:
        try:
            with leading.crew.at_work():
                wait_until(lambda: ask(leading, WAITING) == 1, patience_s=PATIENCE_S)
                frozen.send_signal(signal.SIGSTOP)
            wait_until(lambda: not leading.crew._is_held("turn"), patience_s=PATIENCE_S)
            frozen.send_signal(signal.SIGCONT)
            assert frozen.communicate(timeout=PATIENCE_S)[0] == "lost\n"
        finally:
            frozen.kill()


def test_the_database_is_told_to_notice_that_a_worker_has_lost_its_power(join):
    """A Unix socket, over which the tests come, has no such timers: what was asked for is in `reset_val`."""
    asked = "SELECT reset_val FROM pg_settings WHERE lower(name) = :name"
    storage = join("web0")

    told = {name: ask(storage, asked, name=name) for name in SERVER_SETTINGS}

    assert told == SERVER_SETTINGS
