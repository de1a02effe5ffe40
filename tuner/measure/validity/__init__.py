"""Validity checks: whether a window was what it should be, and if not, whose fault it is. Pure.

The environment's fault: the window is discarded and repeated within a budget. The configuration's: it counts
against it. A warning: the window counts, and a report shows it.
"""

from collections.abc import Callable

from tuner.measure.validity import host as host_checks
from tuner.measure.validity import load as load_checks
from tuner.measure.validity.facts import HEALTHY, BaselineFacts, Thresholds, WindowFacts
from tuner.measure.validity.retries import Noisy, RetryBudget
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

CHECKS: tuple[Callable[[WindowFacts], Verdict | None], ...] = (
    load_checks.generator,
    load_checks.duration,
    load_checks.schedule,
    load_checks.saturated,
    host_checks.steal,
    host_checks.foreign,
    host_checks.quota,
    host_checks.ports,
    host_checks.memory,
    load_checks.body,
    load_checks.errors,
    load_checks.effective,
    host_checks.clock,
)


def judge(facts: WindowFacts) -> tuple[Verdict, ...]:
    """Return the verdicts of all checks that did not pass."""
    return tuple(verdict for check in CHECKS if (verdict := check(facts)) is not None)
