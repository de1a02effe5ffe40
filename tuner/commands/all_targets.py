"""Runs a study on all of its targets from one controller: a worker for each, as a process of its own.

A worker is a whole tuner: it holds its host, journals and restores it as that of a study with one target, so
that nothing of that is new here. The controller looks at all hosts before anything begins, starts the
workers, shows what they tell, and ends them when it is to end; they end by themselves when it is killed.
"""

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path, PurePosixPath
from typing import Any

from tuner.campaign.prepare import Setup, prepare
from tuner.campaign.progress import Leader, Progress, Silence
from tuner.commands import session
from tuner.commands.session import Reading
from tuner.errors import HostLost, RestoreFailed, TargetError, TunerError, Unreachable, UsageError
from tuner.interrupts import signals_interrupt, uninterrupted
from tuner.ports import Host
from tuner.records import Role, Start
from tuner.records.machines import HARDWARE, describe_differing, find_differing
from tuner.statistics.control_level import Speedup
from tuner.study import Study, load_study
from tuner.study.file import choose_target, for_each_target
from tuner.study.lock import locked

IDENTITY = (PurePosixPath("/etc/machine-id"), PurePosixPath("/proc/sys/kernel/random/boot_id"))
"""Clones may have the same machine-id (machine-id(5)), and containers of one machine its boot."""
AGAIN_S, MOST_AGAIN_S = 10.0, 300.0
"""Before a worker is begun again whose host was lost: longer and longer."""
MOST_BEGUN = 8
"""Times that a worker is begun on a host that gives nothing; by then, after a quarter of an hour, the host is
not coming back."""
LONG_S = 600.0
"""A worker that has measured something for so long counts as the first on its host, whatever ended it."""
LOOK_S = 1.0
PRELOADED = [__name__, "scipy.optimize", "psycopg"]
"""What workers have in common: each takes a third of the memory for itself, and is there at once."""
FAULT = 5
"""Code of a worker that failed as nobody foresaw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What each worker is to do."""

    path: Path
    """The study file."""
    preset: str | None
    minutes: float | None
    trials: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """How a worker ended that has no verdict."""

    code: int
    said: str
    is_away: bool = False
    """Whether its host was lost, or itself."""


@dataclass(kw_only=True)
class Worker:
    """One process, and what was heard of it."""

    host: str
    process: ForkServerProcess
    told: Connection
    begun: int = 1
    """Times that a worker was begun on its host, since that was there last."""
    begun_s: float = field(default_factory=time.monotonic)
    """Monotonic time at which it was begun last."""
    has_measured: bool = False
    """Whether a start of it counted since then."""
    failed: Failed | None = None
    again_s: float | None = None
    """Monotonic time at which it is begun again; None while it is at work, or when it is not."""

    @property
    def is_at_work(self) -> bool:
        return self.process.is_alive()

    @property
    def is_done(self) -> bool:
        """Whether it has come to the verdict."""
        return self.process.exitcode == 0

    @property
    def is_given_up(self) -> bool:
        return self.failed is not None and self.begun >= MOST_BEGUN

    def fail(self, failed: Failed) -> None:
        """Note how it ended; a host that was there again is tried as often as at first."""
        self.failed = failed
        if self.has_measured and (failed.is_away or time.monotonic() - self.begun_s >= LONG_S):
            self.begun = 1


def run(
    settings: Study,
    *,
    preset: str | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    progress: Progress | None = None,
    with_explanation: bool = True,
) -> Reading:
    """Run a study to its end, resume it, or read it when it is finished; on all its targets at once.

    Args:
        settings: the study, from `load_study`.
        preset: quick, standard or thorough; the study file's own by default.
        minutes: wall time of the whole campaign, instead of the preset's.
        trials: search starts at the most, instead of the preset's.
        progress: told what happens.
        with_explanation: whether the summary says what each setting is worth, which takes seconds.

    Raises:
        UsageError: the study, or what belongs to it, is wrong.
        TargetError: a machine cannot run it, or another tuner is at work on it.
    """
    if settings.targets is None or settings.is_worker:
        return session.run(
            settings, preset=preset, minutes=minutes, trials=trials, progress=progress,
            with_explanation=with_explanation,
        )  # fmt: skip
    if multiprocessing.parent_process() is not None:
        raise UsageError(
            f"{settings.path}: targets: this is run while the program that runs it is imported. Put the call "
            'below `if __name__ == "__main__":`.'
        )
    if load_study(settings.path) != settings:
        raise UsageError(f"{settings.path}: several targets are measured as the file says. Write it there.")
    with locked(settings, is_shared=True), signals_interrupt():
        if not session.has_verdict(session.open_begun(settings)):
            refuse_unlike(look_at_all(settings))
            order = Order(path=settings.path, preset=preset, minutes=minutes, trials=trials)
            supervise(settings, order, progress or Silence())
    return session.read(settings, with_explanation=with_explanation)


# Before anything begins


def look_at_all(settings: Study) -> Sequence[Setup]:
    """Look at every target; one that cannot be used is refused at once, as the winner is to hold there, too.

    Raises:
        TargetError: the hosts that cannot be used, each with the reason.
    """
    setups: list[Setup] = []
    refused: list[str] = []
    for each in for_each_target(settings):
        try:
            setups.append(prepare(each))
        except TargetError as error:
            refused.append(f"{each.target.host}: {error}")
    if refused:
        raise TargetError(
            f"{settings.path}: targets: {len(refused)} of {len(refused) + len(setups)} hosts cannot be used, "
            f"and nothing was begun. {' '.join(refused)} Put that right, or leave the host out of `targets:`."
        )
    return setups


def refuse_unlike(setups: Sequence[Setup]) -> None:
    """Raise UsageError where two targets are one machine, or unlike in what has to be the same."""
    first, *others = setups
    _refuse_one_machine(setups)
    targets = first.settings.targets
    models_unlike = targets is not None and targets.models_unlike
    for other in others:
        free = {"host", *(HARDWARE if models_unlike else ())}
        found = find_differing(first.fingerprint, other.fingerprint, free=free)
        if found:
            can_model = " or write `unlike_hosts: model`," if found.keys() <= HARDWARE else ""
            raise UsageError(
                f"{first.settings.path}: targets: {other.settings.target.host} is unlike "
                f"{first.settings.target.host} ({describe_differing(found)}). Take hosts that are alike,"
                f"{can_model} or tune each in a study of its own."
            )
        session.refuse_other_default(other, first.space)


def _refuse_one_machine(setups: Sequence[Setup]) -> None:
    known: dict[tuple[bytes, ...], str] = {}
    for setup in setups:
        name, identity = setup.settings.target.host, _identify(setup.host)
        if identity in known:
            raise UsageError(
                f"{setup.settings.path}: targets: {known[identity]} and {name} are one machine (the same "
                "machine-id and boot). Name each host once."
            )
        if all(identity):
            known[identity] = name


def _identify(host: Host) -> tuple[bytes, ...]:
    """Return what no two machines have in common; something is empty where a host does not say."""
    look = host.look(IDENTITY)
    return tuple((look.read(path).content or b"").strip() for path in IDENTITY)


# The workers


def supervise(settings: Study, order: Order, progress: Progress) -> None:
    """Keep a worker at work on every target until all have ended.

    One that loses its host is begun again there, until the host is given up. What is wrong with the study,
    or was not put back, ends all of them.

    Raises:
        TargetError: they ended without a verdict.
        UsageError: the study is wrong.
        RestoreFailed: originals of a host could not be put back.
    """
    hosts = settings.targets.hosts if settings.targets is not None else ()
    workers = [_begin(host, order) for host in hosts]
    try:
        while goes_on(workers):
            _listen(workers, progress)
            for each in workers:
                if _is_lost(each) and not _is_over(workers):
                    _begin_again(each, order, progress)
    finally:
        with uninterrupted():
            _end(workers, progress)
    _raise_failure(settings, workers)


def goes_on(workers: Sequence[Worker]) -> bool:
    """Return whether a worker is at work or will be, and nothing is wrong that ends all of them."""
    if any(each.failed and each.failed.code != TargetError.exit_code for each in workers):
        return False
    will_be = not _is_over(workers) and any(map(_is_lost, workers))
    return will_be or any(each.is_at_work or not each.told.closed for each in workers)


def _is_over(workers: Sequence[Worker]) -> bool:
    """Return whether nobody is begun again: one has the verdict, or a host is given up, so that none will."""
    return any(each.is_done or each.is_given_up for each in workers)


def _is_lost(worker: Worker) -> bool:
    """Return whether a worker has ended without a verdict, all that it told being heard."""
    return worker.told.closed and not worker.is_at_work and not worker.is_done


def _begin(host: str, order: Order) -> Worker:
    """Begin a worker: a fork of a process that has loaded what they need, and shares it with all of them.

    The controller itself may have threads, and is not forked.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    told, telling = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(host, order, telling), name=f"tuner on {host}")
    process.start()
    telling.close()
    return Worker(host=host, process=process, told=told)


def _listen(workers: Sequence[Worker], progress: Progress) -> None:
    """Pass on what workers tell until nothing comes for a while, or one has ended."""
    open_ones = {each.told: each for each in workers if not each.told.closed}
    ready = wait([*open_ones, *(each.process.sentinel for each in workers if each.is_at_work)], LOOK_S)
    for one in ready:
        if isinstance(one, Connection):
            _hear(open_ones[one], progress)


def _hear(worker: Worker, progress: Progress) -> None:
    try:
        message = worker.told.recv()
    except (EOFError, OSError):
        worker.told.close()
        return
    if isinstance(message, Failed):
        worker.fail(message)
        return
    name, arguments = message
    if name == "start_ends" and arguments[0].counts:
        worker.has_measured = True
    getattr(progress, name)(*arguments)


def _begin_again(worker: Worker, order: Order, progress: Progress) -> None:
    """Begin a worker again whose host was lost, after a while."""
    if worker.failed is None:
        said = f"its worker was killed ({worker.process.exitcode})."
        worker.fail(Failed(code=TargetError.exit_code, said=said, is_away=True))
    if worker.failed is None or worker.failed.code != TargetError.exit_code or worker.is_given_up:
        return
    now_s = time.monotonic()
    if worker.again_s is None:
        wait_s = min(MOST_AGAIN_S, AGAIN_S * 2 ** (worker.begun - 1))
        worker.again_s = now_s + wait_s
        said = worker.failed.said.removeprefix(f"{worker.host}: ")
        progress.note(f"{worker.host}: {said} It is tried again in {wait_s:.0f} s")
    elif now_s >= worker.again_s:
        anew = _begin(worker.host, order)
        worker.process, worker.told, worker.begun_s = anew.process, anew.told, anew.begun_s
        worker.has_measured = False
        worker.begun, worker.failed, worker.again_s = worker.begun + 1, None, None


def _end(workers: Sequence[Worker], progress: Progress) -> None:
    """Ask the workers to end, and wait until each has given its host back."""
    for each in workers:
        if each.is_at_work and each.process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(each.process.pid, signal.SIGINT)
                os.kill(each.process.pid, signal.SIGCONT)  # one that was frozen has a host to give back, too
    for each in workers:
        while not each.told.closed:
            _hear(each, progress)
        each.process.join()


def _raise_failure(settings: Study, workers: Sequence[Worker]) -> None:
    """Raise what is most to be told of workers that ended without a verdict; nothing where there is one."""
    failed = {each.host: each.failed for each in workers if each.failed is not None}
    faults = [each.said for each in failed.values() if each.code == FAULT]
    if faults:
        raise RuntimeError(faults[0])
    for kind in (RestoreFailed, UsageError):
        said = [f"{host}: {each.said}" for host, each in failed.items() if each.code == kind.exit_code]
        if said:
            raise kind(" ".join(said))
    if failed and not session.has_verdict(session.open_begun(settings)):
        said = [f"{host}: {each.said}" for host, each in failed.items()]
        raise TargetError(f"{' '.join(said)} The same command goes on.")


# In the process of a worker


def work(host: str, order: Order, telling: Connection) -> None:
    """Measure a study on one of its targets, as a process of its own."""
    # Ctrl-C in the terminal is for the controller alone, which passes it on once.
    os.setsid()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        # From here on: where Ctrl-C is ignored, it would not hear that it is to end before it measures.
        with signals_interrupt():
            settings = choose_target(load_study(order.path), host)
            session.run(
                settings, preset=order.preset, minutes=order.minutes, trials=order.trials,
                progress=Telling(host, telling), with_explanation=False,
            )  # fmt: skip
    except TunerError as error:
        is_away = isinstance(error, Unreachable | HostLost)
        telling.send(Failed(code=error.exit_code, said=str(error), is_away=is_away))
        raise SystemExit(error.exit_code) from error
    except KeyboardInterrupt as interrupt:
        telling.send(Failed(code=TargetError.exit_code, said="its worker was interrupted."))
        raise SystemExit(TargetError.exit_code) from interrupt
    except Exception as error:  # a fault is told by the controller, which ends the other workers
        telling.send(Failed(code=FAULT, said=traceback.format_exc()))
        raise SystemExit(FAULT) from error


def _end_with_parent() -> None:
    """Give the host back and end when the controller has ended, however it did."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


class Telling:
    """Tells the controller what happens on one host."""

    def __init__(self, host: str, told: Connection) -> None:
        self._host = host
        self._told = told
        self._begins: tuple[Role, str] | None = None

    def stage(self, name: str, done: int, total: int) -> None:
        self._tell("stage", name, done, total)

    def start_begins(self, role: Role, label: str) -> None:
        self._begins = role, f"{self._host}: {label or role.value}"
        self._tell("start_begins", *self._begins)

    def start_ends(self, start: Start, speedup: Speedup | None) -> None:
        # Once more: others may have begun theirs meanwhile.
        self._tell("start_begins", *(self._begins or (start.role, self._host)))
        self._tell("start_ends", replace(start, config=dict(start.config)), speedup)

    def leaders(self, leaders: Sequence[Leader]) -> None:
        self._tell("leaders", [*leaders])

    def note(self, text: str) -> None:
        self._tell("note", f"{self._host}: {text.removeprefix(f'{self._host}: ')}")

    def time_left(self, seconds: float) -> None:
        self._tell("time_left", seconds)

    def _tell(self, name: str, *arguments: Any) -> None:  # noqa: ANN401 - those of a method of Progress
        # A controller that is gone hears nothing; that this one ends with it is seen to elsewhere.
        with suppress(OSError):
            self._told.send((name, arguments))
