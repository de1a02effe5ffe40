"""What several studies say together: a random-effects mean, and what is to be expected on one more host.

Every study i has an effect yᵢ with variance vᵢ, and a likeness wᵢ. The likelihood of a study that is alike by
wᵢ counts to the power of wᵢ (the power prior of Ibrahim & Chen 2000, doi 10.1214/ss/1009212673), so that its
variance is vᵢ / wᵢ. The hosts differ truly, by τ², which DerSimonian & Laird (1986, doi
10.1016/0197-2456(86)90046-2) estimate from how far the effects are apart. A few studies cannot show that, so
that it is mixed with what is usual (USUAL_SPREAD), which counts as USUAL_DEGREES studies. A new host is one
more draw: its effect has the variance of the mean and τ² (Higgins, Thompson & Spiegelhalter 2009, doi
10.1111/j.1467-985X.2008.00552.x).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Array = NDArray[np.float64]

USUAL_SPREAD, USUAL_DEGREES = 0.06, 2.0
"""Log points by which an effect differs between hosts, and as how many studies more than one that counts."""
REACH = float(ndtri(0.975))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """An effect that several studies know, in log points."""

    mean: float
    error: float
    """Standard error of the mean."""
    spread: float
    """Standard deviation between hosts."""

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the mean."""
        return self.mean - REACH * self.error, self.mean + REACH * self.error

    def chance_above(self, least: float) -> float:
        """Return the probability that the effect on one more host is above `least`."""
        return float(ndtr((self.mean - least) / math.hypot(self.error, self.spread)))


def pool(effects: Array, variances: Array, likenesses: Array) -> Pooled:
    """Return what studies say together; shape (k,) each, at least one, with likenesses above 0."""
    told = np.maximum(variances, 1e-8) / likenesses
    weights = 1 / told
    mean = float(weights @ effects / weights.sum())
    excess = float(weights @ (effects - mean) ** 2) - (len(effects) - 1)
    room = float(weights.sum() - (weights**2).sum() / weights.sum())
    seen, degrees = max(0.0, excess / room) if room > 0 else 0.0, len(effects) - 1
    spread = (USUAL_DEGREES * USUAL_SPREAD**2 + degrees * seen) / (USUAL_DEGREES + degrees)
    weights = 1 / (told + spread)
    return Pooled(
        mean=float(weights @ effects / weights.sum()),
        error=float(weights.sum() ** -0.5),
        spread=math.sqrt(spread),
    )
