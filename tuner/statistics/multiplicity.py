"""What several answers to one question say together, and how far the most contrary one may be by chance."""

import math
from collections.abc import Sequence

from scipy.special import ndtr, ndtri


def combine(probabilities: Sequence[float]) -> float:
    """Return what several answers to one question say together (Stouffer 1949): 1 where all are certain."""
    bounded = [min(max(each, 1e-9), 1 - 1e-9) for each in probabilities]
    return float(ndtr(sum(map(ndtri, bounded)) / math.sqrt(len(bounded))))


def share_among(least: float, count: int) -> float:
    """Return what each of several has to reach, so that all do by chance as often as one reaches `least`.

    After Šidák 1967, of probabilities that are uniform where there is nothing to find.
    """
    return float(1 - (1 - least) ** (1 / count))
