"""Breaks managed runs at random moments, and looks whether the hosts are as before: byte for byte.

    python -m benchmarks.faults [--faults 300] [--side-by-side 4] [--seed 1] [--only KIND] [--server SERVER]

Each fault has a test host of its own with an installed server, and a managed run that changes it over SSH
(run.py). What happens and what has to be so afterwards stands in kinds.py, machine.py and edits.py:
either every file with mode, owner, ACL and attributes, every setting of the host's
network, the page and what the server runs with are as before within `watchdog_s` + 10 s; or, where the fault
forbids that, the service still serves, what is left is named, and `tuner restore` completes once the fault is
gone. What another hand wrote meanwhile is never lost. Then the same command resumes the study, and no
finished window is lost.
"""

import argparse
import json
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.faults.attempt import ALLOWED_S, WATCHDOG_S, Fault, Outcome, describe, try_fault
from benchmarks.faults.choice import KINDS, choose
from benchmarks.faults.servers import SERVERS


def attempt(fault: Fault, folder: Path) -> Outcome:
    """Try a fault and print what became of it, or why it could not be tried."""
    try:
        outcome = try_fault(fault, folder)
    except Exception:  # noqa: BLE001 - the others go on, and this one counts as a failure
        outcome = Outcome(fault=fault, troubles=[traceback.format_exc()])
    print(describe(outcome), flush=True)
    return outcome


def main() -> None:
    """Try many faults and say what became of them."""
    parser = argparse.ArgumentParser(description="Break managed runs at random moments.")
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first, to see one again")
    parser.add_argument("--side-by-side", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(KINDS), default="")
    parser.add_argument("--server", choices=sorted(SERVERS), default="")
    arguments = parser.parse_args()
    numbers = range(arguments.first, arguments.first + arguments.faults)
    faults = [
        choose(number, arguments.seed, only=arguments.only, server=arguments.server) for number in numbers
    ]
    with (
        tempfile.TemporaryDirectory(prefix="faults-") as directory,
        ThreadPoolExecutor(arguments.side_by_side) as pool,
    ):
        outcomes = list(pool.map(partial(attempt, folder=Path(directory)), faults))
    summarize(outcomes)
    sys.exit(0 if all(outcome.is_good for outcome in outcomes) else 1)


def summarize(outcomes: Sequence[Outcome]) -> None:
    """Print how many were good, by kind, by server and of all."""
    good = [outcome for outcome in outcomes if outcome.is_good]
    for title, name_of in (
        ("kind", lambda each: each.fault.name),
        ("server", lambda each: each.fault.server),
    ):
        kept, tried = Counter(map(name_of, good)), Counter(map(name_of, outcomes))
        print(f"by {title}: " + json.dumps({name: f"{kept[name]}/{tried[name]}" for name in sorted(tried)}))
    changed = sum(outcome.was_changed for outcome in outcomes)
    measured = sum(outcome.windows_before > 0 for outcome in outcomes)
    worst = max((outcome.back_s for outcome in outcomes if outcome.back_s is not None), default=float("nan"))
    print(
        f"{len(good)} of {len(outcomes)} as promised; {changed} hosts were changed at the moment of the "
        f"fault, {measured} studies had windows to lose; "
        f"slowest way back {worst:.1f} s of {ALLOWED_S} s; watchdog {WATCHDOG_S} s"
    )


if __name__ == "__main__":
    main()
