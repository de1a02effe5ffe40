"""Waiting for other programs to leave the machine alone."""

import os
import time
from collections.abc import Sequence

from tuner.measure.counters import TUNER, difference, take
from tuner.measure.gates.thresholds import DEFAULTS
from tuner.ports import Clock, Lookable

LOOK_S = 2.0
LOOKS = 3
"""Quiet looks in a row that are believed."""


def wait_until_quiet(
    host: Lookable, interrupt_threads: Sequence[int], *, most_s: float, clock: Clock = time
) -> bool:
    """Wait until nothing else uses the CPUs, at most so long; tell whether it is quiet.

    Args:
        host: where to look.
        interrupt_threads: as `find_interrupt_threads` gives them.
        most_s: seconds after which to give up.
        clock: tells the time and sleeps.
    """
    groups = {TUNER: [os.getpid()], "interrupts": interrupt_threads}
    deadline = clock.monotonic() + most_s
    quiet = 0
    while quiet < LOOKS and clock.monotonic() < deadline:
        before = take(host, namespace_pid=os.getpid(), groups=groups)
        clock.sleep(LOOK_S)
        seen = difference(before, take(host, namespace_pid=os.getpid(), groups=groups))
        quiet = quiet + 1 if seen["foreign_cpu_share"] < DEFAULTS.foreign_warning else 0
    return quiet == LOOKS
