"""Workers of a study in a file, on one machine, kept apart by locks."""

import threading
from dataclasses import replace

import pytest

from tests.unit.statistics.made_starts import make_start
from tuner.errors import TargetError, UsageError
from tuner.records import State
from tuner.study.workers.file_locks import FileCrew


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "test.study").mkdir()
    return tmp_path / "test.study"


def test_one_at_a_time_has_the_turn(folder):
    first, second = FileCrew(folder=folder, host="a"), FileCrew(folder=folder, host="b")
    has_turn = threading.Event()

    def work():
        with second.at_work():
            has_turn.set()

    other = threading.Thread(target=work)
    with first.at_work():
        other.start()
        assert not has_turn.wait(0.2)
        with first.others_turn():
            assert has_turn.wait(30)
    other.join()


def test_who_is_at_work_is_seen_from_outside(folder):
    reader, worker = FileCrew(folder=folder), FileCrew(folder=folder, host="ssh://root@web1:22")

    assert not reader.is_any_at_work()
    with worker.at_work():
        assert reader.is_any_at_work()
        assert reader.is_at_work("ssh://root@web1:22")
        assert not reader.is_at_work("ssh://root@web2:22")
    assert not reader.is_any_at_work()


def test_a_host_has_one_worker(folder):
    with (
        FileCrew(folder=folder, host="a").at_work(),
        pytest.raises(TargetError, match="another worker of this study is at work on a"),
        FileCrew(folder=folder, host="a").at_work(),
    ):
        pass


def test_what_was_running_where_nobody_is_at_work_is_lost(folder):
    running = [
        replace(make_start(0.0, number=number), host=host, state=State.RUNNING)
        for number, host in enumerate(["a", "b", "c"])
    ]
    crew = FileCrew(folder=folder, host="a")
    done = threading.Event()
    ready = threading.Event()

    def work():
        other = FileCrew(folder=folder, host="b")
        with other.at_work(), other.others_turn():
            ready.set()
            done.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(30)
    with crew.at_work():
        assert [start.host for start in crew.find_lost(running)] == ["a", "c"]
    done.set()
    thread.join()


def test_a_link_in_the_place_of_a_lock_is_not_followed(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "workers").symlink_to(elsewhere)

    with pytest.raises(UsageError, match="link"), FileCrew(folder=folder, host="a").at_work():
        pass
    assert not [*elsewhere.iterdir()]
