"""What each change of a configuration is probably worth, guessed from all starts so far.

A guess for choosing what to leave out next; what a change is really worth is measured in pairs.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tuner.ports import Config, Scalar
from tuner.regions import Line, draw_line, is_same

if TYPE_CHECKING:
    from tuner.measure.control import Speedup
    from tuner.records import Start
    from tuner.space import Space

PRIOR_SPREAD = 0.1
"""Standard deviation of one change's worth, in log goodput: a weak guess, it only orders the changes."""
UNEXPLAINED_SPREAD = 0.1
"""What settings outside the configuration's changes do to a start, in log goodput."""


def rank_changes(
    space: "Space", starts: Sequence["Start"], speedups: Mapping[int, "Speedup"], config: Config
) -> list[str]:
    """Name the parameters that a configuration changes, the least worth first.

    Bayesian linear regression of the log speedup on how far every start went from the default's value to the
    configuration's. The default is the origin (log speedup 0), so there is no intercept; how many other
    settings a start changes is a covariate of its own.
    """
    import numpy as np

    changes = dict(space.changes(config))
    names = list(changes)
    seen = [start for start in starts if start.number in speedups]
    if not names or not seen:
        return names
    lines = {name: draw_line(space, name, values_of(name, seen, changes[name])) for name in names}
    rows = []
    for start in seen:
        others = sum(name not in changes for name in space.changes(start.config))
        shares = [share_gone(lines[name], *changes[name], start.config.get(name)) for name in names]
        rows.append([*shares, others / 10])
    design = np.array(rows)
    logs = np.array([speedups[start.number].log_ratio for start in seen])
    weights = 1 / (np.array([speedups[start.number].variance for start in seen]) + UNEXPLAINED_SPREAD**2)
    precision = (design.T * weights) @ design + np.eye(design.shape[1]) / PRIOR_SPREAD**2
    worth = np.linalg.solve(precision, (design.T * weights) @ logs)
    return sorted(names, key=lambda name: (float(worth[names.index(name)]), name))


def values_of(name: str, starts: Sequence["Start"], change: tuple[Scalar, Scalar]) -> list[Scalar]:
    """Collect the values of one parameter that were tried."""
    return [*change, *(start.config[name] for start in starts if name in start.config)]


def share_gone(line: Line, default: Scalar, value: Scalar, here: Scalar | None) -> float:
    """Say how far a value went from the default (0) to the configuration's (1)."""
    if here is None or is_same(here, default):
        return 0.0
    if is_same(here, value):
        return 1.0
    begin, end, at = (line.position(each) for each in (default, value, here))
    if math.isnan(at) or math.isnan(end):
        return 0.0
    if math.isnan(begin):  # from off, or another special value, to a number: any number is most of the way
        return 1.0 - abs(at - end)
    return min(1.0, max(0.0, (at - begin) / (end - begin))) if end != begin else 0.0
