"""Validity gates: was a window what it should be, and if not, whose fault is it. Pure.

The environment's fault: the window is discarded and repeated within a budget. The configuration's: it counts
against it. A warning: the window counts, and a report shows it.
"""

from collections.abc import Callable, Sequence

from tuner.measure import host_gates, load_gates
from tuner.measure.retries import Noisy, RetryBudget
from tuner.measure.thresholds import Thresholds
from tuner.measure.window_facts import HEALTHY, ControlFacts, Gate, WindowFacts
from tuner.records import Verdict, Window

__all__ = [
    "HEALTHY",
    "ControlFacts",
    "Gate",
    "Noisy",
    "RetryBudget",
    "Thresholds",
    "WindowFacts",
    "is_censored",
    "judge",
]

GATES: tuple[Callable[[WindowFacts], Verdict | None], ...] = (
    load_gates.generator,
    load_gates.duration,
    load_gates.saturated,
    host_gates.steal,
    host_gates.foreign,
    host_gates.quota,
    host_gates.ports,
    host_gates.memory,
    load_gates.body,
    load_gates.errors,
    load_gates.effective,
    host_gates.clock,
)


def judge(facts: WindowFacts) -> tuple[Verdict, ...]:
    """Ask every gate; those that have nothing to say are silent."""
    return tuple(verdict for gate in GATES if (verdict := gate(facts)) is not None)


def is_censored(windows: Sequence[Window]) -> bool:
    """Tell whether goodput is only a lower bound: in most windows the generator could not send more."""
    full = sum(any(verdict.gate == Gate.SATURATED for verdict in window.verdicts) for window in windows)
    return 2 * full > len(windows)
