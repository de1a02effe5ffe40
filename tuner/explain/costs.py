"""Observations of a second objective, such as response times, for the same model as goodput's."""

from collections.abc import Sequence

import numpy as np

from tuner.explain.beliefs import TOLD
from tuner.optimize.encoding import Encoding
from tuner.optimize.gp import ObservationNoise
from tuner.optimize.replay import shared
from tuner.records import Role, Start
from tuner.space import Space
from tuner.statistics.noise import Noise
from tuner.statistics.observations import Moments, Observations, Walk, Walks, encode, make_columns
from tuner.statistics.pareto import find_levels, log_cost
from tuner.statistics.ranking import as_controls


def observe_costs(space: Space, starts: Sequence[Start], metric: str) -> Observations | None:
    """Return the logs of a cost of all starts; None where the default's is not known often enough.

    Each host has a level of its own. The noise of one start is that of the default's starts there among each
    other, drift included.
    """
    told = [each for each in as_controls(starts) if each.role in TOLD]
    seen = [(start, log) for start in told if (log := log_cost(start, metric)) is not None]
    levels = find_levels((start.host, log) for start, log in seen if start.role is Role.CONTROL)
    if levels is None:
        return None
    seen = [(start, log) for start, log in seen if start.host in levels.mean]
    first = next(iter(levels.mean.values()))
    offsets = {host: mean - first for host, mean in levels.mean.items()}
    moments = Moments.of([start for start, _ in seen])
    still = Walk(first_s=float(moments.times.min()), drift_per_s=0.0, jumps=())
    encoding = Encoding(shared(space.dimensions))
    return Observations(
        noise=Noise(
            sigma_window=0.0,
            sigma_start=levels.noise**0.5,
            drift_per_s=0.0,
            degrees_window=1.0,
            degrees_start=float(levels.degrees),
        ),
        walks=Walks(by_host=dict.fromkeys(moments.hosts, still), offsets=offsets),
        moments=moments,
        encoding=encoding,
        columns=make_columns(space, encoding),
        points=encode(space, encoding, [start.config for start, _ in seen]),
        values=np.array([log - offsets[start.host] for start, log in seen]),
        apart=ObservationNoise(own=np.full(len(seen), levels.noise), degrees=float(levels.degrees)),
    )
