"""A controller of `make bench-fleet-proxy`: many simulated targets, a thread each, behind one proxy."""

import argparse
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from tests.unit.simulated_study import Clock, make_window
from tests.unit.simulation import TUNED, space_of
from tuner.commands.session import name_worker
from tuner.optimize.replay import distributions
from tuner.optimize.sparse import draw_sparse
from tuner.records import Role, Start, State, Timing
from tuner.study import load_study
from tuner.study.open_storage import open_storage
from tuner.study.storage import Opening, Storage
from tuner.study.workers.proxy import ProxyCrew

WINDOWS = 3
"""Of a start, as in the preset `thorough`."""
PATIENCE_S = 30.0
"""For so long a controller may be silent."""
SPACE = space_of(*TUNED)

T = TypeVar("T")


@dataclass(kw_only=True)
class SharedTurn:
    """The turn of a controller, which its targets pass to each other while any of them waits for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held by the one that waits for the controller's turn or has it."""
    waiting: set[str] = field(default_factory=set)
    """Hosts."""


@dataclass(kw_only=True)
class TargetCrew:
    """One target of a controller: what they have in common is the controller's."""

    controller: ProxyCrew
    turn: SharedTurn
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
        self.turn.waiting.add(self.host)
        with self.turn.lock:
            self.turn.waiting.discard(self.host)
            if self.controller._turn is None:  # noqa: SLF001 - what the crew of one target does between starts
                self.controller._take_turn()  # noqa: SLF001 - see above
            self.waited_s.append(time.monotonic() - moment)
            try:
                yield
            finally:
                if not self.turn.waiting:
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
        turn = SharedTurn()
        crews = [TargetCrew(controller=crew, turn=turn, host=host) for host in hosts]
        writes_s: list[float] = []
        threads = [
            threading.Thread(
                target=measure_on,
                args=(shared, each, range(done[each.host], options.starts), writes_s, options),
            )
            for each in crews
        ]
        before_s = time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    waited_s = [each for crew in crews for each in crew.waited_s]
    told = {
        "waited_s": waited_s, "writes_s": writes_s, "memory_mib": peak_mib("self"),
        "cpu_s": time.process_time() - before_s,
    }  # fmt: skip
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
        start = crew.insist(partial(begin, storage, crew, opening))
        with storage.elsewhere(start):
            for _ in range(WINDOWS):
                time.sleep(options.seconds / WINDOWS)
                moment = time.monotonic()
                start = storage.keep_window(start, make_window(rng, Clock(), 10.0))
                writes_s.append(time.monotonic() - moment)
        ended = replace(start, state=State.COMPLETE, timing=Timing(load_s=options.seconds))
        storage.end(ended, log_ratio=0.0, slacks={})


def begin(storage: Storage, crew: TargetCrew, opening: Opening) -> Start:
    """Begin a start in the turn of its target."""
    with crew.own_turn():
        return storage.begin(opening, distributions=distributions(SPACE.dimensions), session=crew.worker)


def draw(host: str, each: int) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return a configuration and its point: the default first."""
    default = SPACE.default()
    if not each:
        return default, SPACE.encode(default)
    point = draw_sparse(SPACE.dimensions, SPACE.encode(default), rng=Random(f"{host}/{each}"))  # noqa: S311 - no secret
    return SPACE.decode(point), point


def peak_mib(pid: int | str) -> float:
    """Return the most memory that a process had at once."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def read_options() -> argparse.ArgumentParser:
    """Return what a controller is told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--controllers", type=int, default=10)
    parser.add_argument("--starts", type=int, default=2, help="of each target")
    parser.add_argument("--seconds", type=float, default=90.0, help="length of a start")
    return parser


if __name__ == "__main__":
    reader = read_options()
    reader.add_argument("study", type=Path)
    reader.add_argument("number", type=int)
    options = reader.parse_args()
    control(options.study, options.number, options)
