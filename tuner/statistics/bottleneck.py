"""Whether a load generator leaves goodput room to grow, from windows of the default. Pure.

A closed loop runs as fast as its busiest part (the utilisation law: busy time = throughput × service demand;
Denning & Buzen, "The operational analysis of queueing network models", Computing Surveys 10, 1978). So a
generator with nothing left is the limit where the server has something left, and where both are full a
better server shows only in what it costs. A generator that is merely busy is no limit: it works as much as
the server lets it, needs less time for a request the more of them wait for it, and has room until it is full.

A single share near a threshold is a lottery. What counts is the bound beyond which the median of all windows
lies with 95 % probability, by the sign test (Thompson, Annals of Mathematical Statistics 7, 1936), which
asks for no distribution and forgives an odd window.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from scipy.special import bdtr

from tuner.records import Window

SATURATED = 0.95
"""Share of its CPUs that a full generator uses at the least: what the hypervisor takes from it, up to 5 % in
a window that counts, is in no process's time."""
FULL = 0.98
"""The same beside a server without reserve, which may be the limit itself: then goodput can grow by 2 % at
the most, which short studies cannot prove."""
RESERVE = 0.10
"""Share of its CPUs that a server with reserve leaves idle. One that is full leaves 2 to 4 % of a window of
1 s, because programs start and counters are read around it."""
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """How busy both sides of a load were, as shares of their CPUs."""

    generator_busy: float
    """The median of all windows."""
    generator_least: float
    """The lower bound of that median, one-sided; of fewer than five windows the least."""
    server_busy: float | None
    """The median of the server's; None where it was not read."""
    server_most: float | None
    """The upper bound of that median."""
    has_cost: bool
    """Whether the CPU time of the server could be read."""

    @property
    def is_generator(self) -> bool:
        """Whether the load generator is surely the limit, or is where any better server would meet it."""
        return self.server_most is not None and is_limit(self.generator_least, self.server_most)

    def __str__(self) -> str:
        server = "" if self.server_busy is None else f", the server {100 * self.server_busy:.0f} % of its own"
        return f"the load generator used {100 * self.generator_busy:.0f} % of its CPUs{server}"


def is_limit(generator_busy: float, server_busy: float) -> bool:
    """Return whether a load generator is the limit, from how busy both are, as shares of their CPUs."""
    has_reserve = server_busy <= 1 - RESERVE
    return generator_busy >= (SATURATED if has_reserve else FULL)


def find_bottleneck(windows: Sequence[Window]) -> Bottleneck:
    """Compare how busy both sides were.

    Raises:
        ValueError: there is no window.
    """
    if not windows:
        raise ValueError("bottleneck: there is no window. Measure the default first.")
    generator = sorted(window.generator_cpu for window in windows)
    server = sorted(share for window in windows if (share := find_server_busy(window.counters)) is not None)
    is_read = len(server) == len(windows)
    outside = _outside(len(windows))
    return Bottleneck(
        generator_busy=median(generator),
        generator_least=generator[outside],
        server_busy=median(server) if is_read else None,
        server_most=server[-1 - outside] if is_read else None,
        has_cost=all(window.counters.get("server_cpu_s", 0.0) > 0 for window in windows),
    )


def _outside(count: int) -> int:
    """Return how many of so many values lie beyond a one-sided bound of their median."""
    sure = (beyond for beyond in range(count // 2) if bdtr(beyond, count, 0.5) <= 1 - CONFIDENCE)
    return max(sure, default=0)


def find_server_busy(counters: Mapping[str, float]) -> float | None:
    """Return the share of the server's CPUs that was not idle; a guest's stolen time counts as busy.

    A server that its CPU quota stops has nothing left either, however idle the CPUs are: the share is at
    least that of the periods in which it was stopped.
    """
    capacity_s = counters.get("server_cpus", 0.0) * counters.get("elapsed_s", 0.0)
    if "server_idle_s" not in counters or capacity_s <= 0:
        return None
    periods = counters.get("quota_periods", 0.0)
    stopped = counters.get("throttled_periods", 0.0) / periods if periods > 0 else 0.0
    return max(stopped, 0.0, 1 - counters["server_idle_s"] / capacity_s)
