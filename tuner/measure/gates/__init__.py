"""Validity gates: whether a window was what it should be, and if not, whose fault it is. Pure.

The environment's fault: the window is discarded and repeated within a budget. The configuration's: it counts
against it. A warning: the window counts, and a report shows it.
"""

from collections.abc import Callable

from tuner.measure.gates import host as host_gates
from tuner.measure.gates import load as load_gates
from tuner.measure.gates.facts import HEALTHY, BaselineFacts, Thresholds, WindowFacts
from tuner.measure.gates.retries import Noisy, RetryBudget
from tuner.records import Verdict

__all__ = [
    "HEALTHY",
    "BaselineFacts",
    "Noisy",
    "RetryBudget",
    "Thresholds",
    "WindowFacts",
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
    """Return the verdicts of all gates that did not pass."""
    return tuple(verdict for gate in GATES if (verdict := gate(facts)) is not None)
