"""The worker of a target as a process on the controller's machine."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess

from distributed.security import Security

from tuner.campaign.prepare import prepare
from tuner.commands.fleet.worker import serve
from tuner.errors import HostLost, RestoreFailed, TunerError, Unreachable
from tuner.interrupts import signals_interrupt
from tuner.study import Study

PRELOADED = [__name__, "scipy.optimize"]
"""What workers have in common: each takes a third of the memory for itself, and is there at once."""

END_S = 300.0
"""A slow host is restored, and the connection to it closed, in far less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerProcess:
    """A worker that the controller has begun."""

    host: str
    process: ForkServerProcess
    told: Connection

    def check(self) -> None:
        """Raise what has ended it."""
        if not self.process.is_alive():
            raise self._last_word() or Unreachable(
                f"{self.host}: tuner's own worker for this host ended unexpectedly "
                f"(exit code {self.process.exitcode})."
            )

    def end(self) -> None:
        """Let it give its host back, and end it. Raises RestoreFailed where it could not."""
        if self.process.is_alive() and self.process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGTERM)  # never ignored, as SIGINT is in the background
                os.kill(self.process.pid, signal.SIGCONT)  # a frozen one has a host to give back, too
        self.process.join(END_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
            raise RestoreFailed(
                f"{self.host}: the worker of this host did not end within {END_S:g} s, and tuner killed it. "
                "The watchdog on the host restores its settings. To restore them now, run `tuner restore` "
                "for this host."
            )
        error = self._last_word()
        if isinstance(error, RestoreFailed) and not isinstance(error, HostLost):
            raise error

    def _last_word(self) -> TunerError | None:
        with suppress(EOFError, OSError):
            if self.told.poll():
                error = self.told.recv()
                return error if isinstance(error, TunerError) else None
        return None


Work = Callable[[Study, str, Security | None, Connection], None]


@contextmanager
def worker_process(
    settings: Study, address: str, security: Security | None, *, work: Work | None = None
) -> Iterator[WorkerProcess]:
    """Begin a worker for a target; it ends with the block.

    It is a fork of a process that has loaded what workers need, and shares it with all of them. The
    controller itself has threads, and is not forked.

    Args:
        settings: the study, with the target.
        address: of the scheduler.
        security: keys of the scheduler.
        work: what the process does, instead of `work_here`.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    told, telling = context.Pipe(duplex=False)
    host = settings.target.host
    process = context.Process(
        target=work or work_here, args=(settings, address, security, telling), name=f"tuner on {host}"
    )
    process.start()
    telling.close()
    worker = WorkerProcess(host=host, process=process, told=told)
    try:
        yield worker
    finally:
        try:
            worker.end()
        finally:
            told.close()


def work_here(settings: Study, address: str, security: Security | None, telling: Connection) -> None:
    """Run the trials of one target, as a process of its own."""
    # Ctrl-C in the terminal is for the controller alone, which passes it on once.
    os.setsid()
    try:
        # From here on: where Ctrl-C is ignored, it would not hear that it is to end before it measures.
        with signals_interrupt():
            serve(prepare(settings), address, security)
    except TunerError as error:
        telling.send(error)
        raise SystemExit(error.exit_code) from error
    except KeyboardInterrupt:
        pass
