"""Studies on several simulated hosts: a real scheduler, and processes that are killed and frozen."""

import os
import signal
from collections import Counter
from contextlib import ExitStack

import pytest

from tests.integration.shared_study import PATIENCE_S, Controller, assert_whole
from tests.integration.simulated_fleet import HELD, Simulated
from tests.integration.waiting import is_running, wait_until
from tests.unit.simulation import Log, write_study
from tuner.campaign.turn import Turn
from tuner.commands.fleet.control import Request, control_there
from tuner.commands.fleet.engine import RemoteExecutor, open_engine
from tuner.commands.fleet.process import worker_process
from tuner.commands.fleet.worker import MainThreadExecutor, connected, name_resource
from tuner.errors import Unreachable
from tuner.records import Role, State
from tuner.study import load_study
from tuner.study.facts import OTHER_HOSTS, VERDICT
from tuner.study.file import choose_target
from tuner.study.open_storage import open_storage

HOSTS = ("ssh://web0", "ssh://web1", "ssh://web2")


@pytest.fixture
def settings(tmp_path):
    """A study whose winner is to hold on three hosts."""
    entries = ", ".join(f"{{host: '{name}', watchdog_s: 6}}" for name in HOSTS)
    written = write_study(tmp_path, more=f"targets: [{entries}]\n")
    text = written.path.read_text()
    written.path.write_text(text.replace("budget: {preset: quick}", "budget: {preset: quick, trials: 4}"))
    return load_study(written.path)


@pytest.fixture
def control(settings):
    controllers: list[Controller] = []

    def begin() -> Controller:
        controllers.append(Controller(settings))
        return controllers[-1]

    yield begin
    for each in controllers:
        each.end()


class Joining(Log):
    """Lets another worker come when the first one searches."""

    def __init__(self, join):
        super().__init__()
        self._join = join

    def stage(self, name, done, total):
        super().stage(name, done, total)
        if name == "search" and self._join is not None:
            self._join()
            self._join = None


def test_a_pool_measures_on_every_host_that_has_a_worker_and_takes_one_that_comes_later(tmp_path):
    settings = write_study(tmp_path, more="target: {watchdog_s: 30}\n")
    plan = {"preset": "quick", "trials": 6}
    with ExitStack() as stack:
        engine = stack.enter_context(open_engine(30.0))

        def join(host):
            chosen = choose_target(settings, host)
            there = worker_process(chosen, engine.address, engine.security, work=Simulated(60.0))
            stack.enter_context(there)

        join(HOSTS[0])
        request = Request(settings=settings, progress=Joining(lambda: join(HOSTS[1])), **plan)
        settings.folder.mkdir()
        control_there(request, engine)

    storage = read(settings)
    assert storage.recall(VERDICT) is not None
    assert_whole(storage)
    assert {trial.host for trial in storage.trials() if trial.counts} == set(HOSTS[:2])
    assert [*storage.recall(OTHER_HOSTS)] == [HOSTS[1]]


def test_several_schedulers_run_beside_each_other():
    with open_engine(30.0) as one, open_engine(30.0) as other:
        assert one.address != other.address


def test_a_worker_leaves_though_its_next_task_has_come():
    tasks, where = MainThreadExecutor(), {name_resource(HOSTS[0]): 1}
    with open_engine(30.0) as engine, connected(HOSTS[0], engine.address, engine.security, tasks):
        first = engine.client.submit(str, 1, resources=where, pure=False)
        tasks.next().work()
        assert first.result(timeout=PATIENCE_S) == "1"
        second = engine.client.submit(str, 2, resources=where, pure=False)
        wait_until(lambda: tasks.n_waiting == 1, patience_s=PATIENCE_S)
    assert tasks.n_waiting == 1, second


def read(settings):
    return open_storage(settings.storage_url, settings.name, create=False)


def await_held(controller, host):
    wait_until(lambda: controller.find_workers(host), patience_s=PATIENCE_S)
    return controller.find_workers(host)[0]


def assert_proven(settings, verdict):
    storage = read(settings)
    assert verdict == storage.recall(VERDICT) == "confirmed"
    assert_whole(storage)
    confirming = [trial for trial in storage.trials() if trial.role is Role.CONFIRM and trial.counts]
    sides = Counter((trial.host, trial.block, trial.session) for trial in confirming)
    pairs = Counter(host for (host, *_), number in sides.items() if number == 2)  # one cut off leaves a side
    assert pairs == dict.fromkeys(HOSTS, 4)


def test_one_winner_is_proven_on_every_host_and_all_are_given_back(settings, control):
    assert_proven(settings, control().wait())
    assert not [*(settings.folder / HELD).iterdir()]


@pytest.mark.more
def test_a_worker_that_is_frozen_between_two_trials_is_lost(settings):
    target = choose_target(settings, HOSTS[0])
    with (
        open_engine(2.0) as engine,
        worker_process(target, engine.address, engine.security, work=Simulated(20.0)) as worker,
    ):
        check = engine.watch_own(HOSTS[0], worker.check)
        wait_until(lambda: HOSTS[0] in engine.find_hosts(), patience_s=PATIENCE_S)
        check()
        executor = RemoteExecutor(
            host=HOSTS[0], client=engine.client, turn=Turn(), check=check, note=lambda _: None
        )
        os.kill(worker.process.pid, signal.SIGSTOP)
        wait_until(lambda: HOSTS[0] not in engine.find_hosts(), patience_s=PATIENCE_S)
        gone = pytest.raises(
            Unreachable, match="ssh://web0: the worker of this host does not answer any more"
        )
        with gone, executor.turn.taken():
            executor.wait_until_quiet(1.0)
    assert worker.process.exitcode == 0, "it was continued, and has ended by itself"


@pytest.mark.more
def test_a_worker_that_is_killed_and_one_that_is_frozen_come_back_and_nothing_finished_is_lost(
    settings, control
):
    controller = control()
    os.kill(await_held(controller, HOSTS[0]), signal.SIGKILL)
    os.kill(await_held(controller, HOSTS[1]), signal.SIGSTOP)
    assert_proven(settings, controller.wait())
    lost = [trial for trial in read(settings).trials() if trial.state is State.INVALID]
    assert {trial.host for trial in lost} <= set(HOSTS[:2])
    assert lost


@pytest.mark.more
def test_a_controller_that_is_killed_resumes_when_it_is_run_again(settings, control):
    first = control()
    pids = [await_held(first, host) for host in HOSTS]
    first.signal(signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, pids)), patience_s=PATIENCE_S)
    assert not [*(settings.folder / HELD).iterdir()], "its workers have given their hosts back"
    done = [trial for trial in read(settings).trials() if trial.counts]

    assert_proven(settings, control().wait())
    assert {each.number for each in done} <= {each.number for each in read(settings).trials() if each.counts}


@pytest.mark.more
def test_a_controller_that_is_frozen_resumes_and_its_hosts_are_given_back_meanwhile(settings, control):
    controller = control()
    await_held(controller, HOSTS[0])
    controller.signal(signal.SIGSTOP)
    wait_until(lambda: not [*(settings.folder / HELD).iterdir()], patience_s=PATIENCE_S)
    controller.signal(signal.SIGCONT)
    assert_proven(settings, controller.wait())


@pytest.mark.more
def test_ctrl_c_ends_all_workers_and_gives_their_hosts_back(settings, control):
    controller = control()
    pids = [await_held(controller, host) for host in HOSTS]
    controller.signal(signal.SIGINT)
    controller.process.wait(timeout=PATIENCE_S)
    assert not any(map(is_running, pids))
    assert not [*(settings.folder / HELD).iterdir()]
