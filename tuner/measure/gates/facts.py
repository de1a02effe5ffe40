"""Input of the validity gates, and their verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuner.hosts.connection_room import DEFAULT_PORTS
from tuner.measure.gates.thresholds import DEFAULTS, Thresholds
from tuner.ports import LoadResult
from tuner.records import Blame, Gate, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFacts:
    """What the default showed on the same machine, to tell a configuration's fault from the machine's."""

    is_healthy: bool = True
    """Whether the last start of the default could be measured."""
    major_faults_per_s: float = 0.0
    """Pages that its server read from disk."""


HEALTHY = ControlFacts()
"""A default of which nothing bad is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFacts:
    """What the gates look at in one window."""

    asked_s: float
    """How long the load should have lasted, or may have where it ends after so many requests."""
    result: LoadResult | None
    """What the generator counted; None when it failed or its output cannot be understood."""
    counters: Mapping[str, float]
    """As `counters.difference` gives them; a gate whose counters are missing is silent."""
    generator_cpu: float = 0.0
    """CPU seconds of the generator per second and per CPU it may use."""
    problem: str | None = None
    """How the generator failed, when there is no result."""
    lost: str | None = None
    """Which load host could not be used, and why."""
    requests_total: int | None = None
    """Requests after which the load should have ended; None for a load that ends by time."""
    problems_in_row: int = 1
    """Windows in a row in which the generator failed or gave up, this one included, if it did."""
    control: ControlFacts = HEALTHY
    not_effective: tuple[str, ...] = ()
    """One sentence for each setting that is not, or no longer, in force as asked."""
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


def fault(gate: Gate, reason: str) -> Verdict:
    """Blame the environment."""
    return Verdict(gate=gate, blame=Blame.ENVIRONMENT, reason=f"{reason}.")


def blamed(gate: Gate, reason: str) -> Verdict:
    """Blame the configuration."""
    return Verdict(gate=gate, blame=Blame.CONFIGURATION, reason=f"{reason}.")


def warning(gate: Gate, reason: str) -> Verdict:
    """Blame nobody; the window counts."""
    return Verdict(gate=gate, blame=Blame.WARNING, reason=f"{reason}.")
