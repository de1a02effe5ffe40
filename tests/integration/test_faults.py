"""Managed runs are broken in every way that the benchmark of faults knows; with fixed seeds, and quickly.

`make bench-faults` does the same 300 times.
"""

from pathlib import Path

import pytest

from benchmarks.faults.attempt import describe, try_fault
from benchmarks.faults.choice import KINDS, choose
from tests.more import leave_to_more

SEED = 565
"""With it all five servers have three faults or more, and another hand edits a file and sets a setting."""
LEFT_TO_THE_BENCHMARK = {"clock a day ahead", "run directory removed"}
"""So that there are twenty: each of them is much like another one."""
HERE = {"controller killed", "power cut"}
"""The others are left to `make test-more`."""
FAULTS = [
    choose(number, SEED, longest_s=1.0)
    for number, name in enumerate(sorted(KINDS))
    if name not in LEFT_TO_THE_BENCHMARK
]


@pytest.mark.parametrize(
    "fault",
    leave_to_more(FAULTS, *(fault for fault in FAULTS if fault.name in HERE)),
    ids=[f"{fault.name}, {fault.server}" for fault in FAULTS],
)
def test_a_broken_run_leaves_its_host_as_it_was_or_says_what_is_left(fault, tmp_path: Path):
    outcome = try_fault(fault, tmp_path)

    assert outcome.is_good, describe(outcome)
