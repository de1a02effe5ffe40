"""What is explained of a study: plain data, which the terminal, the page and `--json` show.

All effects are ratios of what the study maximizes, with the bounds between which they lie with 95 %
probability: 1.39 is 39 % more. In logarithms the effects of the settings add up to the gain.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from tuner.ports import Scalar
from tuner.statistics.mechanism import Mechanism

Ratio = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""As it is checked where an explanation is read from a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A factor on what the study maximizes, with its 95 % interval."""

    ratio: Ratio
    """The factor: 1.1 is 10 % more."""
    low: Ratio
    """Lower end of the interval."""
    high: Ratio
    """Upper end of the interval."""

    @property
    def log(self) -> float:
        """Return it in log points, in which effects add up."""
        return math.log(self.ratio)


class Finding(StrEnum):
    """What can be said of a parameter."""

    HELPS = "helps"
    HARMFUL = "harmful"
    NO_EFFECT = "no effect"
    """Beyond its bound."""
    UNKNOWN = "unknown"
    CANNOT_ACT = "cannot act"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One change of the configuration that is explained."""

    parameter: str
    """Name of the setting."""
    default: Scalar
    """Its default."""
    value: Scalar
    """Its value in the configuration."""
    effect: Effect
    """Its share of the gain by Shapley; the shares of all settings multiply to the gain."""
    if_reverted: Effect
    """Its effect if reverted: the configuration over the same one with this setting reverted."""
    chance: float
    """Probability that its effect is more than 0.5 %."""
    finding: Finding
    """It helps by `effect` or by `if_reverted`; that it harms or has no effect is said by `if_reverted`."""
    bound: float | None = None
    """Share beyond which it has no effect, 0.02 is 2 %; None where none can be told."""
    mechanisms: tuple[Mechanism, ...] = ()
    """Counters that moved between the trials without and those with the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """One parameter that the configuration leaves at its default."""

    parameter: str
    """Name of the parameter."""
    default: Scalar | None
    """None where it has none, because it is off."""
    finding: Finding
    """Whether another value helps, harms, does nothing or is unknown."""
    value: Scalar | None = None
    """Where it helps or harms most for sure; None where neither is known."""
    effect: Effect | None = None
    """Of that value over the default, all else as configured."""
    bound: float | None = None
    """Share beyond which no value that was tried has an effect: 0.02 is 2 %; None where none can be told."""
    reason: str = ""
    """Why it cannot act, or why nothing is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The range of a number in which the gain stays, all else as configured."""

    parameter: str
    """Name of the parameter."""
    value: Scalar
    """As configured; it lies in the range."""
    low: Scalar
    """Lower end of the range."""
    high: Scalar
    """Upper end of the range."""
    is_open_below: bool
    """Whether `low` is the lowest value of the search, so that nobody knows what lies beyond."""
    is_open_above: bool
    """Whether `high` is the highest value of the search."""
    loss: float
    """What is lost in the range at the most: 0.01 is 1 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """What two settings give together beyond what each gives alone."""

    parameters: tuple[str, str]
    """Names of both settings."""
    effect: Effect
    """Of both, over the product of each alone; above 1 they help each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What it would take to prove a gain that is not proven."""

    pairs: int | None
    """More pairs; None where no number of them is likely to prove it."""
    seconds: float | None
    """Time that these pairs take; None where `pairs` is."""
    noise: float
    """SD of the log ratio of a pair on this host: 0.05 is 5 %."""
    expected: Effect
    """The gain that all trials together let expect."""
    sentence: str = ""
    """The same in words, with the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One value on a response curve."""

    value: Scalar
    at_winner: Effect | None
    """Over the configuration as it is; None where the value does not fit it."""
    at_default: Effect | None
    """Over the default."""
    trials: int = 0
    """Trials with this very value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """Everything that is known of one parameter."""

    parameter: str
    unit: str
    why: str
    source: str
    also: str
    acts_when: str
    acts_source: str
    curve: tuple[CurvePoint, ...]
    """In the order of the values."""
    setting: Setting | None
    other: Other | None
    """One of both is there: the first for what is changed."""
    tolerance: Tolerance | None
    interactions: tuple[Interaction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One study explained, or why it is not."""

    metric: str
    """What effects are factors on, such as goodput_rps."""
    refusal: str = ""
    """Why nothing is explained; empty when something is."""
    is_confirmed: bool = False
    """Whether the gain comes from the pairs of the confirmation, together with all other trials."""
    gain: Effect | None = None
    """Of all settings together: the confirmed gain; before the confirmation, an estimate by all trials."""
    settings: tuple[Setting, ...] = ()
    """Largest effect first."""
    others: tuple[Other, ...] = ()
    """What helps first, then what harms, what has no effect, what is unknown, what cannot act."""
    tolerances: tuple[Tolerance, ...] = ()
    """For each number of the configuration, the range that keeps the gain."""
    interactions: tuple[Interaction, ...] = ()
    """Strongest first, only those that the trials tell from none."""
    conclusions: tuple[str, ...] = ()
    """Sentences to act on, the most important first."""
    proof: Proof | None = None
    """Of what is not proven."""
    trials: int = 0
    """That the explanation rests on, pairs not counted."""
    beside: "Explanation | None" = None
    """The same of the second objective, where less is better; None without one."""
