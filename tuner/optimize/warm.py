"""What earlier studies found good, for the search to mix with what is good in this one.

The model alone decides whether a mixture is worth a trial, so that what is no longer true does no harm. A
prior that multiplies the acquisition (Hvarfner et al. 2022, πBO, arXiv 2204.11051) does, and its gain was
none; the figures are in benchmarks/optimizer.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tuner.optimize.encoding import Encoding, Points


def recall(
    warm: Sequence[Mapping[str, Any]], count: int, encoding: Encoding, rng: np.random.Generator
) -> Points:
    """Give so many of the earlier points, each time others; where there are fewer, some several times.

    What they lack, and what today's space has otherwise, is NaN.

    Returns:
        Shape (count, d); (0, d) where there are none.
    """
    points = encoding.encode([_usable(each, encoding) for each in warm])
    return points[np.resize(rng.permutation(len(warm)), count)] if len(warm) else points


def _usable(params: Mapping[str, Any], encoding: Encoding) -> dict[str, Any]:
    """Leave out what is no number where one is needed."""
    return {
        name: params[name]
        for name, choices in zip(encoding.names, encoding.choices, strict=True)
        if name in params and (choices is not None or isinstance(params[name], int | float))
    }
