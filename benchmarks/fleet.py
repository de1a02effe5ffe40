"""How many starts an hour do 1, 2, 4 … workers make on one study? `make bench-fleet` counts them.

Each worker is a process of its own with a simulated host, whose starts take as long as real ones of the quick
preset: what is measured is deciding and storing, not two cores that serve sixteen servers. PostgreSQL is a
private instance. Counted is what ends in a window that begins when every worker measures.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.testbed.database import Postgres, open_postgres
from tests.unit.simulation import write_study
from tuner.records import Role, Start, State
from tuner.study import Study, load_study
from tuner.study.storage import Storage, open_storage

ROOT = Path(__file__).parents[1]
TICKS = os.sysconf("SC_CLK_TCK")
EPOCH_S = 1_767_225_600.0
"""Of the simulated clock (tests/integration/work_simulated.py); it runs as fast as the real one here."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What some workers did in the window."""

    workers: int
    per_hour: float
    start_s: float
    """Mean length of a start."""
    decide_s: float
    """Mean time from the end of a worker's start to the beginning of its next, waits included."""
    database_cores: float
    """CPU seconds of all processes of the database per second."""


def main() -> None:
    """Measure each number of workers, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", default="1,2,4,8,16", help="numbers of workers")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the window")
    parser.add_argument("--optimizer", default="noisy-gp")
    options = parser.parse_args()
    print("| workers | starts/hour | of linear | seconds of a start | between two | database, cores |")
    print("|---:|---:|---:|---:|---:|---:|")
    single = 0.0
    for count in map(int, options.workers.split(",")):
        with open_postgres() as postgres:
            found = measure(postgres, count, options.seconds, options.optimizer)
        single = single or found.per_hour / found.workers
        print(
            f"| {found.workers} | {found.per_hour:,.0f} | {found.per_hour / found.workers / single:.2f} "
            f"| {found.start_s:.2f} | {found.decide_s:.2f} | {found.database_cores:.3f} |",
            flush=True,
        )


def measure(postgres: Postgres, count: int, seconds: float, optimizer: str) -> Result:
    """Let so many workers measure one study for a while."""
    with tempfile.TemporaryDirectory() as folder:
        settings = make_study(Path(folder), postgres, optimizer)
        storage = open_storage(settings.storage_url, settings.name)
        command = (sys.executable, "-m", "tests.integration.work_simulated", settings.path)
        workers = [
            subprocess.Popen((*command, f"web{number}", "1"), cwd=ROOT, stdout=subprocess.DEVNULL)
            for number in range(count)
        ]
        try:
            wait_until_all_search(storage, count)
            began_s, before_s = now_s(), database_cpu_s(postgres)
            time.sleep(seconds)
            ended_s, spent_s = now_s(), database_cpu_s(postgres) - before_s
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        return summarise(storage.starts(), count, began_s, ended_s, spent_s)


def make_study(folder: Path, postgres: Postgres, optimizer: str) -> Study:
    """Write a study that does not end within the window."""
    written = write_study(folder, optimizer=optimizer, more=f"storage: {postgres.url}\n")
    text = written.path.read_text().replace("{preset: quick}", "{preset: quick, trials: 5000}")
    written.path.write_text(text)
    return load_study(written.path)


def now_s() -> float:
    """Return the time by which the workers stamp their starts."""
    return EPOCH_S + time.monotonic()


def wait_until_all_search(storage: Storage, count: int) -> None:
    """Wait until each host has tried a configuration."""
    while len({start.host for start in storage.starts() if start.role is Role.SEARCH}) < count:
        time.sleep(0.5)


def database_cpu_s(postgres: Postgres) -> float:
    """Return the CPU seconds of the server and of all its processes, those that ended included."""
    spent = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(stat.parent.name) == postgres.pid:
            spent += sum(map(int, fields[11:15])) / TICKS  # with its ended children (proc(5))
        elif int(fields[1]) == postgres.pid:
            spent += sum(map(int, fields[11:13])) / TICKS
    return spent


def summarise(
    starts: tuple[Start, ...], count: int, began_s: float, ended_s: float, spent_s: float
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
    seconds = ended_s - began_s
    return Result(
        workers=count,
        per_hour=3600 * len(inside) / seconds,
        start_s=sum(map(took_s, inside)) / len(inside),
        decide_s=sum(gaps) / len(gaps),
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
