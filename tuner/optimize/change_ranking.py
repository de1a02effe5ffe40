"""Ranks the changes of a configuration by what the model expects each to be worth.

A guess for choosing what to leave out next; what a change is really worth is measured in pairs.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tuner.ports import Config

if TYPE_CHECKING:
    from tuner.optimize.optimizer import Observation
    from tuner.space import Space


def rank_changes(space: "Space", observations: Sequence["Observation"], config: Config) -> list[str]:
    """Return the parameters that a configuration changes, the least worth first.

    Each is put back to its default alone, and the optimizer's model says what would be left: it holds the
    settings of every start apart, which differences of averages do not.

    Args:
        space: of the study.
        observations: of every start so far.
        config: whose changes are ranked; where the search was, for there the model knows most.
    """
    from tuner.optimize.model import predict

    names = list(space.changes(config))
    if len(names) < 2 or all(seen.log_ratio is None for seen in observations):  # noqa: PLR2004 - no order of one
        return names
    reduced = [
        space.complete({other: config[other] for other in names if other != name}, fit=True) for name in names
    ]
    left = predict(space.dimensions, observations, [space.encode(each) for each in reduced])
    return [names[index] for index in (-left).argsort(kind="stable")]
