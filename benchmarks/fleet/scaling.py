"""How many starts an hour do 1, 2, 4 … hosts make on one study? `make bench-fleet` counts them.

One controller drives simulated targets, whose starts take as long as real ones of a preset: measured is what
the controller and the engine need in between. Counted is what ends in a window that begins when every host
has tried a configuration.

    python -m benchmarks.fleet.scaling --preset standard --hosts 1,8,32 [--seconds 120] [--there 1000]

`--there` writes so many starts into the study before anybody begins.
"""

import argparse
import resource
import sys
import tempfile
import threading
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, quantiles

from benchmarks.campaign.host import DrawnHost
from benchmarks.campaign.play import Arm, set_up
from benchmarks.campaign.servers import draw_server
from benchmarks.fleet.history import write_history
from benchmarks.fleet.targets import name_hosts, open_targets
from benchmarks.fleet.tireless import Tireless
from tests.integration.simulated_fleet import FastClock
from tests.unit.simulated_study import FINGERPRINT
from tests.unit.simulation import Log
from tuner.commands.fleet.control import Lane, Team, drive_all
from tuner.commands.fleet.engine import Engine, RemoteExecutor, open_engine
from tuner.records import Role, Start, State
from tuner.study.file import choose_target
from tuner.study.open_storage import open_storage
from tuner.study.presets import PRESETS

SERVER = 3
"""Number of the drawn server that all hosts have."""
ARM = Arm(name="fleet", knows_presets=False)
PATIENCE_S = 600.0
SEARCHED = {Role.SEARCH, Role.REPEAT}


@dataclass(frozen=True, kw_only=True)
class Result:
    """What some hosts did in the window."""

    hosts: int
    per_hour: float
    start_s: float
    """Mean length of a start."""
    between_s: float
    """Mean time from the end of a host's start to the beginning of its next, waits included."""
    most_between_s: float
    """What that is at most in nine of ten."""
    suggest_s: float
    """Mean time that it took to choose a configuration."""
    controller_cores: float
    """CPU seconds of the controller per second, the scheduler in it included."""
    most_mib: float
    """Memory of the controller, at the most."""


def main() -> None:
    """Measure each number of hosts, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--hosts", default="1,2,4,8,16,32,64", help="numbers of hosts")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the window")
    parser.add_argument("--preset", default="quick", choices=PRESETS)
    parser.add_argument("--there", type=int, default=0, help="starts that the study has before")
    options = parser.parse_args()
    print(
        "| hosts | starts/hour | of linear | seconds of a start | between two | in 9 of 10 | to choose "
        "| controller, cores | MiB at the most |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    single = 0.0
    for count in map(int, options.hosts.split(",")):
        found = measure(count, options.seconds, options.preset, there=options.there)
        single = single or found.per_hour / found.hosts
        print(
            f"| {found.hosts} | {found.per_hour:,.0f} | {found.per_hour / found.hosts / single:.2f} "
            f"| {found.start_s:.2f} | {found.between_s:.2f} | {found.most_between_s:.2f} "
            f"| {found.suggest_s:.2f} | {found.controller_cores:.2f} | {found.most_mib:.0f} |",
            flush=True,
        )


def measure(count: int, seconds: float, preset: str, *, there: int) -> Result:
    """Let a controller drive so many hosts for a while."""
    hosts = name_hosts(count)
    with tempfile.TemporaryDirectory() as folder, open_engine(PATIENCE_S) as engine:
        team, lanes = form(engine, hosts, Path(folder), preset, there=there)
        with open_targets(engine, hosts, SERVER):
            driving = threading.Thread(target=drive, args=(team, lanes))
            driving.start()
            wait_until_all_search(team, count, driving, there)
            began_s, spent_s = time.time(), time.process_time()
            time.sleep(seconds)
            ended_s, spent_s = time.time(), time.process_time() - spent_s
            starts = [*team.storage.known.ended]
            team.stop(KeyboardInterrupt())
            driving.join()
    return summarise(starts, count, began_s, ended_s, spent_s)


def form(
    engine: Engine, hosts: list[str], folder: Path, preset: str, *, there: int
) -> tuple[Team, list[Lane]]:
    """Begin a study that does not end, with so many starts that nobody made."""
    plan = replace(PRESETS[preset], trials=100_000, minutes=1e6)
    host = DrawnHost(server=draw_server(SERVER), seed=1, suggest_s=0.0, clock=FastClock(1.0))
    experiment = set_up(
        host.server, ARM, host, folder, plan=plan,
        open_empty=lambda *_: open_storage(f"sqlite:///{folder}/study.db", "fleet"),
    )  # fmt: skip
    storage, setup = experiment.storage, experiment.setup
    storage.claim(replace(FINGERPRINT, host=hosts[0]), definition={})
    write_history(experiment, host.server, there, hosts=len(hosts))
    storage.write_alone()
    team = Team(plan=plan, storage=storage, optimizer=Tireless(experiment.optimizer), progress=Log())
    lanes = [
        Lane(
            team=team,
            setup=replace(setup, settings=choose_target(setup.settings, name)),
            open_executor=lambda telling, name=name: nullcontext(
                RemoteExecutor(
                    host=name, client=engine.client, turn=team.shared.turn, check=lambda: None,
                    note=telling.note,
                )
            ),
        )
        for name in hosts
    ]  # fmt: skip
    return team, lanes


def drive(team: Team, lanes: list[Lane]) -> None:
    """Measure until somebody stops the study."""
    with suppress(KeyboardInterrupt):
        drive_all(team, lanes)


def wait_until_all_search(team: Team, count: int, driving: threading.Thread, there: int) -> None:
    """Wait until each host has ended a configuration."""
    while len(find_searching([*team.storage.known.ended][there:])) < count:
        if not driving.is_alive():
            sys.exit("the study has ended")
        time.sleep(1.0)


def find_searching(starts: list[Start]) -> set[str]:
    """Return the hosts on which a configuration was tried."""
    return {start.host for start in starts if start.role in SEARCHED}


def summarise(starts: list[Start], count: int, began_s: float, ended_s: float, spent_s: float) -> Result:
    """Return what ended in the window."""
    inside = [start for start in starts if began_s <= end_of(start) <= ended_s]
    own = {start.host: [each for each in starts if each.host == start.host] for start in inside}
    gaps = [
        later.started_s - end_of(start)
        for each in own.values()
        for start, later in pairwise(each)
        if began_s <= end_of(start) and later.started_s <= ended_s
    ]
    chosen = [start.timing.suggest_s for start in inside if start.role is Role.SEARCH]
    start_s, between_s = fmean(map(took_s, inside)), fmean(gaps)
    return Result(
        hosts=count,
        # Of what one host ends in a window, the count would tell little.
        per_hour=3600 * count / (start_s + between_s),
        start_s=start_s,
        between_s=between_s,
        most_between_s=quantiles(gaps, n=10)[-1],
        suggest_s=fmean(chosen) if chosen else 0.0,
        controller_cores=spent_s / (ended_s - began_s),
        most_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def end_of(start: Start) -> float:
    """Return when a start had ended."""
    return start.started_s + took_s(start)


def took_s(start: Start) -> float:
    """Return the seconds that a start took."""
    return 0.0 if start.state is State.INVALID else start.timing.deploy_s + start.timing.load_s


if __name__ == "__main__":
    main()
