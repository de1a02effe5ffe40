"""Check studies that mean harm, made at random, and tell what they could open, add, or cost.

    make bench-hostile            2,000 of them, each traced by strace
    python -m benchmarks.hostile_studies --count 100 --seed 7 --keep DIRECTORY

Each check runs in a process forked after the imports, under strace; its time is without the imports. One that
finds nothing to refuse loads the server for two seconds, which is taken off. What takes long is checked once
more, alone and without strace, and that time counts.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks.figures import Figure
from tests.property.checked_apart import Checked, Checker, open_checker
from tests.property.hostile_studies import HostileStudy, hostile_studies

MOST_S = 2.0
MOST_MIB = 300.0
LOAD_S = 2.0
"""A check that goes through sends two windows of a second."""
MEANT = frozenset({0, 2, 3})
SERVERS = frozenset({"nginx", "apache2", "h2o"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one study did."""

    study: str
    checked: Checked

    @property
    def is_traceback(self) -> bool:
        return self.checked.code not in MEANT or "Traceback (most recent call last)" in self.checked.said

    @property
    def reached(self) -> str:
        """How far it got."""
        programs = {Path(each).name for each in self.checked.programs}
        if self.checked.code == 0:
            return "loaded, and found good"
        if programs & {"wrk", "ab", "h2load"} and "fail" in self.checked.said:
            return "loaded, and failed"
        if programs & SERVERS and "the default configuration" in self.checked.said:
            return "started or checked by a server, and refused"
        if "unshare" in programs:
            return "refused with the host's facts known"
        return "refused when read"

    @property
    def own_s(self) -> float:
        """Seconds that it took, without those of the load."""
        return self.checked.seconds - (LOAD_S if self.reached.startswith("loaded") else 0)


def check_many(count: int, start: int, place: Path, until_s: float) -> list[Outcome]:
    """Check so many studies, one after the other, or as many as the time allows (time.time())."""
    outcomes: list[Outcome] = []
    with open_checker(traced=True) as checker:

        @seed(start)
        @settings(
            max_examples=count, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(hostile_studies())
        def check(study: HostileStudy) -> None:
            if time.time() > until_s:
                return
            path = study.put_into(place / f"{start}-{len(outcomes)}")
            outcomes.append(Outcome(study=str(path), checked=checker.check(path)))

        check()
    return outcomes


def figures(outcomes: Sequence[Outcome]) -> list[Figure]:
    """Put what was seen beside what is wanted."""
    checked = [each.checked for each in outcomes]
    times = sorted(each.own_s for each in outcomes)
    outside = sum(len(each.changed) for each in checked)
    foreign = sum(len(each.beyond) for each in checked)
    crashed = sum(each.is_traceback for each in outcomes)
    peak_mib = max(each.peak_mib for each in checked)
    return [
        Figure(name="studies checked", seen=len(outcomes)),
        Figure(name="files outside the study's folder opened for writing", seen=outside, most=0),
        Figure(name="directives that the space does not own", seen=foreign, most=0),
        Figure(name="tracebacks, or an exit code without a meaning", seen=crashed, most=0),
        Figure(name="time of a check, median", seen=times[len(times) // 2], unit="s"),
        Figure(name="time of a check, 99 %", seen=times[int(0.99 * (len(times) - 1))], unit="s"),
        Figure(name="time of a check, longest", seen=times[-1], unit="s", most=MOST_S),
        Figure(name="memory of its largest process, most", seen=peak_mib, unit="MiB", most=MOST_MIB),
    ]


def check_again(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Check what took long once more, alone and without strace; the shorter time counts."""
    with open_checker(traced=False) as checker:
        return [_check_again(each, checker) if each.own_s > MOST_S else each for each in outcomes]


def _check_again(slow: Outcome, checker: Checker) -> Outcome:
    seconds = checker.check(Path(slow.study)).seconds
    return replace(slow, checked=replace(slow.checked, seconds=min(seconds, slow.checked.seconds)))


def main() -> int:
    """Check, and print the figures; status 1 when one of them is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=120, help="after which no further one is checked")
    parser.add_argument("--keep", type=Path, help="where the studies stay, with outcomes.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tuner-hostile-") as temporary:
        place = (options.keep or Path(temporary)).resolve()
        until_s = time.time() + 60 * options.minutes
        share = -(-options.count // options.workers)
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            parts = [
                pool.submit(check_many, share, options.seed + number, place, until_s)
                for number in range(options.workers)
            ]
            traced = [each for part in parts for each in part.result()]
        outcomes = check_again(traced)
        if options.keep:
            (place / "outcomes.json").write_text(json.dumps([asdict(each) for each in outcomes], indent=1))
    for reached, count in Counter(each.reached for each in outcomes).most_common():
        print(f"        {reached:<78} {count:>7}")
    found = figures(outcomes)
    print("\n".join(map(str, found)))
    for each in outcomes:
        if each.is_traceback or each.checked.changed or each.checked.beyond or each.own_s > MOST_S:
            last = each.checked.said.strip().rpartition("\n")[2][:300]
            print(f"  {each.study}: {each.checked.code}, {each.own_s:.2f} s, {each.checked.peak_mib:.0f} MiB,"
                  f" {each.checked.changed} {each.checked.beyond}: {last}")  # fmt: skip
    return 0 if all(each.is_met for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
