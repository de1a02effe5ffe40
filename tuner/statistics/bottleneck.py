"""Whether a load generator leaves goodput room to grow, from windows of the default. Pure.

A closed loop runs as fast as its busiest part (the utilisation law: busy time = throughput × service demand;
Denning & Buzen, "The operational analysis of queueing network models", Computing Surveys 10, 1978). A
generator that is 95 % busy lets goodput grow by 1/0.95 at the most, whatever the server does, be it busy as
well: a better server shows only in what it costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tuner.records import GENERATOR_BUSY, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """How busy both sides of a load were."""

    generator_busy: float
    """Share of its CPUs, the median of all windows."""
    server_busy: float | None
    """The same of the server's; None where it was not read."""
    has_cost: bool
    """Whether the CPU time of the server could be read."""

    @property
    def is_generator(self) -> bool:
        """Whether the load generator is the limit, or is where any better server would meet it."""
        return self.generator_busy >= GENERATOR_BUSY and self.server_busy is not None

    def __str__(self) -> str:
        server = "" if self.server_busy is None else f", the server {100 * self.server_busy:.0f} % of its own"
        return f"the load generator used {100 * self.generator_busy:.0f} % of its CPUs{server}"


def find_bottleneck(windows: Sequence[Window]) -> Bottleneck:
    """Compare how busy both sides were.

    Raises:
        ValueError: there is no window.
    """
    if not windows:
        raise ValueError("bottleneck: there is no window. Measure the default first.")
    busy = [share for window in windows if (share := _server_busy(window)) is not None]
    return Bottleneck(
        generator_busy=median(window.generator_cpu for window in windows),
        server_busy=median(busy) if len(busy) == len(windows) else None,
        has_cost=all(window.counters.get("server_cpu_s", 0.0) > 0 for window in windows),
    )


def _server_busy(window: Window) -> float | None:
    """Return the share of the server's CPUs that was not idle; a guest's stolen time counts as busy."""
    counters = window.counters
    capacity_s = counters.get("server_cpus", 0.0) * counters.get("elapsed_s", 0.0)
    if "server_idle_s" not in counters or capacity_s <= 0:
        return None
    return max(0.0, 1 - counters["server_idle_s"] / capacity_s)
