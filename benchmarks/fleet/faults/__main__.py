"""Does a study of several hosts come to its end whatever breaks? `make bench-fleet-faults` breaks ten.

    python -m benchmarks.fleet.faults [--runs 10] [--first 0] [--faults 10] [--hosts 3]

Each seed draws a server. Its study is played without faults, and then with so many at random moments. Wanted
is that every trial has exactly one outcome, every target is given back, and the winner is worth what that
without faults is, within the price of one change, in nine of ten runs. Exit status 1 when it is not so.
"""

import argparse
import random
import sys
import time
from dataclasses import dataclass

from benchmarks.fleet.faults.faults import FAULTS
from benchmarks.fleet.faults.fleet import open_fleet
from benchmarks.fleet.faults.outcome import PRICE, find_wrong, net_worth
from tuner.interrupts import signals_interrupt
from tuner.records import State

ENOUGH = 0.9
"""Share of the runs that have to come to the same winner."""
BETWEEN = (1, 5)
"""Trials between two faults."""
MOST_S = 400.0
"""After so long a study hangs."""
LOOK_AGAIN_S = 0.2


@dataclass(frozen=True, kw_only=True)
class Played:
    """What became of one study."""

    faults: tuple[str, ...]
    trials: int
    lost: int
    """Trials without a result."""
    processes: int
    net: float
    """What ships is truly worth less its price, in log points."""
    changes: int
    wrong: tuple[str, ...]


def play(seed: int, *, faults: int, hosts: int, trials: int) -> Played:
    """Play one study to its end, with so many faults if it lasts so long."""
    rng = random.Random(f"faults {seed}")  # noqa: S311 - no secret
    done: list[str] = []
    next_at = rng.randint(*BETWEEN)
    deadline_s = time.monotonic() + MOST_S
    with open_fleet(seed, hosts=hosts, trials=trials) as fleet:
        while fleet.tend():
            if len(done) < faults and fleet.count_trials() >= next_at:
                done.append(rng.choice([*FAULTS]))
                FAULTS[done[-1]](fleet, rng)
                next_at = fleet.count_trials() + rng.randint(*BETWEEN)
            if time.monotonic() > deadline_s:
                said = "\n".join(fleet.controller.said[-50:])
                raise RuntimeError(f"seed {seed} hangs after {done}\n{said}")
            time.sleep(LOOK_AGAIN_S)
        storage = fleet.open_study()
        ended = storage.trials()
        net, changes = net_worth(storage, seed)
        return Played(
            faults=tuple(done), trials=len(ended), lost=sum(each.state is State.INVALID for each in ended),
            processes=len(fleet.controllers), net=net, changes=changes,
            wrong=tuple(find_wrong(fleet)),
        )  # fmt: skip


def main() -> int:
    """Play the runs, and print a row for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--faults", type=int, default=10)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--trials", type=int, default=10)
    options = parser.parse_args()
    print("| seed | faults | controllers | trials, lost | net worth without, with | changes | wrong |")
    print("|---:|---:|---:|---:|---:|---:|---|", flush=True)
    same = broken = 0
    for seed in range(options.first, options.first + options.runs):
        whole, hurt = (
            play(seed, faults=faults, hosts=options.hosts, trials=options.trials)
            for faults in (0, options.faults)
        )
        same += hurt.net >= whole.net - PRICE
        broken += bool(hurt.wrong or whole.wrong)
        print(
            f"| {seed} | {len(hurt.faults)} | {hurt.processes} | {hurt.trials}, {hurt.lost} "
            f"| {whole.net:.3f}, {hurt.net:.3f} | {whole.changes}, {hurt.changes} "
            f"| {'; '.join((*whole.wrong, *hurt.wrong))} |",
            flush=True,
        )
        print(f"seed {seed}: {', '.join(hurt.faults)}", file=sys.stderr)
    print(f"\nsame winner in {same} of {options.runs} runs; something wrong in {broken}")
    return int(broken > 0 or same < ENOUGH * options.runs)


if __name__ == "__main__":
    with signals_interrupt():
        status = main()
    sys.exit(status)
