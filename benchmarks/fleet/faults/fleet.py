"""A study on a private PostgreSQL whose workers are processes, begun again when they end too early."""

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from sqlalchemy import text

from benchmarks.fleet.faults.worker import work_as_process
from tests.integration.private_machine import PrivateHost, private_machine
from tests.testbed.database import Postgres, open_postgres
from tests.unit.simulation import write_study
from tuner.records import Role
from tuner.study import Study, load_study
from tuner.study.open_storage import open_storage
from tuner.study.storage import Storage

PROCESSES = get_context("forkserver")
"""Of one process that has imported all, since a worker is begun again after every fault."""
PROCESSES.set_forkserver_preload(["benchmarks.fleet.faults.worker"])
SPEED = 20
"""Simulated seconds that pass in a real one."""
HAS_TURN = """
SELECT count(*) FROM pg_locks turn JOIN pg_locks host USING (pid)
WHERE turn.locktype = 'advisory' AND turn.granted AND host.locktype = 'advisory' AND host.granted
AND (turn.classid::bigint << 32) | turn.objid::bigint = hashtextextended(:turn, 0)
AND (host.classid::bigint << 32) | host.objid::bigint = hashtextextended(:host, 0)
"""


@dataclass(kw_only=True)
class Worker:
    """The worker of one host, and the machine that it holds."""

    host: str
    machine: PrivateHost
    before: str
    """All that has to be there again in the end."""
    journal: Path
    said: Path
    """What its processes said, one after the other."""
    offset_s: float = 0.0
    """By which the clock of its next process is wrong."""
    process: BaseProcess | None = None
    begun: int = 0
    """Processes so far."""

    def begin(self, settings: Study) -> None:
        self.process = PROCESSES.Process(
            target=work_as_process,
            args=(
                settings.path,
                self.host,
                SPEED,
                self.offset_s,
                self.machine.first_pid,
                self.journal,
                self.said,
            ),
        )
        self.process.start()
        self.begun += 1

    def signal(self, number: signal.Signals) -> None:
        """Signal the process, if it has not ended."""
        if self.process is not None and self.process.is_alive():
            os.kill(self.process.pid or 0, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.join()


@dataclass(kw_only=True)
class Fleet:
    """One study, its database and its workers."""

    postgres: Postgres
    settings: Study
    storage: Storage
    workers: list[Worker] = field(default_factory=list)

    def tend(self) -> bool:
        """Begin again who has ended too early, as a service manager does; return whether any is at work."""
        ended = [each.process.exitcode if each.process is not None else 1 for each in self.workers]
        for worker, status in zip(self.workers, ended, strict=True):
            if status not in {None, 0}:
                worker.begin(self.settings)
        return any(status != 0 for status in ended)

    def open_again(self) -> None:
        """Open the study as it is by now: who came before anything was measured began it anew."""
        self.close()
        self.storage = open_storage(self.settings.storage_url, self.settings.name, create=False)

    def close(self) -> None:
        """Leave the database."""
        self.storage._storage.engine.dispose()  # type: ignore[attr-defined]  # noqa: SLF001 - Optuna has no other way

    def count_starts(self) -> int:
        """Return how many starts were begun, by what the workers said."""
        roles = {*Role}
        return sum(line in roles for each in self.workers for line in each.said.read_text().splitlines())

    def has_turn(self, worker: Worker) -> bool:
        """Return whether a worker is the one who decides just now."""
        of_study = f"tuner/{self.settings.name}"
        keys = {"turn": f"{of_study}/turn", "host": f"{of_study}/host {worker.host}"}
        with self.storage._storage.engine.connect() as connection:  # type: ignore[attr-defined]  # noqa: SLF001
            return bool(connection.execute(text(HAS_TURN), keys).scalar_one())


@contextmanager
def open_fleet(seed: int, *, hosts: int, trials: int, watchdog_s: int = 5) -> Iterator[Fleet]:
    """Begin a study with a worker for each host; all ends with it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-")))
        postgres = stack.enter_context(open_postgres())
        more = f"storage: {postgres.url}\ntarget: {{watchdog_s: {watchdog_s}}}\n"
        written = write_study(folder, seed=seed, optimizer="noisy-gp", more=more)
        told = written.path.read_text().replace("{preset: quick}", f"{{preset: quick, trials: {trials}}}")
        written.path.write_text(told)
        settings = load_study(written.path)
        storage = open_storage(settings.storage_url, settings.name)
        fleet = Fleet(postgres=postgres, settings=settings, storage=storage)
        stack.callback(fleet.close)
        for number in range(hosts):
            machine = stack.enter_context(private_machine())
            name = f"web{number}"
            said = folder / f"{name}.txt"
            said.touch()
            worker = Worker(
                host=name, machine=machine, before=machine.everything(), journal=folder / name, said=said
            )
            fleet.workers.append(worker)
            stack.callback(worker.kill)
            worker.begin(settings)
        yield fleet
