"""Several workers of one study behind a proxy: a real PostgreSQL, a real proxy, processes that are killed."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.shared_study import PATIENCE_S, Worker, assert_whole
from tests.integration.waiting import wait_until
from tests.testbed.database import open_postgres
from tests.testbed.proxy import TUNER, Proxy
from tests.unit.simulation import TUNED, space_of, write_study
from tuner.campaign.warm_start import read_earlier
from tuner.errors import TargetError, UsageError
from tuner.records import State
from tuner.study import Study, load_study
from tuner.study.facts import VERDICT
from tuner.study.open_storage import open_storage
from tuner.study.storage import Storage


@pytest.fixture(scope="module")
def postgres():
    with open_postgres() as server:
        yield server


def write(folder: Path, storage: str, name: str, more: str = "") -> Study:
    """Write a study of five trials, whose workers may be silent for five seconds."""
    folder.mkdir()
    written = write_study(folder, more=f"storage: {storage}\ntarget: {{watchdog_s: 5}}\n{more}\n")
    text = written.path.read_text().replace("study: simulated", f"study: {name}")
    written.path.write_text(text.replace("{preset: quick}", "{preset: quick, trials: 5}"))
    return load_study(written.path)


@pytest.fixture
def direct(tmp_path, postgres):
    """The study as it is beside the database."""
    return write(tmp_path / "direct", postgres.url, tmp_path.name)


@pytest.fixture
def proxy(direct):
    opened = Proxy(direct.path)
    yield opened
    assert opened.end() == 0


@pytest.fixture
def settings(tmp_path, proxy):
    """The study as its workers have it."""
    return write(tmp_path / "workers", f"grpc://{proxy.address}", tmp_path.name)


@contextmanager
def open_direct(direct: Study) -> Iterator[Storage]:
    """Open a study without its proxy."""
    opened = open_storage(direct.storage_url, direct.name)
    try:
        yield opened
    finally:
        opened._storage.remove_session()
        opened._storage.engine.dispose()


@pytest.mark.more
def test_workers_behind_a_proxy_outlast_a_killed_one_and_a_killed_proxy(direct, settings, proxy, tmp_path):
    workers = {"web0": Worker(settings, "web0", stop_at="search")}
    storage = open_storage(settings.storage_url, settings.name)
    try:
        workers["web0"].wait_until_stopped()
        workers |= {host: Worker(settings, host) for host in ("web1", "web2")}
        wait_until(lambda: all(worker.said for worker in workers.values()), patience_s=PATIENCE_S)
        workers["web0"].signal(signal.SIGKILL)
        proxy.kill()
        proxy.begin()
        assert {workers[host].wait() for host in ("web1", "web2")} == {storage.recall(VERDICT)}
    finally:
        for worker in workers.values():
            worker.end()
    assert_whole(storage)
    lost = [start for start in storage.starts() if start.state is State.INVALID]
    assert "web0" in {start.host for start in lost}
    assert {start.failure.reason for start in lost} == {"its worker was lost"}
    assert not storage.crew.is_any_at_work()
    with open_direct(direct) as beside:
        assert beside.starts() == storage.starts(), "who looks without the proxy sees the same"
        assert not beside.crew.is_any_at_work()
    with_earlier = write(tmp_path / "next", "sqlite", "next", f"warm_start: [{settings.path}]")
    [earlier] = read_earlier(with_earlier, space_of(*TUNED))
    assert earlier.good, "another study begins with what was found behind the proxy"


@pytest.mark.more
def test_a_study_that_was_begun_without_a_proxy_is_gone_on_with_without(direct, settings):
    with open_direct(direct) as begun:
        begun._study.ask()
    late = open_storage(settings.storage_url, settings.name)
    late.join(host="web0", worker="one", patience_s=5)
    with pytest.raises(UsageError, match="was begun without a proxy"), late.crew.at_work():
        pass


def test_where_no_proxy_answers_the_remedy_names_it(tmp_path):
    with pytest.raises(TargetError, match="Is `tuner proxy` at work there"):
        open_storage("grpc://127.0.0.1:9", tmp_path.name)


@pytest.mark.parametrize("address", ["grpc://db", "grpc://", "grpc://user@db:13000", "grpc://db:x"])
def test_an_address_without_host_or_port_is_refused(address, tmp_path):
    with pytest.raises(UsageError, match="Write HOST:PORT"):
        open_storage(address, tmp_path.name)


def call(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([TUNER, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.more
def test_the_command_says_what_is_wrong(direct, proxy, tmp_path):
    taken = call("proxy", direct.path, "--listen", proxy.address)
    assert (taken.returncode, "cannot be listened on" in taken.stderr) == (3, True)
    wrong = call("proxy", direct.path, "--listen", "13000")
    assert (wrong.returncode, "Write HOST:PORT" in wrong.stderr) == (2, True)
    of_file = write(tmp_path / "file", "sqlite", "file")
    refused = call("proxy", of_file.path)
    assert (refused.returncode, "stands before a PostgreSQL" in refused.stderr) == (2, True)
