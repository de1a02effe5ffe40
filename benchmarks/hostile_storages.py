"""Let every command read finished studies that somebody changed at random, and tell what goes wrong.

    make bench-hostile-storages                 1,000 of them
    python -m benchmarks.hostile_storages --count 100 --seed 7 --keep DIRECTORY

Each study is read by `show` and by two of the other commands. A violation is an end with another code than 0
or 2, a fault, more than 10 seconds, a sign that steers the terminal, or anything opened for writing, removed
or run outside the folder of the study.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.figures import Figure
from tests.property.hostile_storages import Outcome, play_many


def main() -> int:
    """Play, and print the figures; status 1 when one of them is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=120, help="after which no further one is played")
    parser.add_argument("--keep", type=Path, help="where studies with a violation stay")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tuner-hostile-") as temporary:
        place = (options.keep or Path(temporary)).resolve()
        os.environ["TUNER_STATE"] = f"{place}/state"
        share = -(-options.count // options.workers)
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            parts = [
                pool.submit(play_many, share, options.seed + number, place, 60 * options.minutes)
                for number in range(options.workers)
            ]
            outcomes = [each for part in parts for each in part.result()]
    found = figures(outcomes)
    print("\n".join(map(str, found)))
    for each in outcomes:
        if each.violation:
            last = each.said.strip().rpartition("\n")[2][:300]
            print(
                f"  {each.violation}: {each.study}: {each.command}: {each.changed}: {each.outside}: {last!r}"
            )
    return 0 if all(each.is_met for each in found) else 1


def figures(outcomes: list[Outcome]) -> list[Figure]:
    """Put what was seen beside what is wanted."""
    kinds = Counter(each.violation for each in outcomes if each.violation)
    times = sorted(each.seconds for each in outcomes)
    return [
        Figure(name="studies played", seen=len({each.study for each in outcomes})),
        Figure(name="commands", seen=len(outcomes)),
        Figure(name="commands that were refused, exit 2", seen=sum(each.code == 2 for each in outcomes)),
        Figure(name="time of a command, median", seen=times[len(times) // 2], unit="s"),
        Figure(name="time of a command, longest", seen=times[-1], unit="s"),
        Figure(name="violations", seen=kinds.total(), most=0),
        *(Figure(name=f"violations: {kind}", seen=count, most=0) for kind, count in kinds.items()),
    ]


if __name__ == "__main__":
    sys.exit(main())
