"""How many starts an hour do 1, 2, 4 … workers make on one study? `make bench-fleet` counts them.

Each worker is a process of its own with a simulated host, whose starts take as long as real ones of a preset:
what is measured is deciding and storing, not two cores that serve sixteen servers. PostgreSQL is a private
instance. Counted is what ends in a window that begins when every worker measures.

    python -m benchmarks.fleet.scaling --preset standard --workers 1,8,32 [--seconds 120] [--there 1000]

`--there` writes so many starts into the study before anybody begins.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import fmean, quantiles

from benchmarks.campaign.host import DrawnHost
from benchmarks.campaign.play import Arm, set_up
from benchmarks.campaign.servers import draw_server
from benchmarks.fleet.history import write_history
from tests.integration.work_simulated import FastClock
from tests.testbed.database import Postgres, open_postgres
from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import SimulatedClock
from tuner.campaign.campaign import run_campaign
from tuner.campaign.experiment import Experiment
from tuner.campaign.start_runner import name_session
from tuner.commands.session import name_worker
from tuner.optimize.optimizer import Observation, Optimizer, Suggestion
from tuner.records import Role, Start, State
from tuner.space import Dimension
from tuner.study import Study
from tuner.study.open_storage import open_storage
from tuner.study.presets import PRESETS, Plan
from tuner.study.storage import Storage

TICKS = os.sysconf("SC_CLK_TCK")
STUDY = "fleet"
SERVER = 3
"""Number of the drawn server that all hosts have."""
ARM = Arm(name="fleet", knows_presets=False)
PATIENCE_S = 600.0
SEARCHED = {Role.SEARCH, Role.REPEAT}


@dataclass(frozen=True, kw_only=True)
class Result:
    """What some workers did in the window."""

    workers: int
    per_hour: float
    start_s: float
    """Mean length of a start."""
    between_s: float
    """Mean time from the end of a worker's start to the beginning of its next, waits included."""
    most_between_s: float
    """What that is at most in nine of ten."""
    suggest_s: float
    """Mean time that it took to choose a configuration."""
    worker_s: float
    """CPU seconds of a worker for each start."""
    database_cores: float
    """CPU seconds of all processes of the database per second."""


def main() -> None:
    """Measure each number of workers, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", default="1,2,4,8,16,32,64", help="numbers of workers")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the window")
    parser.add_argument("--preset", default="quick", choices=PRESETS)
    parser.add_argument("--there", type=int, default=0, help="starts that the study has before")
    options = parser.parse_args()
    print(
        "| workers | starts/hour | of linear | seconds of a start | between two | in 9 of 10 | to choose "
        "| worker, CPU s/start | database, cores |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    single = 0.0
    for count in map(int, options.workers.split(",")):
        with open_postgres() as postgres:
            found = measure(postgres, count, options.seconds, options.preset, there=options.there)
        single = single or found.per_hour / found.workers
        print(
            f"| {found.workers} | {found.per_hour:,.0f} | {found.per_hour / found.workers / single:.2f} "
            f"| {found.start_s:.2f} | {found.between_s:.2f} | {found.most_between_s:.2f} "
            f"| {found.suggest_s:.2f} | {found.worker_s:.2f} | {found.database_cores:.3f} |",
            flush=True,
        )


def measure(postgres: Postgres, count: int, seconds: float, preset: str, *, there: int) -> Result:
    """Let so many workers measure one study for a while."""
    plan = replace(PRESETS[preset], trials=100_000, minutes=1e6)
    with tempfile.TemporaryDirectory() as folder:
        with join(postgres, Path(folder), plan, "web0") as experiment:
            write_history(experiment, draw_server(SERVER), there, hosts=count)
        with join(postgres, Path(folder), plan, "web0") as experiment:
            # What every worker has computed that was at work for long; they are forks of this process.
            experiment.ranking()
        workers = [begin(postgres, Path(folder), plan, f"web{number}") for number in range(count)]
        storage = open_storage(postgres.url, STUDY)
        try:
            wait_until_all_search(storage, count, workers, there)
            began_s, before_s, worked_s = now_s(), database_cpu_s(postgres), worker_cpu_s(workers)
            time.sleep(seconds)
            ended_s, spent_s = now_s(), database_cpu_s(postgres) - before_s
            worked_s = worker_cpu_s(workers) - worked_s
        finally:
            for worker in workers:
                worker.kill()
                worker.join()
    return summarise(storage.starts(), count, began_s, ended_s, spent_s, worked_s)


@contextmanager
def join(postgres: Postgres, folder: Path, plan: Plan, name: str) -> Iterator[Experiment]:
    """Take part in the study as the worker of a host."""

    def open_shared(_settings: Study, clock: SimulatedClock) -> Storage:
        storage = open_storage(postgres.url, STUDY, clock=clock)
        storage.join(host=name, worker=name_worker(), patience_s=PATIENCE_S)
        stack.enter_context(storage.at_work())
        storage.claim(replace(FINGERPRINT, host=name), definition={"study": STUDY})
        return storage

    server = draw_server(SERVER)
    host = DrawnHost(server=server, seed=sum(name.encode()), suggest_s=0.0, clock=FastClock(1.0))
    own = folder / name
    own.mkdir(exist_ok=True)
    with ExitStack() as stack:
        experiment = set_up(server, ARM, host, own, plan=plan, open_empty=open_shared)
        experiment.starter.session = name_session(name)
        experiment.optimizer = Tireless(experiment.optimizer)
        yield experiment


def work(postgres: Postgres, folder: Path, plan: Plan, name: str) -> None:
    """Measure until somebody ends the process."""
    with join(postgres, folder, plan, name) as experiment:
        run_campaign(experiment)


class Tireless:
    """Suggests as another optimizer does, and keeps to itself when there is nothing left to gain."""

    def __init__(self, optimizer: Optimizer) -> None:
        """Take the other one."""
        self._optimizer = optimizer

    def suggest(
        self,
        dimensions: Sequence[Dimension],
        observations: Sequence[Observation],
        *,
        seed: int,
        refused: int = 0,
    ) -> Suggestion:
        """Return a point; see `Optimizer`."""
        found = self._optimizer.suggest(dimensions, observations, seed=seed, refused=refused)
        return replace(found, expected_gain=None)


def begin(postgres: Postgres, folder: Path, plan: Plan, name: str) -> BaseProcess:
    """Start a worker; by fork, as 64 processes that import everything would take minutes."""
    worker = multiprocessing.get_context("fork").Process(target=work, args=(postgres, folder, plan, name))
    worker.start()
    return worker


def now_s() -> float:
    """Return the time by which the workers stamp their starts."""
    return FastClock(1.0).time()


def wait_until_all_search(storage: Storage, count: int, workers: Sequence[BaseProcess], there: int) -> None:
    """Wait until each host has ended a configuration."""
    while len(find_searching(storage.starts()[there:])) < count:
        if not all(worker.is_alive() for worker in workers):
            sys.exit("a worker has ended")
        time.sleep(2.0)


def find_searching(starts: Sequence[Start]) -> set[str]:
    """Return the hosts on which a configuration was tried."""
    return {start.host for start in starts if start.role in SEARCHED and start.state is not State.RUNNING}


def read_cpu_s(process: int) -> tuple[int, float, float]:
    """Return a process's parent, and the CPU seconds of it alone and with its ended children (proc(5))."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:13])) / TICKS, sum(map(int, fields[11:15])) / TICKS


def worker_cpu_s(workers: Sequence[BaseProcess]) -> float:
    """Return the CPU seconds of all workers so far."""
    return sum(read_cpu_s(worker.pid)[1] for worker in workers if worker.pid is not None)


def database_cpu_s(postgres: Postgres) -> float:
    """Return the CPU seconds of the server and of all its processes, those that ended included."""
    spent = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent, own_s, with_ended_s = read_cpu_s(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(folder.name) == postgres.pid:
            spent += with_ended_s
        elif parent == postgres.pid:
            spent += own_s
    return spent


def summarise(
    starts: tuple[Start, ...], count: int, began_s: float, ended_s: float, spent_s: float, worked_s: float
) -> Result:
    """Return what ended in the window."""
    ended = [start for start in starts if start.state is not State.RUNNING]
    inside = [start for start in ended if began_s <= end_of(start) <= ended_s]
    gaps = [
        later.started_s - end_of(start)
        for host in {start.host for start in starts}
        for start, later in pairwise([each for each in starts if each.host == host])
        if start.state is not State.RUNNING and began_s <= end_of(start) and later.started_s <= ended_s
    ]
    chosen = [start.timing.suggest_s for start in inside if start.role is Role.SEARCH]
    seconds = ended_s - began_s
    start_s, between_s = fmean(map(took_s, inside)), fmean(gaps)
    return Result(
        workers=count,
        # Of what one worker ends in a window, the count would tell little.
        per_hour=3600 * count / (start_s + between_s),
        start_s=start_s,
        between_s=between_s,
        most_between_s=quantiles(gaps, n=10)[-1],
        suggest_s=fmean(chosen),
        worker_s=worked_s / len(inside),
        database_cores=spent_s / seconds,
    )


def end_of(start: Start) -> float:
    """Return when a start had ended."""
    return start.started_s + took_s(start)


def took_s(start: Start) -> float:
    """Return the seconds that a start took."""
    return start.timing.deploy_s + start.timing.load_s


if __name__ == "__main__":
    main()
