"""Thresholds of the validity gates, each with its reason."""

from dataclasses import dataclass

from tuner.records import GENERATOR_BUSY


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Limits of the gates. Where no source is named, the figure is a judgement."""

    generator_busy: float = GENERATOR_BUSY
    duration_share: float = 0.05
    duration_s: float = 0.3
    """How far a window may be from its length, both together. wrk looks every 0.1 s whether it is over
    (src/wrk.c)."""
    short_s: float = 0.5
    """A window that ends after so many requests and takes less is too short: programs start and counters of
    the kernel move in steps of some 10 ms."""
    steal_warning: float = 0.02
    steal_fault: float = 0.05
    """Share of all CPUs that the hypervisor gave to others."""
    foreign_warning: float = 0.20
    foreign_fault: float = 0.30
    """Share of one CPU that processes used which are neither server nor generator nor tuner.

    Not 5 % and 10 %: on a quiet virtual machine with 2 CPUs, 46 windows of 1 s showed 2 to 15 %, the more the
    longer the generator's CPU was idle. Waking a halted CPU is neither idle time nor any process's.
    """
    foreign_errors: float = 2.0
    """Standard errors by which foreign CPU must be above: with many server processes and short windows the
    rounding of /proc alone would reach the limits."""
    time_wait_share: float = 0.60
    """Sockets in TIME_WAIT per local port. Not one half: connect() takes every other port first
    (net/ipv4/inet_hashtables.c, __inet_hash_connect) and reuses them after a second on loopback
    (tcp_tw_reuse=2), so `Connection: close` settles at one half. nginx and wrk stayed at 14,100 of 28,232 for
    six windows of 2 s on kernel 6.18, the last no slower than the first, and no connection failed."""
    memory_full_share: float = 0.01
    """Share of the time in which all tasks waited for memory (psi.rst, `full`)."""
    swap_ins_per_s: float = 50.0
    """Pages. One now and then is another program that wakes up."""
    major_faults_per_s: float = 20.0
    """Of the server, above what the control has. Files that are read for the first time cause some."""
    wrong_body_share: float = 0.005
    """Responses of a wrong length. Below it, they still count as errors."""
    errors_warning: float = 0.001
    errors_fault: float = 0.01
    errors_hopeless: float = 0.05
    """Failed requests per request; the last ends a start at once."""
    clock_step_s: float = 0.010
    """CLOCK_REALTIME against CLOCK_MONOTONIC. Slewing by NTP moves both alike (clock_gettime(2)), so this is
    somebody setting the clock, or a machine that was suspended."""
    problems_in_row: int = 2
    """Windows in a row in which the generator fails before it is the configuration's fault."""
    retries_per_window: int = 2
    retries_per_start: int = 3
    noisy_share: float = 0.20
    """Spoiled windows of all windows, beyond which the host is too noisy to measure on."""
    noisy_span_s: float = 600.0
    """How far back windows are looked at."""
    noisy_least_windows: int = 20
    """Before so many, a share says nothing. Where one window in a hundred is spoiled, more than 4 of 20 are
    with a probability of 1.4e-6, and where one in twenty is, of 0.003 (binomial distribution)."""
    noisy_pause_s: float = 120.0
    """Wait so long altogether for noise to pass before giving up."""
    noisy_least_pause_s: float = 15.0
    """Less is not worth waiting for."""


DEFAULTS = Thresholds()
