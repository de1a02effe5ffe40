"""Several workers on one study: real PostgreSQL, processes that are killed, simulated hosts."""

import signal
from collections import Counter

import pytest

from tests.integration.shared_study import PATIENCE_S, Worker, assert_whole, await_measuring
from tests.integration.waiting import wait_until
from tests.testbed.database import Postgres, open_postgres
from tests.unit.simulation import write_study
from tuner.records import Role, State
from tuner.study import Study, load_study
from tuner.study.facts import FINGERPRINT, OTHER_HOSTS, VERDICT
from tuner.study.open_storage import open_storage
from tuner.study.storage import Storage

HOSTS = ("web0", "web1", "web2")


@pytest.fixture(scope="module")
def postgres():
    with open_postgres() as server:
        yield server


@pytest.fixture
def settings(tmp_path, postgres):
    """A study of its own in the database that the tests share."""
    more = f"storage: {postgres.url}\ntarget: {{watchdog_s: 5}}\n"
    written = write_study(tmp_path, more=more)
    text = written.path.read_text().replace("study: simulated", f"study: {tmp_path.name}")
    written.path.write_text(text.replace("budget: {preset: quick}", "budget: {preset: quick, trials: 5}"))
    return load_study(written.path)


@pytest.fixture
def many(tmp_path):
    """A study in a file whose winner is to hold on three hosts.

    By the workers' fast clock half a minute is over before a process that is begun again has imported all.
    """
    entries = ", ".join(f"{{host: {name}, watchdog_s: 600}}" for name in HOSTS)
    written = write_study(tmp_path, more=f"targets: [{entries}]\n")
    text = written.path.read_text()
    written.path.write_text(text.replace("budget: {preset: quick}", "budget: {preset: quick, trials: 4}"))
    settings = load_study(written.path)
    settings.folder.mkdir()
    return settings


@pytest.fixture
def work(settings):
    workers: list[Worker] = []

    def begin(host: str, stop_at: str = "") -> Worker:
        workers.append(Worker(settings, host, stop_at))
        return workers[-1]

    yield begin
    for worker in workers:
        worker.end()


@pytest.fixture
def work_on_file(many):
    workers: list[Worker] = []

    def begin(host: str) -> Worker:
        workers.append(Worker(many, host))
        return workers[-1]

    yield begin
    for worker in workers:
        worker.end()


@pytest.fixture
def storage(settings):
    opened = open_storage(settings.storage_url, settings.name)
    yield opened
    opened._storage.remove_session()
    opened._storage.engine.dispose()


@pytest.mark.more
def test_workers_share_a_study_and_come_to_one_verdict(storage, work):
    workers = [work(f"web{number}") for number in range(3)]
    verdicts = [worker.wait() for worker in workers]
    assert set(verdicts) == {storage.recall(VERDICT)}
    assert_whole(storage)
    starts = storage.starts()
    assert {start.host for start in starts} == {"web0", "web1", "web2"}
    assert {storage.recall(FINGERPRINT).host, *storage.recall(OTHER_HOSTS)} == {"web0", "web1", "web2"}
    searched = [start for start in starts if start.role in {Role.SEARCH, Role.REPEAT}]
    assert len(searched) == 5, "workers together stay within the budget"
    assert not storage.crew.is_any_at_work()


def test_what_a_killed_worker_was_at_is_done_by_another(storage, work):
    doomed = work("web0", stop_at="search")
    doomed.wait_until_stopped()
    other = work("web1")
    doomed.signal(signal.SIGKILL)
    assert other.wait() == storage.recall(VERDICT)
    assert_whole(storage)
    lost = [start for start in storage.starts() if start.state is State.INVALID]
    assert [start.host for start in lost] == ["web0"]
    assert lost[0].failure.reason == "its worker was lost"
    again = [start for start in storage.starts() if start.counts and start.number > lost[0].number]
    assert lost[0].config in [start.config for start in again]


@pytest.mark.more
def test_a_worker_that_was_frozen_finds_its_start_settled_and_goes_on(storage, work):
    frozen = work("web0", stop_at="search")
    frozen.wait_until_stopped()
    other = work("web1")
    wait_until(lambda: any(start.state is State.INVALID for start in storage.starts()), patience_s=PATIENCE_S)
    frozen.signal(signal.SIGCONT)
    assert frozen.wait() == other.wait() == storage.recall(VERDICT)
    assert_whole(storage)


@pytest.mark.more
def test_a_worker_goes_on_in_the_place_of_one_that_was_killed_at_once(storage, work):
    doomed = work("web0")
    await_measuring(storage, "web0")
    doomed.signal(signal.SIGKILL)
    assert work("web0").wait() == storage.recall(VERDICT)
    assert_whole(storage)


@pytest.mark.more
def test_workers_outlast_a_restart_of_the_database(storage, work, postgres: Postgres):
    workers = [work("web0"), work("web1")]
    wait_until(lambda: all(worker.said for worker in workers), patience_s=PATIENCE_S)
    wait_until(lambda: any("search" in worker.said for worker in workers), patience_s=PATIENCE_S)
    postgres.stop()
    postgres.start()
    assert {worker.wait() for worker in workers} == {storage.recall(VERDICT)}
    assert_whole(storage)


def test_a_host_has_one_worker(storage, work):
    first = work("web0")
    await_measuring(storage, "web0")
    first.signal(signal.SIGSTOP)
    second = work("web0")
    assert second.process.wait(timeout=PATIENCE_S) == 1
    first.signal(signal.SIGCONT)
    second.end()
    assert any("another worker" in line and "--target HOST" in line for line in second.said)
    assert first.wait() == storage.recall(VERDICT)


@pytest.mark.more
def test_many_that_begin_at_once_make_one_study(work):
    workers = [work(f"web{number}") for number in range(6)]
    wait_until(lambda: all(worker.said for worker in workers), patience_s=PATIENCE_S)
    assert {worker.said[0] for worker in workers} == {"control"}


def open_file(settings: Study) -> Storage:
    return open_storage(settings.storage_url, settings.name, create=False)


@pytest.mark.more
def test_workers_on_a_file_prove_one_winner_on_every_host(many, work_on_file):
    verdicts = {worker.wait() for worker in [work_on_file(host) for host in HOSTS]}
    storage = open_file(many)
    assert verdicts == {storage.recall(VERDICT)} == {"confirmed"}
    assert_whole(storage)
    confirming = [start for start in storage.starts() if start.role is Role.CONFIRM and start.counts]
    assert set(Counter(start.host for start in confirming).values()) == {8}
    assert not storage.crew.is_any_at_work()


@pytest.mark.more
def test_the_others_wait_for_a_host_whose_worker_was_killed_and_comes_back(many, work_on_file):
    workers = {host: work_on_file(host) for host in HOSTS}
    wait_until(lambda: "control" in workers["web2"].said, patience_s=PATIENCE_S)
    workers["web2"].signal(signal.SIGKILL)
    workers["web2"].process.wait()
    again = work_on_file("web2")
    verdicts = {workers["web0"].wait(), workers["web1"].wait(), again.wait()}
    storage = open_file(many)
    assert verdicts == {storage.recall(VERDICT)} == {"confirmed"}
    assert_whole(storage)
