"""Workers whose PostgreSQL fails over, or cuts them off in the middle of a decision."""

from collections.abc import Iterator

import pytest
from sqlalchemy import event

from tests.integration.shared_study import PATIENCE_S, Worker, assert_whole, await_measuring
from tests.integration.waiting import wait_until
from tests.testbed.database import Postgres, open_postgres, open_standby
from tests.unit.simulation import write_study
from tuner.records import Role
from tuner.study import Study, load_study
from tuner.study.databases.database import StorageLost
from tuner.study.facts import VERDICT
from tuner.study.open_storage import open_storage
from tuner.study.storage import Opening

pytestmark = pytest.mark.more


@pytest.fixture
def pair() -> Iterator[tuple[Postgres, Postgres]]:
    """A primary and its standby."""
    with open_postgres() as primary, open_standby(primary) as standby:
        yield primary, standby


@pytest.fixture
def settings(tmp_path, pair: tuple[Postgres, Postgres]) -> Study:
    addresses = ",".join(str(server.folder) for server in pair)
    url = f"postgresql://tuner@/postgres?host={addresses}&target_session_attrs=read-write"
    written = write_study(tmp_path, more=f"storage: {url}\ntarget: {{watchdog_s: 5}}\n")
    text = written.path.read_text().replace("{preset: quick}", "{preset: quick, trials: 5}")
    written.path.write_text(text)
    return load_study(written.path)


def test_workers_go_on_with_the_standby_and_no_start_is_lost(
    settings: Study, pair: tuple[Postgres, Postgres]
):
    primary, standby = pair
    storage = open_storage(settings.storage_url, settings.name)
    workers = [Worker(settings, "web0"), Worker(settings, "web1")]
    try:
        wait_until(lambda: all(worker.said for worker in workers), patience_s=PATIENCE_S)
        wait_until(lambda: any("search" in worker.said for worker in workers), patience_s=PATIENCE_S)
        await_measuring(storage, "web0")
        before = storage.starts()
        primary.stop(mode="immediate")
        standby.promote()
        verdicts = {worker.wait() for worker in workers}
    finally:
        for worker in workers:
            worker.end()
    assert verdicts == {storage.recall(VERDICT)}
    assert_whole(storage)
    assert [start.config for start in storage.starts()[: len(before)]] == [start.config for start in before]
    storage._storage.remove_session()
    storage._storage.engine.dispose()


def test_no_start_is_begun_by_a_worker_that_lost_its_turn_while_it_did_so(settings: Study, pair):
    """Optuna tries again by itself; another worker may have decided the same by then."""
    primary, _ = pair
    storage = open_storage(settings.storage_url, settings.name)
    storage.join(host="web0", worker="one", patience_s=5)
    engine = storage.crew.storage.engine
    cut_off: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def cut(_connection, _cursor, statement, *_rest):
        if statement.startswith("INSERT INTO trials") and not cut_off:
            cut_off.append(statement)
            primary.tell(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )

    opening = Opening(role=Role.SEARCH, config={"sendfile": True})
    with storage.crew.at_work(), pytest.raises(StorageLost):
        storage.begin(opening, distributions={}, session="first")
    assert cut_off
    assert storage.starts() == ()
    with storage.crew.at_work():
        assert storage.begin(opening, distributions={}, session="second").number == 0
    engine.dispose()
