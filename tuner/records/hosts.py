"""The hosts of a study for all of which its winner is to hold."""

from dataclasses import dataclass
from enum import StrEnum


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
    """As starts name the host on which they were made; at least two."""
    across: AcrossHosts
