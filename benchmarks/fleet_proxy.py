"""Do 1,000 targets behind one proxy lose or double a start? `make bench-fleet-proxy` counts.

A few controllers drive simulated targets, a thread each, through `tuner proxy` before a private PostgreSQL.
In the middle a controller and the proxy are killed and begun again. What is measured is drawn, as storing
counts here: how long deciding takes is measured by `make bench-fleet`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from statistics import fmean, quantiles
from typing import Any, TypeVar

from benchmarks.fleet import database_cpu_s
from tests.testbed.database import Postgres, open_postgres
from tests.testbed.proxy import Proxy
from tests.unit.simulated_study import Clock, make_window
from tests.unit.simulation import TUNED, space_of, write_study
from tuner.commands.session import name_worker
from tuner.optimize.replay import distributions
from tuner.optimize.sparse import draw_sparse
from tuner.records import Role, Start, State, Timing
from tuner.statistics.ranking import rank
from tuner.study import Study, load_study
from tuner.study.storage import Opening, Storage, open_storage
from tuner.study.workers.proxy import ProxyCrew

ROOT = Path(__file__).parents[1]
TICKS = os.sysconf("SC_CLK_TCK")
WINDOWS = 3
PATIENCE_S = 30.0
"""For so long a controller may be silent."""

T = TypeVar("T")


@dataclass(kw_only=True)
class TargetCrew:
    """One target of a controller: what they have in common is the controller's."""

    controller: ProxyCrew
    turn: threading.Lock
    """Held by the one thread of the controller that waits for the turn or has it."""
    host: str
    waited_s: list[float] = field(default_factory=list)
    is_shared: bool = True

    @property
    def worker(self) -> str:
        return self.controller.worker

    def at_work(self) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def others_turn(self) -> Iterator[None]:
        yield

    @contextmanager
    def own_turn(self) -> Iterator[None]:
        moment = time.monotonic()
        with self.turn:
            self.controller._take_turn()  # noqa: SLF001 - what the crew of one target does between its starts
            self.waited_s.append(time.monotonic() - moment)
            yield
            self.controller._pass_on()  # noqa: SLF001 - see above

    def alive(self, trial: int) -> AbstractContextManager[None]:
        return self.controller.alive(trial)

    def require_turn(self) -> None:
        self.controller.require_turn()

    def insist(self, write: Callable[[], T]) -> T:
        return self.controller.insist(write)

    def silences(self) -> Mapping[int, float | None]:
        return self.controller.silences()

    def find_lost(self, running: Sequence[Start]) -> list[Start]:
        return self.controller.find_lost(running)

    def is_at_work(self, host: str) -> bool:
        return self.controller.is_at_work(host)

    def is_any_at_work(self) -> bool:
        return self.controller.is_any_at_work()


# A controller


def control(path: Path, number: int, options: argparse.Namespace) -> None:
    """Drive so many targets until each has made its starts; print what that took."""
    settings = load_study(path)
    shared = open_storage(settings.storage_url, settings.name)
    shared.join(host=f"controller{number}", worker=name_worker(), patience_s=PATIENCE_S)
    crew: Any = shared.crew
    hosts = [f"web{number}-{index}" for index in range(options.targets // options.controllers)]
    begun = [start for start in shared.starts() if start.host in set(hosts)]
    done = Counter(start.host for start in begun if start.state is State.COMPLETE)
    with crew.at_work():
        for start in begun:
            if start.state is State.RUNNING:  # of a controller that was killed
                shared.settle(start, least_windows=WINDOWS, constraints=(), controls=())
                done[start.host] += len(start.windows) == WINDOWS
        crew._pass_on()  # noqa: SLF001 - its targets have it from now on
        turn = threading.Lock()
        crews = [TargetCrew(controller=crew, turn=turn, host=host) for host in hosts]
        writes_s: list[float] = []
        threads = [
            threading.Thread(
                target=measure_on,
                args=(shared, each, range(done[each.host], options.starts), writes_s, options),
            )
            for each in crews
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    waited_s = [each for crew in crews for each in crew.waited_s]
    told = {"waited_s": waited_s, "writes_s": writes_s, "memory_mib": peak_mib("self")}
    sys.stdout.write(json.dumps(told) + "\n")


def measure_on(
    shared: Storage, crew: TargetCrew, rounds: range, writes_s: list[float], options: argparse.Namespace
) -> None:
    """Make the starts of one target that are missing."""
    storage = Storage(shared._storage, shared._study, shared._where)  # noqa: SLF001 - one connection for all
    storage.crew = crew
    rng = Random(crew.host)  # noqa: S311 - no secret
    # Targets do not begin in step.
    time.sleep(rng.uniform(0, options.seconds))
    for each in rounds:
        config, point = draw(crew.host, each)
        opening = Opening(role=Role.SEARCH if each else Role.CONTROL, config=config, point=point, block=each)
        with crew.own_turn():
            start = storage.begin(opening, distributions=distributions(SPACE.dimensions), session=crew.worker)
        with storage.elsewhere(start):
            for _ in range(WINDOWS):
                time.sleep(options.seconds / WINDOWS)
                moment = time.monotonic()
                start = storage.keep_window(start, make_window(rng, Clock(), 10.0))
                writes_s.append(time.monotonic() - moment)
        ended = replace(start, state=State.COMPLETE, timing=Timing(load_s=options.seconds))
        storage.end(ended, log_ratio=0.0, slacks={})


SPACE = space_of(*TUNED)


def draw(host: str, each: int) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return a configuration and its point: the default first."""
    default = SPACE.default()
    if not each:
        return default, SPACE.encode(default)
    point = draw_sparse(SPACE.dimensions, SPACE.encode(default), rng=Random(f"{host}/{each}"))  # noqa: S311 - no secret
    return SPACE.decode(point), point


# All of them


def main() -> None:
    """Let all targets measure, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--controllers", type=int, default=10)
    parser.add_argument("--starts", type=int, default=2, help="of each target")
    parser.add_argument("--seconds", type=float, default=120.0, help="length of a start")
    parser.add_argument("--control", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--study", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.control is not None:
        control(options.study, options.control, options)
        return
    with tempfile.TemporaryDirectory() as folder, open_postgres() as postgres:
        measure(Path(folder), postgres, options)


def measure(folder: Path, postgres: Postgres, options: argparse.Namespace) -> None:
    """Begin the controllers, kill one and the proxy in the middle, and look at what is stored in the end."""
    direct = write(folder / "direct", postgres.url)
    proxy = Proxy(direct.path)
    settings = write(folder / "workers", f"grpc://{proxy.address}")
    open_storage(settings.storage_url, settings.name)
    command = [
        sys.executable, "-m", "benchmarks.fleet_proxy", "--study", settings.path, "--starts", options.starts,
        "--targets", options.targets, "--controllers", options.controllers, "--seconds", options.seconds,
        "--control",
    ]  # fmt: skip

    def begin(number: int) -> "subprocess.Popen[str]":
        line = [str(each) for each in (*command, number)]
        return subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    began_s = time.monotonic()
    controllers = [begin(number) for number in range(options.controllers)]
    try:
        watched = open_storage(direct.storage_url, direct.name)
        while len({start.worker for start in watched.starts()}) < options.controllers:
            time.sleep(1)
        time.sleep(options.seconds)
        spent_s = proxy.cpu_s()
        controllers[0].kill()
        controllers[0].communicate()
        proxy.kill()
        proxy.begin()
        controllers[0] = begin(0)
        told = [json.loads(each.communicate()[0]) for each in controllers]
    finally:
        for each in controllers:
            each.kill()
            each.wait()
    took_s = time.monotonic() - began_s
    spent_s += proxy.cpu_s()
    children = os.times()
    report(open_storage(direct.storage_url, direct.name).starts(), told, options, took_s)
    made = options.targets * options.starts
    mine_s = children.children_user + children.children_system
    print(f"CPU of a start: proxy {1000 * spent_s / made:.0f} ms, "
          f"database {1000 * database_cpu_s(postgres) / made:.0f} ms, "
          f"controller {1000 * (mine_s) / made:.0f} ms")  # fmt: skip
    print(f"proxy: {peak_mib(proxy.process.pid):.0f} MiB")
    proxy.end()


def report(starts: Sequence[Start], told: Sequence[dict], options: argparse.Namespace, took_s: float) -> None:
    """Print what was lost or doubled, and what it took."""
    whole = Counter(
        (start.host, start.block)
        for start in starts
        if start.state is State.COMPLETE and len(start.windows) == WINDOWS
    )
    wanted = options.targets * options.starts
    print(f"{len(starts)} starts in {took_s:.0f} s of {options.targets} targets: {wanted} wanted")
    print(f"lost: {wanted - len(whole)}; doubled: {sum(count - 1 for count in whole.values())}")
    print(f"numbers without a gap: {[each.number for each in starts] == list(range(len(starts)))}")
    print(f"by state: {dict(Counter(start.state.value for start in starts))}")
    print(f"of a controller: {max(each['memory_mib'] for each in told):.0f} MiB at most")
    for name, label in (("waited_s", "waiting for the turn"), ("writes_s", "keeping a window")):
        values = [value for each in told for value in each[name]]
        late_s = quantiles(values, n=100)[98]
        print(f"{label}: {fmean(values):.2f} s in the mean, 99 of 100 within {late_s:.2f} s")
    moment = time.process_time()
    rank(SPACE, starts, ())
    print(f"the model over all of them: {time.process_time() - moment:.1f} s, {peak_mib('self'):.0f} MiB")


def write(folder: Path, storage: str) -> Study:
    """Write a study with a storage."""
    folder.mkdir()
    return load_study(write_study(folder, more=f"storage: {storage}\n").path)


def peak_mib(pid: int | str) -> float:
    """Return the most memory that a process had at once."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    main()
