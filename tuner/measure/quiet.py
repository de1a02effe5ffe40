"""Waits for other programs to leave the machine alone."""

import time

from tuner.measure.counters import INTERRUPTS, TUNER, difference, take
from tuner.measure.validity.facts import DEFAULTS
from tuner.measure.window import Load
from tuner.ports import Clock, Lookable

LOOK_S = 2.0
LOOKS = 3
"""Quiet looks in a row that are believed."""


def wait_until_quiet(host: Lookable, load: Load, *, most_s: float, clock: Clock = time) -> bool:
    """Wait until nothing else uses the CPUs; return whether it is quiet.

    Args:
        host: where to look.
        load: knows the tuner's own process there and the interrupts' threads. The pid of this process would
            be another program's on a remote host.
        most_s: seconds after which to give up.
        clock: tells the time and sleeps.
    """
    pid = load.tuner_pid
    groups = {TUNER: (pid,), INTERRUPTS: load.interrupt_threads}
    deadline = clock.monotonic() + most_s
    quiet = 0
    while quiet < LOOKS and clock.monotonic() < deadline:
        before = take(host, namespace_pid=pid, groups=groups)
        clock.sleep(LOOK_S)
        seen = difference(before, take(host, namespace_pid=pid, groups=groups))
        quiet = quiet + 1 if seen["foreign_cpu_share"] < DEFAULTS.foreign_warning else 0
    return quiet == LOOKS
