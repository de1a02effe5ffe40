"""Which parameters switch others off, learned from the trials that lack some."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tuner.optimize.encoding import Points

OFF = -1.0
"""Stands for a parent that is itself switched off."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Parents of the conditional columns."""

    conditional: NDArray[np.bool_]
    """Shape (d,): whether any trial lacked the parameter."""
    parents: Mapping[int, tuple[int, frozenset[float]]]
    """By child: the column of its parent, and the parent's values at which the child is off."""

    @classmethod
    def learn(cls, points: Points, is_choice: NDArray[np.bool_]) -> Self:
        """Find for each column with gaps a choice that explains them all.

        Args:
            points: shape (n, d), NaN where a trial has no such parameter.
            is_choice: shape (d,); only a choice is taken for a parent.
        """
        missing = np.isnan(points)
        conditional = np.asarray(missing.any(axis=0))
        parents = {}
        for child in np.flatnonzero(conditional):
            found = [
                (len(np.unique(points[:, parent])), int(parent), off)
                for parent in np.flatnonzero(is_choice)
                if parent != child
                and (off := _values_at_which_off(points[:, parent], missing[:, child])) is not None
            ]
            if found:
                _, parent, off = min(found, key=lambda each: each[:2])
                parents[int(child)] = (parent, off)
        return cls(conditional=conditional, parents=parents)

    def apply(self, points: Points) -> Points:
        """Switch off what its parent switches off; what was never seen off is on."""
        points = points.copy()
        for _ in range(len(self.parents)):
            before = np.isnan(points)
            for child, (parent, off) in self.parents.items():
                at = np.nan_to_num(points[:, parent], nan=OFF)
                points[np.isin(at, list(off)), child] = np.nan
            if np.array_equal(before, np.isnan(points)):
                break
        return points


def _values_at_which_off(parent: NDArray[np.float64], missing: NDArray[np.bool_]) -> frozenset[float] | None:
    """Give the parent's values at which the child is missing, None where that is no function of them."""
    at = np.nan_to_num(parent, nan=OFF)
    off, on = set(at[missing].tolist()), set(at[~missing].tolist())
    return None if off & on else frozenset(off)
