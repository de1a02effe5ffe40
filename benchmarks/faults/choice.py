"""Which fault is tried, by its number."""

import random
from collections.abc import Mapping

from benchmarks.faults.attempt import Fault
from benchmarks.faults.edits import OF_OTHERS
from benchmarks.faults.kinds import OLDER, Kind
from benchmarks.faults.machine import OF_THE_MACHINE

KINDS: Mapping[str, Kind] = {**OLDER, **OF_THE_MACHINE, **OF_OTHERS}


def choose(number: int, seed: int, *, only: str = "", server: str = "", longest_s: float = 5.0) -> Fault:
    """Choose a fault by its number: every kind in turn, and any server that it can happen to."""
    names = [only] if only else sorted(KINDS)
    name = names[number % len(names)]
    drawn = random.Random(f"server-{seed}-{number}").choice(KINDS[name].servers)  # noqa: S311
    return Fault(
        number=number, name=name, kind=KINDS[name], server=server or drawn, seed=seed, longest_s=longest_s
    )
