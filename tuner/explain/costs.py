"""Observations of a second objective, such as response times, for the same model as goodput's."""

from collections.abc import Sequence

import numpy as np

from tuner.explain.beliefs import TOLD
from tuner.optimize.encoding import Encoding
from tuner.optimize.gp import ObservationNoise
from tuner.optimize.replay import shared
from tuner.records import Role, Trial
from tuner.space import Space
from tuner.statistics.noise import Noise
from tuner.statistics.observations import Moments, Observations, Walk, Walks, encode, make_columns
from tuner.statistics.pareto import find_levels, log_cost
from tuner.statistics.ranking import as_baselines


def observe_costs(space: Space, trials: Sequence[Trial], metric: str) -> Observations | None:
    """Return the logs of a cost of all trials; None where the default's is not known often enough.

    Each host has a level of its own. The noise of one trial is that of the default's trials there among each
    other, drift included.
    """
    told = [each for each in as_baselines(trials) if each.role in TOLD]
    seen = [(trial, log) for trial in told if (log := log_cost(trial, metric)) is not None]
    levels = find_levels((trial.host, log) for trial, log in seen if trial.role is Role.BASELINE)
    if levels is None:
        return None
    seen = [(trial, log) for trial, log in seen if trial.host in levels.mean]
    first = next(iter(levels.mean.values()))
    offsets = {host: mean - first for host, mean in levels.mean.items()}
    moments = Moments.of([trial for trial, _ in seen])
    still = Walk(first_s=float(moments.times.min()), drift_per_s=0.0, jumps=())
    encoding = Encoding(shared(space.dimensions))
    return Observations(
        noise=Noise(
            sigma_window=0.0,
            sigma_trial=levels.noise**0.5,
            drift_per_s=0.0,
            degrees_window=1.0,
            degrees_trial=float(levels.degrees),
        ),
        walks=Walks(by_host=dict.fromkeys(moments.hosts, still), offsets=offsets),
        moments=moments,
        encoding=encoding,
        columns=make_columns(space, encoding),
        points=encode(space, encoding, [trial.config for trial, _ in seen]),
        values=np.array([log - offsets[trial.host] for trial, log in seen]),
        apart=ObservationNoise(own=np.full(len(seen), levels.noise), degrees=float(levels.degrees)),
    )
