"""What a running study reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tuner.ports import Scalar
from tuner.records import Role, Trial

if TYPE_CHECKING:
    from tuner.statistics.baseline_level import Speedup

Changes = Mapping[str, tuple[Scalar, Scalar]]
"""Parameter name → default and value."""

STAGES = ("calibrate", "search", "race", "ablation", "robustness", "confirm", "latency", "effects")
"""Of a study, in their order; one without need of a stage leaves it out."""
UNKNOWN = 0
"""Total of a stage that ends when it has nothing more to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """One of the best configurations so far."""

    changes: Changes
    speedup: "Speedup"
    """By all trials of the study."""
    trials: int
    """Of this configuration."""


class Progress(Protocol):
    """Called by the study as it goes; never raises."""

    def stage(self, name: str, done: int, total: int) -> None:
        """A stage (calibrate, search, race …) stands at `done` of `total` trials; `total` 0 is unknown."""

    def trial_begins(self, role: Role, label: str) -> None:
        """A trial is being made; the label says in a few words of what."""

    def trial_ends(self, trial: Trial, speedup: "Speedup | None") -> None:
        """A trial is over and on disk; the speedup is None when it gave no measurement."""

    def leaders(self, leaders: Sequence[Leader]) -> None:
        """The best configurations so far, best first; told after every trial, which revises all of them."""

    def note(self, text: str) -> None:
        """Something worth a line: a failed check, a warning, a retry."""

    def waits(self, seconds: float) -> None:
        """Nothing is measured until other programs leave the host alone, for so long at most."""

    def time_left(self, seconds: float) -> None:
        """The rest of the run will take about this long."""


class NullProgress:
    """Ignores everything."""

    def stage(self, name: str, done: int, total: int) -> None: ...
    def trial_begins(self, role: Role, label: str) -> None: ...
    def trial_ends(self, trial: Trial, speedup: "Speedup | None") -> None: ...
    def leaders(self, leaders: Sequence[Leader]) -> None: ...
    def note(self, text: str) -> None: ...
    def waits(self, seconds: float) -> None: ...
    def time_left(self, seconds: float) -> None: ...
