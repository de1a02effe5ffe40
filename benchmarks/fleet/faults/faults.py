"""The faults: each breaks something at once, and lets it be as a real one would."""

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from random import Random

from benchmarks.fleet.faults.fleet import Fleet

Fault = Callable[[Fleet, Random], None]
SS = shutil.which("ss") or "/usr/bin/ss"
BEYOND_S = 2.0
"""For so much longer than others wait something stays frozen."""


def kill_worker(fleet: Fleet, rng: Random) -> None:
    """Kill a worker, wherever it is."""
    fleet.signal(_choose_host(fleet, rng), signal.SIGKILL)


def end_worker(fleet: Fleet, rng: Random) -> None:
    """Ask a worker to end, as a service manager does."""
    fleet.signal(_choose_host(fleet, rng), signal.SIGTERM)


def freeze_worker(fleet: Fleet, rng: Random) -> None:
    """Stop a worker until its target and the scheduler have given it up."""
    host = _choose_host(fleet, rng)
    fleet.signal(host, signal.SIGSTOP)
    time.sleep(fleet.settings.target.watchdog_s + BEYOND_S)
    fleet.signal(host, signal.SIGCONT)


def cut_link(fleet: Fleet, rng: Random) -> None:
    """Cut all connections of a worker (ss(8), --kill)."""
    for pid in fleet.controller.find_workers(_choose_host(fleet, rng)):
        shown = subprocess.run((SS, "-tnpH"), capture_output=True, text=True, check=True).stdout
        for line in shown.splitlines():
            if f"pid={pid}," in line and (port := re.search(r"127\.0\.0\.1:(\d+)", line)):
                subprocess.run((SS, "-K", "sport", "=", f":{port[1]}"), capture_output=True, check=False)


def kill_controller(fleet: Fleet, _rng: Random) -> None:
    """Kill the controller, and the scheduler with it."""
    fleet.controller.signal(signal.SIGKILL)
    fleet.controller.process.wait()


def interrupt_controller(fleet: Fleet, _rng: Random) -> None:
    """Interrupt the controller, as Ctrl-C does."""
    fleet.controller.signal(signal.SIGINT)
    fleet.controller.process.wait()


def freeze_controller(fleet: Fleet, _rng: Random) -> None:
    """Stop the controller and the scheduler until every worker has given its target back."""
    fleet.controller.signal(signal.SIGSTOP)
    time.sleep(2 * fleet.settings.target.watchdog_s + BEYOND_S)
    fleet.controller.signal(signal.SIGCONT)


FAULTS: Mapping[str, Fault] = {
    "worker killed": kill_worker,
    "worker ended": end_worker,
    "worker frozen": freeze_worker,
    "link cut": cut_link,
    "controller killed": kill_controller,
    "controller interrupted": interrupt_controller,
    "controller frozen": freeze_controller,
}


def _choose_host(fleet: Fleet, rng: Random) -> str:
    return rng.choice(fleet.machines).host
