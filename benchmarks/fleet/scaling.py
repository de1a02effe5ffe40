"""How many trials an hour do 1, 2, 4 … hosts make on one study? `make bench-fleet` counts them.

One controller drives simulated targets, whose trials take as long as real ones of a preset: measured is what
the controller and the engine need in between. Counted is what ends in a window that begins when every host
has tried a configuration.

    python -m benchmarks.fleet.scaling --preset standard --hosts 1,8,32 [--seconds 120] [--there 1000]

`--there` writes so many trials into the study before anybody begins.
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
from tuner.records import Role, State, Trial
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
    trial_s: float
    """Mean length of a trial."""
    between_s: float
    """Mean time from the end of a host's trial to the beginning of its next, waits included."""
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
    parser.add_argument("--there", type=int, default=0, help="trials that the study has before")
    options = parser.parse_args()
    print(
        "| hosts | trials/hour | of linear | seconds of a trial | between two | in 9 of 10 | to choose "
        "| controller, cores | MiB at the most |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    single = 0.0
    for count in map(int, options.hosts.split(",")):
        found = measure(count, options.seconds, options.preset, there=options.there)
        single = single or found.per_hour / found.hosts
        print(
            f"| {found.hosts} | {found.per_hour:,.0f} | {found.per_hour / found.hosts / single:.2f} "
            f"| {found.trial_s:.2f} | {found.between_s:.2f} | {found.most_between_s:.2f} "
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
            trials = [*team.storage.known.ended]
            team.stop(KeyboardInterrupt())
            driving.join()
    return summarise(trials, count, began_s, ended_s, spent_s)


def form(
    engine: Engine, hosts: list[str], folder: Path, preset: str, *, there: int
) -> tuple[Team, list[Lane]]:
    """Begin a study that does not end, with so many trials that nobody made."""
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


def find_searching(trials: list[Trial]) -> set[str]:
    """Return the hosts on which a configuration was tried."""
    return {trial.host for trial in trials if trial.role in SEARCHED}


def summarise(trials: list[Trial], count: int, began_s: float, ended_s: float, spent_s: float) -> Result:
    """Return what ended in the window."""
    inside = [trial for trial in trials if began_s <= end_of(trial) <= ended_s]
    own = {trial.host: [each for each in trials if each.host == trial.host] for trial in inside}
    gaps = [
        later.started_s - end_of(trial)
        for each in own.values()
        for trial, later in pairwise(each)
        if began_s <= end_of(trial) and later.started_s <= ended_s
    ]
    chosen = [trial.timing.suggest_s for trial in inside if trial.role is Role.SEARCH]
    trial_s, between_s = fmean(map(took_s, inside)), fmean(gaps)
    return Result(
        hosts=count,
        # Of what one host ends in a window, the count would tell little.
        per_hour=3600 * count / (trial_s + between_s),
        trial_s=trial_s,
        between_s=between_s,
        most_between_s=quantiles(gaps, n=10)[-1],
        suggest_s=fmean(chosen) if chosen else 0.0,
        controller_cores=spent_s / (ended_s - began_s),
        most_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def end_of(trial: Trial) -> float:
    """Return when a trial had ended."""
    return trial.started_s + took_s(trial)


def took_s(trial: Trial) -> float:
    """Return the seconds that a trial took."""
    return 0.0 if trial.state is State.INVALID else trial.timing.deploy_s + trial.timing.load_s


if __name__ == "__main__":
    main()
