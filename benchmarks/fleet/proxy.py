"""Do 1,000 targets behind one proxy lose or double a start? `make bench-fleet-proxy` counts.

A few controllers drive simulated targets, a thread each, through `tuner proxy` before a private PostgreSQL.
In the middle a controller and the proxy are killed and begun again. What is measured is drawn, as storing
counts here: how long deciding takes is measured by `make bench-fleet`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from benchmarks.fleet.proxy_controller import SPACE, WINDOWS, peak_mib, read_options
from benchmarks.fleet.scaling import database_cpu_s
from tests.testbed.database import Postgres, open_postgres
from tests.testbed.proxy import Proxy
from tests.unit.simulation import write_study
from tuner.records import Start, State
from tuner.statistics.ranking import rank
from tuner.study import Study, load_study
from tuner.study.open_storage import open_storage

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Let all targets measure, and print what came of it."""
    options = read_options().parse_args()
    with tempfile.TemporaryDirectory() as folder, open_postgres() as postgres:
        measure(Path(folder), postgres, options)


def measure(folder: Path, postgres: Postgres, options: argparse.Namespace) -> None:
    """Begin the controllers, kill one and the proxy in the middle, and look at what is stored in the end."""
    direct = write(folder / "direct", postgres.url)
    proxy = Proxy(direct.path)
    settings = write(folder / "workers", f"grpc://{proxy.address}")
    open_storage(settings.storage_url, settings.name)
    command = [
        sys.executable, "-m", "benchmarks.fleet.proxy_controller", "--starts", options.starts, "--targets",
        options.targets, "--controllers", options.controllers, "--seconds", options.seconds, settings.path,
    ]  # fmt: skip

    def begin(number: int) -> "subprocess.Popen[str]":
        line = [str(each) for each in (*command, number)]
        return subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    began_s, spent_s = time.monotonic(), -proxy.cpu_s()
    database_s = -database_cpu_s(postgres)
    controllers = [begin(number) for number in range(options.controllers)]
    try:
        watched = open_storage(direct.storage_url, direct.name)
        while len({start.worker for start in watched.starts()}) < options.controllers:
            time.sleep(3)
        time.sleep(options.seconds)
        controllers[0].kill()
        controllers[0].communicate()
        spent_s += proxy.cpu_s()
        proxy.kill()
        proxy.begin()
        spent_s -= proxy.cpu_s()
        controllers[0] = begin(0)
        told = [json.loads(each.communicate()[0]) for each in controllers]
        took_s = time.monotonic() - began_s
        spent_s += proxy.cpu_s()
        database_s += database_cpu_s(postgres)
        proxy_mib = peak_mib(proxy.process.pid)
    finally:
        for each in controllers:
            each.kill()
            each.wait()
        proxy.end()
    report(open_storage(direct.storage_url, direct.name).starts(), told, options, took_s)
    made = options.targets * options.starts
    for name, each_s in (
        ("proxy", spent_s), ("database", database_s), ("controllers", sum(each["cpu_s"] for each in told)),
    ):  # fmt: skip
        print(f"CPU of a start, {name}: {1000 * each_s / made:.0f} ms")
    print(f"the proxy itself: {proxy_mib:.0f} MiB")


def report(
    starts: Sequence[Start], told: Sequence[dict[str, Any]], options: argparse.Namespace, took_s: float
) -> None:
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


if __name__ == "__main__":
    main()
