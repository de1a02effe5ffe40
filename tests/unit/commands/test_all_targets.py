"""What a controller refuses before it begins workers on several hosts, and when it begins one again."""

import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.simulation import Log, make_setup, space_of, write_study
from tests.unit.starts import start as make_start
from tuner.commands import all_targets
from tuner.commands.all_targets import (
    IDENTITY,
    LONG_S,
    MOST_BEGUN,
    Failed,
    Order,
    Worker,
    goes_on,
    refuse_unlike,
    supervise,
)
from tuner.errors import HostLost, RestoreFailed, TargetError, UsageError
from tuner.interrupts import signals_interrupt
from tuner.ports import FileState
from tuner.records.machines import HARDWARE
from tuner.space import SpaceFacts, load_space
from tuner.study.file import for_each_target
from tuner.testing.fakes import MemoryHost

NAMES = "ssh://root@web1, ssh://root@web2"


@pytest.fixture
def setups(tmp_path):
    """Return a function that makes the setups of two hosts, the second in some things unlike the first."""

    def make(more="", **unlike):
        settings = write_study(tmp_path, more=f"targets: [{NAMES}]\n{more}")
        first, second = (make_setup(each, space_of("sendfile")) for each in for_each_target(settings))
        return [first, replace(second, fingerprint=replace(second.fingerprint, host="web2", **unlike))]

    return make


def with_identity(setup, machine: bytes, boot: bytes):
    files = dict(zip(IDENTITY, (FileState(content=machine), FileState(content=boot)), strict=True))
    return replace(setup, host=MemoryHost(files=files))


def test_hosts_that_are_alike_may_begin(setups):
    refuse_unlike(setups())


def test_unlike_hardware_is_refused_with_what_differs_and_may_be_modelled(setups):
    with pytest.raises(UsageError, match=r"web2 is unlike .*cores was 2, is 64.*unlike_hosts: model"):
        refuse_unlike(setups(cores=64))
    refuse_unlike(setups("unlike_hosts: model\n", cores=64, kernel="9.9", memory_mib=1))


def test_other_versions_are_refused_in_any_case(setups):
    with pytest.raises(UsageError, match="servers was") as refused:
        refuse_unlike(setups("unlike_hosts: model\n", servers={"nginx": "9.9"}))
    assert "model`" not in str(refused.value)
    assert "servers" not in HARDWARE


def test_another_default_is_refused(setups):
    first, second = setups()
    facts = SpaceFacts(
        names={
            "cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096,
        },
        versions={"nginx": (1, 22, 1)},
    )  # fmt: skip
    refined = ["nginx", {"only": ["sendfile"], "parameters": {"sendfile": {"default": "false"}}}]
    other = replace(second, space=load_space(refined, facts=facts, base=Path("/")))

    with pytest.raises(UsageError, match=r"web2 has another default .*sendfile is False, there True"):
        refuse_unlike([first, other])


def test_two_names_of_one_machine_are_refused_but_not_clones(setups):
    first, second = setups()
    here = with_identity(first, b"1", b"2")

    with pytest.raises(UsageError, match=r"web1 and ssh://root@web2 are one machine"):
        refuse_unlike([here, with_identity(second, b"1", b"2")])
    refuse_unlike([here, with_identity(second, b"1", b"3")])
    refuse_unlike([here, with_identity(second, b"", b"2")])


@pytest.fixture
def ended():
    """Return a function that makes a worker whose process has ended, and whose last word was heard."""
    context = multiprocessing.get_context("spawn")

    def make(code, *, begun=1):
        process = context.Process(target=sys.exit, args=(code,))
        process.start()
        process.join()
        told, telling = context.Pipe(duplex=False)
        telling.close()
        told.close()
        failed = Failed(code=code, said="It is gone.") if code else None
        return Worker(host="ssh://web1", process=process, told=told, begun=begun, failed=failed)

    return make


def test_a_study_goes_on_while_a_lost_host_is_to_be_tried_again(ended):
    assert goes_on([ended(TargetError.exit_code), ended(HostLost.exit_code)])
    assert not goes_on([ended(TargetError.exit_code), ended(RestoreFailed.exit_code)])
    assert not goes_on([ended(TargetError.exit_code), ended(TargetError.exit_code, begun=MOST_BEGUN)])
    assert not goes_on([ended(TargetError.exit_code), ended(0)])


def test_a_host_that_boots_for_five_minutes_is_not_given_up(ended):
    progress = Log()
    for begun in range(1, MOST_BEGUN):
        lost = ended(TargetError.exit_code, begun=begun)
        all_targets._begin_again(lost, Order(path=Path(), preset=None, minutes=None, trials=None), progress)
    waits_s = [float(re.search(r"tried again in (\d+) s", note)[1]) for note in progress.notes]
    assert waits_s == sorted(waits_s)
    assert (waits_s[0], len(waits_s)) == (10, MOST_BEGUN - 1)
    assert sum(waits_s) >= 10 * 60
    assert ended(TargetError.exit_code, begun=MOST_BEGUN).is_given_up


@pytest.mark.parametrize(
    ("rates", "is_away", "lived_s", "begun"),
    [
        ((1000.0,), True, 0.0, 1),
        ((1000.0,), False, LONG_S, 1),
        # What ends it is neither a host that reboots nor something new.
        ((1000.0,), False, 0.0, MOST_BEGUN),
        ((), True, LONG_S, MOST_BEGUN),
    ],
)
def test_a_lost_host_that_was_there_again_is_tried_as_often_as_at_first(
    ended, rates, is_away, lived_s, begun
):
    worker = ended(TargetError.exit_code, begun=MOST_BEGUN)
    worker.begun_s -= lived_s
    worker.told, telling = multiprocessing.Pipe(duplex=False)
    measured = make_start(1, *rates)
    telling.send(("start_ends", (replace(measured, config=dict(measured.config)), None)))
    telling.send(Failed(code=TargetError.exit_code, said="It is gone.", is_away=is_away))
    all_targets._hear(worker, Listening())
    all_targets._hear(worker, Listening())
    assert (worker.begun, worker.is_given_up) == (begun, begun == MOST_BEGUN)
    telling.close()
    worker.told.close()


class Listening(Log):
    def start_ends(self, start, _speedup):
        self.ended.append(start)


def ignore_ctrl_c():
    """Be as what a shell without job control puts in the background, whatever these tests were started by."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def wait_until_told(_path, telling):
    ignore_ctrl_c()
    with suppress(KeyboardInterrupt), signals_interrupt():
        telling.send("ready")
        while True:
            time.sleep(0.1)  # a signal that comes just before is not lost, as before signal.pause()


def work_on(path, telling):
    ignore_ctrl_c()
    all_targets.work("ssh://web1", Order(path=path, preset=None, minutes=None, trials=None), telling)


@contextmanager
def worker_at(task, path):
    context = multiprocessing.get_context("spawn")
    told, telling = context.Pipe(duplex=False)
    process = context.Process(target=task, args=(path, telling))
    process.start()
    telling.close()
    try:
        yield Worker(host="ssh://web1", process=process, told=told)
    finally:
        process.kill()
        process.join()


def is_ended(worker):
    ending = threading.Thread(target=all_targets._end, args=([worker], Log()))
    ending.start()
    ending.join(timeout=30)
    result = not ending.is_alive()
    worker.process.kill()
    ending.join()
    return result


def test_a_frozen_worker_is_ended_with_the_others(tmp_path):
    with worker_at(wait_until_told, tmp_path) as worker:
        worker.told.recv()
        os.kill(worker.process.pid, signal.SIGSTOP)
        assert is_ended(worker)


def test_a_worker_that_still_reads_its_study_is_ended_though_ctrl_c_is_ignored(tmp_path):
    path = tmp_path / "study.yaml"
    os.mkfifo(path)
    # Opened as soon as it is read there, and nothing follows.
    with worker_at(work_on, path) as worker, path.open("wb"):
        assert is_ended(worker)
        assert worker.failed.said == "its worker was interrupted."


def test_hosts_that_are_lost_at_once_are_tried_again_until_one_is_given_up(tmp_path, monkeypatch):
    nobody_listens = [f"ssh://root@127.0.0.1:{port}" for port in (1, 2)]
    settings = write_study(tmp_path, more=f"targets: [{', '.join(nobody_listens)}]\n")
    monkeypatch.setattr(all_targets, "AGAIN_S", 0.01)
    monkeypatch.setattr(all_targets, "MOST_BEGUN", 3)
    progress = Log()
    with pytest.raises(TargetError, match=r"127\.0\.0\.1:1.*The same command goes on"):
        supervise(settings, Order(path=settings.path, preset=None, minutes=None, trials=None), progress)
    times = Counter(host for host in nobody_listens for note in progress.notes if f"{host}: " in note)
    assert max(times.values()) == 2
