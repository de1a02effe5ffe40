"""The faults: each breaks something at once, and lets it be as a real one would."""

import signal
import time
from collections.abc import Callable, Mapping
from random import Random

from benchmarks.fleet.faults.fleet import Fleet, Worker

Fault = Callable[[Fleet, Random], None]
BEYOND_S = 2.0
"""For so much longer than others wait a frozen worker or a database stays away."""
FOR_A_TURN_S = 20.0
"""So long a worker is looked for that has the turn."""
MOST_OFFSET_S = 3600.0


def kill_worker(fleet: Fleet, rng: Random) -> None:
    """Kill a worker, wherever it is."""
    rng.choice(fleet.workers).kill()


def kill_leader(fleet: Fleet, rng: Random) -> None:
    """Kill the worker that decides just now; any, where nobody does for long."""
    _await_leader(fleet, rng).kill()


def freeze_worker(fleet: Fleet, rng: Random) -> None:
    """Stop a worker until the others and its target have given it up."""
    _freeze(fleet, rng.choice(fleet.workers))


def freeze_leader(fleet: Fleet, rng: Random) -> None:
    """Stop the worker that decides just now until its target has given it up."""
    _freeze(fleet, _await_leader(fleet, rng))


def restart_database(fleet: Fleet, _rng: Random) -> None:
    """Restart the database."""
    fleet.postgres.stop()
    fleet.postgres.start()


def crash_database(fleet: Fleet, _rng: Random) -> None:
    """End the database without its saying goodbye, and start it again."""
    fleet.postgres.stop(mode="immediate")
    fleet.postgres.start()


def cut_database_off(fleet: Fleet, _rng: Random) -> None:
    """Take the database away until every worker has given its target back."""
    fleet.postgres.stop()
    time.sleep(_patience_s(fleet) + BEYOND_S)
    fleet.postgres.start()


def shift_clock(fleet: Fleet, rng: Random) -> None:
    """Kill a worker, and set the clock of its machine wrong before it is begun again."""
    worker = rng.choice(fleet.workers)
    worker.offset_s = rng.uniform(-MOST_OFFSET_S, MOST_OFFSET_S)
    worker.kill()


FAULTS: Mapping[str, Fault] = {
    "worker killed": kill_worker,
    "leader killed": kill_leader,
    "worker frozen": freeze_worker,
    "leader frozen": freeze_leader,
    "database restarted": restart_database,
    "database crashed": crash_database,
    "database away": cut_database_off,
    "clock wrong": shift_clock,
}


def _await_leader(fleet: Fleet, rng: Random) -> Worker:
    deadline_s = time.monotonic() + FOR_A_TURN_S
    while time.monotonic() < deadline_s:
        for worker in fleet.workers:
            if fleet.has_turn(worker):
                return worker
        time.sleep(0.02)
    return rng.choice(fleet.workers)


def _freeze(fleet: Fleet, worker: Worker) -> None:
    worker.signal(signal.SIGSTOP)
    time.sleep(_patience_s(fleet) + BEYOND_S)
    worker.signal(signal.SIGCONT)


def _patience_s(fleet: Fleet) -> float:
    return fleet.settings.target.watchdog_s
