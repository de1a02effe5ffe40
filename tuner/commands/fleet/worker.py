"""A worker: runs the trials of one target, which it holds as long as the controller asks for something.

Trials run in the main thread, where signals end them; the connection to the scheduler is looked after in
another one.
"""

import asyncio
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor as Pool
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from distributed import Worker
from distributed.security import Security

from tuner.campaign.prepare import Setup, prepare
from tuner.campaign.trial import Executor, TrialOutcome, TrialTask, WorkerExecutor
from tuner.commands.fleet.hosts import Identity, identify
from tuner.errors import TargetError, TunerError
from tuner.hosts.load_places import LOCAL
from tuner.interrupts import signals_interrupt
from tuner.measure.garbage_collection import short_collections
from tuner.records import Window
from tuner.study import Study

Hold = Callable[[Callable[[str], None]], AbstractContextManager[None]]
"""Holds a target; is told what is worth a warning."""
CONNECT_S = 10
"""Seconds to wait for a scheduler that does not answer yet."""
FLUSH_S = 0.02
FLUSHED_S = 5.0
"""After so long the scheduler is not told any more what came of the last task: the study begins it again."""
LEAVE_S = 60.0
"""Dask gives up a scheduler that does not answer in half of it."""
LOOK_S = 1.0
"""Between two looks whether a signal has come."""
RESOURCE = "target "


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a trial gave, with everything that its target has told since the last one."""

    measured: TrialOutcome
    windows: tuple[Window, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """What a worker says of its target."""

    setup: Setup
    identity: Identity


@dataclass(kw_only=True)
class Place:
    """Where the trials of a target run, in the process of its worker."""

    executor: Executor
    hold: Hold
    introduction: Introduction | None = None
    notes: list[str] = field(default_factory=list)
    failed: TunerError | None = None
    """Why the target cannot be used any more."""
    _held: ExitStack | None = None

    @property
    def is_held(self) -> bool:
        """Return whether the target is held."""
        return self._held is not None

    def take(self) -> None:
        """Hold the target, where it is not held already."""
        if self._held is None:
            with ExitStack() as held:
                held.enter_context(short_collections())
                held.enter_context(self.hold(self.notes.append))
                self._held = held.pop_all()

    def release(self) -> None:
        """Give the target back, where it is held. Raises RestoreFailed."""
        held, self._held = self._held, None
        if held is not None:
            held.close()


PLACES: dict[str, Place] = {}
"""Target → where its trials run, in this process."""


def run_trial(host: str, task: TrialTask) -> Answer:
    """Run a trial on a target of this process, which is given back where it is in trouble."""
    place, windows = PLACES[host], list[Window]()
    try:
        try:
            place.take()
            measured = place.executor.measure(task, windows.append)
        except TunerError:
            place.release()
            raise
    except TunerError as error:
        place.failed = error
        raise
    notes = tuple(place.notes)
    place.notes.clear()
    return Answer(measured=measured, windows=tuple(windows), notes=notes)


def introduce(host: str) -> Introduction | None:
    """Say what is to be known of a target of this process."""
    return PLACES[host].introduction


def release(host: str) -> None:
    """Give a target of this process back."""
    PLACES[host].release()


def wait_until_quiet(host: str, most_s: float) -> bool:
    """Wait until other programs leave a target of this process alone; return whether they do."""
    return PLACES[host].executor.wait_until_quiet(most_s)


def name_resource(host: str) -> str:
    """Return the resource by which trials find the worker of their target."""
    return f"{RESOURCE}{host}"


def read_resource(name: str) -> str | None:
    """Return the target that a resource stands for; None for another one."""
    return name.removeprefix(RESOURCE) if name.startswith(RESOURCE) else None


@dataclass(slots=True, kw_only=True)
class Task:
    """Something to run in the main thread, and whom to tell what came of it."""

    future: "Future[Any]"
    run: Callable[[], Any]

    def work(self) -> None:
        """Run it and tell what came of it: a result, or the error that it raised, as Dask packs them."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(self.run())


class MainThreadExecutor(Pool):
    """Takes tasks for the main thread."""

    def __init__(self) -> None:
        """Begin without any."""
        self._tasks: SimpleQueue[Task] = SimpleQueue()
        self._last: Task | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":  # noqa: ANN401 - as the base class has it
        """Take a task."""
        future: Future[Any] = Future()
        self._tasks.put(Task(future=future, run=lambda: fn(*args, **kwargs)))
        return future

    def next(self, patience_s: float | None = None) -> Task | None:
        """Return the next task; None when none came for so long."""
        until_s = math.inf if patience_s is None else time.monotonic() + patience_s
        while (left_s := until_s - time.monotonic()) > 0:
            with suppress(Empty):
                # Not at once: a signal that comes just before the wait begins is handled when it ends.
                self._last = self._tasks.get(timeout=min(left_s, LOOK_S))
                return self._last
        return None

    @property
    def has_answered(self) -> bool:
        """Return whether it is known what came of the last task."""
        return self._last is not None and self._last.future.done()

    @property
    def n_waiting(self) -> int:
        """Return how many tasks have not begun."""
        return self._tasks.qsize()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as the base class has it
        """Leave it to the main thread to end."""


def serve(setup: Setup, address: str, security: Security | None) -> None:
    """Run what the controller asks of a target until the scheduler is gone.

    The target is held from the first task on, and given back when none came for `watchdog_s`.

    Raises:
        TunerError: the target cannot be used, or was lost; the controller was told.
        KeyboardInterrupt: a signal came, or the scheduler is gone.
    """
    introduction = Introduction(setup=setup.described(), identity=identify(setup.host))
    place = Place(executor=WorkerExecutor(setup=setup), hold=setup.target.hold, introduction=introduction)
    target = setup.settings.target
    serve_place(target.host, place, address, security, patience_s=target.watchdog_s)


def serve_place(
    host: str, place: Place, address: str, security: Security | None, *, patience_s: float
) -> None:
    """Run what the controller asks of a place in the main thread; see `serve`.

    Args:
        host: name of the target.
        place: where its trials run.
        address: of the scheduler.
        security: keys of the scheduler.
        patience_s: the target is given back when nothing was asked for so long.
    """
    tasks = MainThreadExecutor()
    PLACES[host] = place
    with connected(host, address, security, tasks):
        try:
            while True:
                task = tasks.next(patience_s if place.is_held else None)
                if task is None:
                    place.release()
                else:
                    task.work()
                if place.failed is not None:
                    raise place.failed
        finally:
            place.release()


def work_for(settings: Study, address: str) -> None:
    """Run the trials of a study's target for whoever uses a scheduler. Raises as `serve` does.

    Of a study without `targets:` the host goes by its own name where it is this one.
    """
    with signals_interrupt():
        setup = prepare(settings)
        if settings.targets is None and settings.target.host == LOCAL:
            named = settings.target.model_copy(update={"host": setup.fingerprint.host})
            setup = replace(setup, settings=replace(settings, target=named))
        serve(setup, address, Security())


@contextmanager
def connected(
    host: str, address: str, security: Security | None, tasks: MainThreadExecutor
) -> Iterator[None]:
    """Stay connected to a scheduler; where it is gone, the main thread is interrupted as by a signal."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what is to be said is said in our words
    is_ending = threading.Event()
    opened: Future[tuple[Worker, asyncio.AbstractEventLoop]] = Future()

    async def stay(folder: str) -> None:
        async with Worker(
            address, name=host, nthreads=1, resources={name_resource(host): 1}, executor=tasks,
            memory_limit=0, security=security, local_directory=folder, dashboard_address="127.0.0.1:0",
            death_timeout=CONNECT_S,
        ) as worker:  # fmt: skip
            opened.set_result((worker, asyncio.get_running_loop()))
            await worker.finished()

    def run() -> None:
        try:
            with TemporaryDirectory(prefix="tuner-worker-", ignore_cleanup_errors=True) as folder:
                asyncio.run(stay(folder))
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            if not opened.done():
                opened.set_exception(error)
                return
        if not is_ending.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    with understood_address(address):
        worker, loop = opened.result()
    try:
        yield
    finally:
        is_ending.set()
        if thread.is_alive():
            asyncio.run_coroutine_threadsafe(_leave(worker, tasks), loop)
            thread.join(LEAVE_S)


async def _leave(worker: Worker, tasks: MainThreadExecutor) -> None:
    """End the connection, once the scheduler was told what came of the last task."""
    until_s = time.monotonic() + FLUSHED_S
    # Dask tells nobody. For it, a task that waits for the main thread is executed already.
    while tasks.has_answered and worker.state.executing_count > tasks.n_waiting:
        if time.monotonic() > until_s:
            break
        await asyncio.sleep(FLUSH_S)
    await worker.close()


@contextmanager
def understood_address(address: str) -> Iterator[None]:
    """Turn what is wrong with a scheduler into one clear error."""
    try:
        yield
    except (OSError, TimeoutError, ValueError, RuntimeError, TypeError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise TargetError(
            f"--scheduler: tuner cannot reach {address} ({said}). Check that the Dask scheduler runs at this "
            "address. Check that Dask's configuration on this machine names the TLS certificate, key and CA "
            "of the scheduler."
        ) from error
