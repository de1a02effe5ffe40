"""How long do decisions take, by trials, hosts and parameters? A part of `make bench-fleet`; CPU seconds.

python -m benchmarks.fleet.decisions
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from benchmarks.campaign.host import DrawnHost
from benchmarks.campaign.play import Arm, set_up
from benchmarks.campaign.servers import draw_server
from benchmarks.fleet.history import write_history
from tuner.campaign.suggest import suggest
from tuner.study.presets import PRESETS

T = TypeVar("T")
TRIALS = (30, 100, 300, 1000)
HOSTS = (1, 16, 64)
SERVERS = (3, 1)
"""Numbers of drawn servers, whose spaces have different numbers of parameters."""
SEVERAL = 9
ARM = Arm(name="fleet", knows_presets=False, knows_hints=False)


def main() -> None:
    """Print a table."""
    print("| parameters | trials | hosts | ranking all | choosing one | each further one |")
    print("|---:|---:|---:|---:|---:|---:|")
    cases = [(SERVERS[0], trials, 16) for trials in TRIALS]
    cases += [(SERVERS[0], TRIALS[-1], hosts) for hosts in HOSTS if hosts != 16]
    cases += [(server, 300, 16) for server in SERVERS[1:]]
    for server, trials, hosts in cases:
        measure(server, trials, hosts)


def measure(number: int, trials: int, hosts: int) -> None:
    """Time the decisions of one study, and print a row."""
    server = draw_server(number)
    host = DrawnHost(server=server, seed=number)
    with TemporaryDirectory(prefix="fleet-") as folder:
        experiment = set_up(server, ARM, host, Path(folder), plan=replace(PRESETS["standard"], minutes=1e6))
    write_history(experiment, server, trials, hosts=hosts)
    experiment.host = "web0"
    experiment.trials[:] = experiment.storage.trials()
    experiment.ranking()  # what is computed once for each trial
    experiment.trials.pop()
    _, rank_s = timed(experiment.ranking)
    suggest(experiment)
    _, one_s = timed(lambda: suggest(experiment))
    found, several_s = timed(lambda: suggest(experiment, SEVERAL))
    each_s = (several_s - one_s) / max(1, len(found) - 1)
    parameters = len(experiment.setup.space.dimensions)
    print(f"| {parameters} | {trials} | {hosts} | {rank_s:.2f} | {one_s:.2f} | {each_s:.2f} |", flush=True)


def timed(compute: Callable[[], T]) -> tuple[T, float]:
    """Return what is computed, and the CPU seconds that it takes."""
    before_s = time.process_time()
    return compute(), time.process_time() - before_s


if __name__ == "__main__":
    main()
