"""Several workers on one study: real PostgreSQL, processes that are killed, simulated hosts."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.integration.waiting import wait_until
from tests.testbed.database import Postgres, open_postgres
from tests.unit.simulation import write_study
from tuner.records import Role, State
from tuner.statistics.ranking import config_key
from tuner.study import Study, load_study
from tuner.study.facts import FINGERPRINT, OTHER_HOSTS, VERDICT
from tuner.study.storage import Storage, open_storage

SPEED = "20"
HOSTS = ("web0", "web1", "web2")
PATIENCE_S = 120.0
"""Processes that decide by a model take their time on a busy machine."""
ROOT = Path(__file__).parents[2]


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


class Worker:
    """One worker as a process; what it says is kept."""

    def __init__(self, settings: Study, host: str) -> None:
        command = (sys.executable, "-m", "tests.integration.work_simulated", settings.path, host, SPEED)
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.strip())

    def wait(self) -> str:
        """Wait for the verdict."""
        assert self.process.wait(timeout=300) == 0, self.said
        self._reader.join()
        return self.said[-1]

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def work(settings):
    workers: list[Worker] = []

    def begin(host: str) -> Worker:
        workers.append(Worker(settings, host))
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


def await_measuring(storage: Storage, host: str) -> None:
    """Wait until a host is in the middle of a start."""

    def is_measuring() -> bool:
        return any(
            start.host == host and start.state is State.RUNNING and start.windows
            for start in storage.starts()
        )

    wait_until(is_measuring, patience_s=PATIENCE_S)


def assert_whole(storage: Storage) -> None:
    """Check that nothing was lost or measured twice, and that each pair was measured on one host."""
    starts = storage.starts()
    assert [start.number for start in starts] == list(range(len(starts)))
    assert not [start for start in starts if start.state is State.RUNNING]
    counted = Counter(
        config_key(start.config)
        for start in starts
        if start.role is Role.SEARCH and start.state is not State.INVALID
    )
    assert max(counted.values()) == 1, "two workers tried the same configuration"
    confirming = [start for start in starts if start.role is Role.CONFIRM and start.counts]
    blocks = Counter((start.block, start.arm) for start in confirming)
    assert set(blocks.values()) <= {1}, "a side of a pair was measured twice"
    hosts = {block: {start.host for start in confirming if start.block == block} for block, _ in blocks}
    assert all(len(each) == 1 for each in hosts.values())
    # One worker is at one thing at a time.
    for host in {start.host for start in starts}:
        own = [start for start in starts if start.host == host]
        assert all(one.started_s <= other.started_s for one, other in pairwise(own))


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


def freeze_at_first_window(worker, storage: Storage, host: str) -> None:
    """Stop a worker at a start that has one window: with all of them it would count."""
    while True:
        await_measuring(storage, host)
        worker.signal(signal.SIGSTOP)
        running = [each for each in storage.starts() if each.host == host and each.state is State.RUNNING]
        if [len(each.windows) for each in running] == [1]:
            return
        worker.signal(signal.SIGCONT)


def test_what_a_killed_worker_was_at_is_done_by_another(storage, work):
    doomed, other = work("web0"), work("web1")
    wait_until(lambda: "search" in doomed.said, patience_s=PATIENCE_S)
    freeze_at_first_window(doomed, storage, "web0")
    doomed.signal(signal.SIGKILL)
    assert other.wait() == storage.recall(VERDICT)
    assert_whole(storage)
    lost = [start for start in storage.starts() if start.state is State.INVALID]
    assert [start.host for start in lost] == ["web0"]
    assert lost[0].failure.reason == "its worker was lost"
    again = [start for start in storage.starts() if start.counts and start.number > lost[0].number]
    assert lost[0].role is Role.CONTROL or lost[0].config in [start.config for start in again]


def test_a_worker_that_was_frozen_finds_its_start_settled_and_goes_on(storage, work):
    frozen, other = work("web0"), work("web1")
    await_measuring(storage, "web0")
    frozen.signal(signal.SIGSTOP)
    wait_until(lambda: any(start.state is State.INVALID for start in storage.starts()), patience_s=PATIENCE_S)
    frozen.signal(signal.SIGCONT)
    assert frozen.wait() == other.wait() == storage.recall(VERDICT)
    assert_whole(storage)


def test_a_worker_goes_on_in_the_place_of_one_that_was_killed_at_once(storage, work):
    doomed = work("web0")
    await_measuring(storage, "web0")
    doomed.signal(signal.SIGKILL)
    assert work("web0").wait() == storage.recall(VERDICT)
    assert_whole(storage)


def test_workers_outlast_a_restart_of_the_database(storage, work, postgres: Postgres):
    workers = [work("web0"), work("web1")]
    wait_until(lambda: "search" in workers[1].said, patience_s=PATIENCE_S)
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


def test_many_that_begin_at_once_make_one_study(work):
    workers = [work(f"web{number}") for number in range(6)]
    wait_until(lambda: all(worker.said for worker in workers), patience_s=PATIENCE_S)
    assert {worker.said[0] for worker in workers} == {"control"}


def open_file(settings: Study) -> Storage:
    return open_storage(settings.storage_url, settings.name, create=False)


def test_workers_on_a_file_prove_one_winner_on_every_host(many, work_on_file):
    verdicts = {worker.wait() for worker in [work_on_file(host) for host in HOSTS]}
    storage = open_file(many)
    assert verdicts == {storage.recall(VERDICT)} == {"confirmed"}
    assert_whole(storage)
    confirming = [start for start in storage.starts() if start.role is Role.CONFIRM and start.counts]
    assert set(Counter(start.host for start in confirming).values()) == {8}
    assert not storage.crew.is_any_at_work()


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
