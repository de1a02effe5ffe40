"""How much sooner do 16 workers find what one finds? `make bench-fleet` plays it on simulated time.

    python -m benchmarks.fleet.play [--workers 1,16] [--first 0] [--servers 5] [--trials 150]

All workers of a study are threads of one process, of which one runs at a time. They share a clock that goes
on by what trials take and by the CPU time that each worker spends, as if each had a machine of its own. The
campaign, its model and its storage, which is in memory, are the real ones; hosts are those of drawn servers
(benchmarks.campaign).

A study of one worker is played first; the best gain is that of the configuration that leads at its end. Told
is when one led for the first time that is truly worth 95 % of it.
"""

import argparse
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Lock, Thread

from benchmarks.campaign.host import DrawnHost
from benchmarks.campaign.play import Arm, set_up
from benchmarks.campaign.servers import Server, draw_server
from tests.unit.simulation import Log, SimulatedClock, open_in_memory
from tuner.campaign.campaign import calibrate
from tuner.campaign.experiment import Experiment, PlanChanged, Seat, Shared
from tuner.campaign.progress import Leader
from tuner.campaign.stages.search import search
from tuner.ports import Config
from tuner.study.facts import IS_SEARCHED
from tuner.study.presets import PRESETS
from tuner.study.storage import Storage

SHARE = 0.95
MORE = 4
"""So many times as many trials may several workers take: what counts is time."""
ARM = Arm(name="fleet", knows_presets=False)


class SharedTime:
    """A clock for several threads, of which the one runs whose time has come."""

    def __init__(self) -> None:
        """Begin at some time."""
        self.now_s = SimulatedClock().now_s
        self._waiting: list[tuple[float, int, Lock]] = []
        self._count = 0
        self._resumed_s = time.thread_time()

    def spend(self, seconds: float = 0.0) -> None:
        """Let the time pass that this thread has computed, and so much more."""
        self._wait_until(self.now_s + self.computed_s + seconds)

    @property
    def computed_s(self) -> float:
        """CPU seconds of this thread since its time came."""
        return time.thread_time() - self._resumed_s

    def _wait_until(self, time_s: float) -> None:
        own = self.enlist(time_s)
        self.give_way()
        self.resume(own)

    def enlist(self, time_s: float) -> Lock:
        """Return a lock that is let go of at a time."""
        lock = Lock()
        lock.acquire()
        heappush(self._waiting, (time_s, self._count, lock))
        self._count += 1
        return lock

    def give_way(self) -> None:
        """Let the next one run."""
        if self._waiting:
            self.now_s, _, lock = heappop(self._waiting)
            lock.release()

    def resume(self, lock: Lock) -> None:
        """Wait for a lock, and go on."""
        lock.acquire()
        self._resumed_s = time.thread_time()


@dataclass(kw_only=True)
class PlayedClock(SimulatedClock):
    """The shared time, as a campaign asks for it."""

    shared: SharedTime

    def time(self) -> float:
        return self.shared.now_s + self.shared.computed_s

    def monotonic(self) -> float:
        return self.time()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.shared.spend(seconds)


@dataclass(kw_only=True)
class Turn:
    """What one worker has at a time; the others wait in the order in which they came."""

    shared: SharedTime
    is_taken: bool = False
    queue: deque[Lock] = field(default_factory=deque)

    def take(self) -> None:
        """Wait for the turn."""
        self.shared.spend()
        if not self.is_taken:
            self.is_taken = True
            return
        own = Lock()
        own.acquire()
        self.queue.append(own)
        self.shared.give_way()
        self.shared.resume(own)

    def pass_on(self) -> None:
        """Let the next one have it."""
        self.shared.spend()
        self.is_taken = bool(self.queue)
        if self.queue:
            lock = self.queue.popleft()
            mine = self.shared.enlist(self.shared.now_s)
            lock.release()
            self.shared.resume(mine)

    @contextmanager
    def others_turn(self) -> Iterator[None]:
        """Let others have it meanwhile."""
        self.pass_on()
        try:
            yield
        finally:
            self.take()

    def wait(self, seconds: float) -> None:
        """Let others have it for so long."""
        with self.others_turn():
            self.shared.spend(seconds)


@dataclass(kw_only=True)
class Played:
    """When which configuration led, of which true worth."""

    led: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the beginning, log points."""
    trials: int = 0
    seconds: float = 0.0

    def reached_s(self, worth: float) -> float | None:
        """Return when one led for the first time that is worth so much."""
        return next((at_s for at_s, each in self.led if each >= worth), None)


@dataclass(kw_only=True)
class Leading(Log):
    """Writes down what leads."""

    tell: Callable[[Mapping[str, tuple[object, object]]], None]

    def __post_init__(self) -> None:
        super().__init__()

    def leaders(self, leaders: Sequence[Leader]) -> None:
        if leaders:
            self.tell(leaders[0].changes)


def play(number: int, workers: int, trials: int, enough: float | None = None) -> Played:
    """Play calibration and search of one study; until something leads that is worth `enough`."""
    server, shared, played = draw_server(number), SharedTime(), Played()
    began_s, turn = shared.now_s, Turn(shared=shared)
    kept = Shared(turn=turn)  # type: ignore[arg-type]
    clock = PlayedClock(shared=shared)
    storage = open_in_memory(clock)
    with TemporaryDirectory(prefix="fleet-") as folder:
        experiments = [
            _set_up(server, clock, kept, storage, Path(folder), index, trials) for index in range(workers)
        ]

    def tell_of(experiment: Experiment) -> Callable[[Mapping[str, tuple[object, object]]], None]:
        space = experiment.setup.space
        default = space.default()

        def tell(changes: Mapping[str, tuple[object, object]]) -> None:
            config: Config = space.complete({name: value for name, (_, value) in changes.items()})  # type: ignore[misc]
            worth = server.truth(config) - server.truth(default)
            played.led.append((experiment.clock.monotonic() - began_s, worth))
            if enough is not None and worth >= enough:
                experiment.storage.remember(IS_SEARCHED, value=True)

        return tell

    def work(experiment: Experiment, own: Lock) -> None:
        shared.resume(own)
        turn.take()
        experiment.progress = Leading(tell=tell_of(experiment))
        while True:
            try:
                calibrate(experiment)
                search(experiment)
            except PlanChanged:
                continue
            break
        turn.pass_on()
        shared.give_way()

    threads = [Thread(target=work, args=(experiment, shared.enlist(began_s))) for experiment in experiments]
    for thread in threads:
        thread.start()
    shared.give_way()
    for thread in threads:
        thread.join()
    played.trials = len(storage.known.ended)
    played.seconds = shared.now_s - began_s
    return played


def _set_up(
    server: Server,
    clock: PlayedClock,
    shared: Shared,
    storage: Storage,
    folder: Path,
    index: int,
    trials: int,
) -> Experiment:
    host = DrawnHost(server=server, seed=1000 * server.number + index, suggest_s=0.0, clock=clock)
    own = folder / str(index)
    own.mkdir()
    return set_up(
        server, ARM, host, own, plan=replace(PRESETS["standard"], trials=trials, minutes=1e6),
        open_empty=lambda *_: storage, seat=Seat(host=f"web{index}", executor=None, shared=shared),
    )  # fmt: skip


def main() -> None:
    """Play some servers with each number of workers, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", default="1,16", help="numbers of workers; the first one sets the mark")
    parser.add_argument("--first", type=int, default=0, help="number of the first server")
    parser.add_argument("--servers", type=int, default=5)
    parser.add_argument("--trials", type=int, default=150)
    options = parser.parse_args()
    counts = [int(each) for each in options.workers.split(",")]
    print(
        "| server | best gain | "
        + " | ".join(f"{count} workers, minutes" for count in counts)
        + " | sooner |"
    )
    print("|---:" * (len(counts) + 3) + "|")
    sooner = []
    for number in range(options.first, options.first + options.servers):
        first = play(number, counts[0], options.trials)
        best = first.led[-1][1] if first.led else 0.0
        others = (play(number, count, MORE * options.trials, SHARE * best) for count in counts[1:])
        times = [each.reached_s(SHARE * best) for each in (first, *others)]
        shown = [f"{each / 60:.1f}" if each is not None else "never" for each in times]
        ratio = times[0] / times[-1] if times[0] and times[-1] else 0.0
        sooner.append(ratio)
        print(f"| {number} | {best:.2f} | " + " | ".join(shown) + f" | {ratio:.1f} |", flush=True)
    print(f"median: {median(sooner):.1f} times as soon")


if __name__ == "__main__":
    main()
