"""Input of the validity checks with its thresholds, and their verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuner.hosts.connection_room import DEFAULT_PORTS
from tuner.ports import LoadResult
from tuner.records import GENERATOR_BUSY, Blame, Check, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Limits of the checks. Where no source is named, the figure is a judgement."""

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
    """Of the server, above what the baseline has. Files that are read for the first time cause some."""
    wrong_body_share: float = 0.005
    """Responses of a wrong length. Below it, they still count as errors."""
    errors_warning: float = 0.001
    errors_fault: float = 0.01
    errors_hopeless: float = 0.05
    """Failed requests per request; the last ends a trial at once."""
    clock_step_s: float = 0.010
    """CLOCK_REALTIME against CLOCK_MONOTONIC. Slewing by NTP moves both alike (clock_gettime(2)), so this is
    somebody setting the clock, or a machine that was suspended."""
    problems_in_row: int = 2
    """Windows in a row in which the generator fails before it is the configuration's fault."""
    retries_per_window: int = 2
    retries_per_trial: int = 3
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineFacts:
    """What the default showed on the same machine, to tell a configuration's fault from the machine's."""

    is_healthy: bool = True
    """Whether the last trial of the default could be measured."""
    major_faults_per_s: float = 0.0
    """Pages that its server read from disk."""


HEALTHY = BaselineFacts()
"""A default of which nothing bad is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFacts:
    """What the checks look at in one window."""

    asked_s: float
    """How long the load should have lasted, or may have where it ends after so many requests."""
    result: LoadResult | None
    """What the generator counted; None when it failed or its output cannot be understood."""
    counters: Mapping[str, float]
    """As `counters.difference` gives them; a check whose counters are missing is silent."""
    generator_cpu: float = 0.0
    """CPU seconds of the generator per second and per CPU it may use."""
    problem: str | None = None
    """How the generator failed, when there is no result."""
    lost: str | None = None
    """Which load host could not be used, and why."""
    requests_total: int | None = None
    """Requests after which the load should have ended; None for a load that ends by time."""
    rate_rps: float | None = None
    """Requests/s that the generator must send when they are due; None where it need not."""
    problems_in_row: int = 1
    """Windows in a row in which the generator failed or gave up, this one included, if it did."""
    baseline: BaselineFacts = HEALTHY
    not_effective: tuple[str, ...] = ()
    """One sentence for each setting that is not, or no longer, active as asked."""
    is_page_replaced: bool = False
    """Whether the page was another one after the window than before it."""
    expected: str = "the page"
    """Which answer is right, in words."""
    local_ports: int = DEFAULT_PORTS
    """Ports that connections of the generator may use."""
    limits: Thresholds = field(default=DEFAULTS)

    def rate(self, name: str) -> float:
        """Return a counter per second of the window, 0 without it."""
        elapsed_s = self.counters.get("elapsed_s", 0.0)
        return self.counters.get(name, 0.0) / elapsed_s if elapsed_s > 0 else 0.0


def percent(share: float, digits: int = 0) -> str:
    """Write a share: 12 %."""
    return f"{100 * share:.{digits}f} %"


def fault(check: Check, reason: str) -> Verdict:
    """Blame the environment."""
    return Verdict(check=check, blame=Blame.ENVIRONMENT, reason=f"{reason}.")


def blamed(check: Check, reason: str) -> Verdict:
    """Blame the configuration."""
    return Verdict(check=check, blame=Blame.CONFIGURATION, reason=f"{reason}.")


def warning(check: Check, reason: str) -> Verdict:
    """Blame nobody; the window counts."""
    return Verdict(check=check, blame=Blame.WARNING, reason=f"{reason}.")
