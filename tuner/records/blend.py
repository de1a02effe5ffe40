"""How several loads of a study become one number, and the gains on several hosts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Across(StrEnum):
    """What counts of the gains under several loads."""

    WORST = "worst"
    """The smallest ratio to the default."""
    WEIGHTED = "weighted"
    """The weighted geometric mean of the ratios."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """The loads of a study, and what counts of them together."""

    across: Across
    """Whether the weighted mean counts, or the worst."""
    weights: Mapping[str, float]
    """Load → its weight; they sum to 1."""
    levels: Mapping[str, float] = field(default_factory=dict)
    """Load → logarithm of what the default gives under it; empty until that was measured."""

    def combine(self, logs: Mapping[str, float]) -> float:
        """Return one logarithm for those under each load.

        Ratios to the default are needed to tell which is the worst: without levels the mean stands for it,
        which is as noisy. In the weighted mean, levels cancel out of every ratio.
        """
        if self.across is Across.WORST and self.levels:
            return min(log - self.levels[name] for name, log in logs.items())
        return sum(self.weights[name] * log for name, log in logs.items())


class AcrossHosts(StrEnum):
    """What counts of the gains on several hosts."""

    WORST = "worst"
    """The smallest ratio to the default of the same host."""
    MEAN = "mean"
    """The geometric mean of the ratios, each host counting the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """The hosts for which a winner is to hold, and what counts of its gains there."""

    names: tuple[str, ...]
    """As trials name the host on which they were made; at least two."""
    across: AcrossHosts
