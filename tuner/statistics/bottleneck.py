"""Whether the server or its load generator was the limit, from windows of the default. Pure.

A closed loop runs as fast as its busiest part. When that is the generator, goodput measures the generator,
and a better server shows only in what it costs (the utilisation law: busy time = throughput × service demand;
Denning & Buzen, "The operational analysis of queueing network models", Computing Surveys 10, 1978).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tuner.records import GENERATOR_BUSY, Window

SERVER_BUSY = 0.90
"""Share of its CPUs. A server above it is at its limit as well, and goodput still follows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """How busy both sides of a load were."""

    generator_busy: float
    """Share of its CPUs, the median of all windows."""
    server_busy: float
    """The same of the server's; 1 where nobody can tell."""
    has_cost: bool
    """Whether the CPU time of the server could be read."""

    @property
    def is_generator(self) -> bool:
        """Whether the load generator was the limit, and not the server."""
        return self.generator_busy >= GENERATOR_BUSY and self.server_busy < SERVER_BUSY


def find_bottleneck(windows: Sequence[Window]) -> Bottleneck:
    """Compare how busy both sides were.

    Raises:
        ValueError: there is no window.
    """
    if not windows:
        raise ValueError("bottleneck: there is no window. Measure the default first.")
    return Bottleneck(
        generator_busy=median(window.generator_cpu for window in windows),
        server_busy=median(_server_busy(window) for window in windows),
        has_cost=all(window.counters.get("server_cpu_s", 0.0) > 0 for window in windows),
    )


def _server_busy(window: Window) -> float:
    """Return the share of the server's CPUs that was not idle; a guest's stolen time counts as busy."""
    counters = window.counters
    capacity_s = counters.get("server_cpus", 0.0) * counters.get("elapsed_s", 0.0)
    if "server_idle_s" not in counters or capacity_s <= 0:
        return 1.0
    return max(0.0, 1 - counters["server_idle_s"] / capacity_s)
