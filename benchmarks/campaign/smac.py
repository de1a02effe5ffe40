"""SMAC3 as the optimizer of a campaign: told the whole history, then asked once."""

import math
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tuner.optimize.optimizer import Observation, Point, Suggestion
from tuner.ports import Scalar
from tuner.space import Dimension

if TYPE_CHECKING:
    from ConfigSpace import Configuration, ConfigurationSpace
    from smac import Scenario

FIRST = 6
"""Points of its initial design; its usual share of so few trials, and as many as ours draws."""
MOST_TRIALS = 1000
"""Never reached: the campaign decides when the search ends."""


class Smac:
    """SMAC3's facade for expensive functions of many kinds of parameters: a random forest, log EI."""

    def suggest(
        self,
        dimensions: Sequence[Dimension],
        observations: Sequence[Observation],
        *,
        seed: int,
        refused: int = 0,
    ) -> Suggestion:
        """Return a point within the dimensions; the same arguments give the same point."""
        from smac import HyperparameterOptimizationFacade as Facade
        from smac import Scenario

        space = _translate(dimensions, seed)
        with TemporaryDirectory(prefix="smac-") as folder:
            scenario = Scenario(
                space, deterministic=True, n_trials=MOST_TRIALS, seed=seed, output_directory=folder
            )
            number = len(observations) - 1 + refused
            if number < FIRST:
                chosen = Facade.get_initial_design(scenario, n_configs=FIRST).select_configurations()[number]
            else:
                chosen = _ask(scenario, dimensions, observations, refused)
        return Suggestion(point=_decode(dimensions, chosen))


def _ask(
    scenario: "Scenario", dimensions: Sequence[Dimension], observations: Sequence[Observation], refused: int
) -> "Configuration":
    """Tell a new facade the history, and ask it once more than was refused."""
    from smac import HyperparameterOptimizationFacade as Facade
    from smac.runhistory.dataclasses import TrialInfo, TrialValue

    told = [_encode(scenario.configspace, dimensions, seen.point) for seen in observations]
    # What is told is not asked for, so that this leaves nothing of an initial design.
    design = Facade.get_initial_design(scenario, n_configs=0, additional_configs=told[:1])
    smac = Facade(scenario, _never_called, initial_design=design, overwrite=True, logging_level=50)
    for config, cost in zip(told, _costs(observations), strict=True):
        smac.tell(TrialInfo(config, seed=0), TrialValue(cost=cost))
    return [smac.ask().config for _ in range(refused + 1)][-1]


def _never_called(_config: object, seed: int = 0) -> float:
    raise NotImplementedError


def _costs(observations: Sequence[Observation]) -> list[float]:
    """Return what SMAC minimizes. What gave no measurement, or is infeasible, costs what the worst does."""
    known = [-seen.log_ratio for seen in observations if seen.log_ratio is not None]
    worst = max(known, default=0.0)
    return [
        -seen.log_ratio if seen.log_ratio is not None and seen.is_feasible else worst for seen in observations
    ]


def _translate(dimensions: Sequence[Dimension], seed: int) -> "ConfigurationSpace":
    from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

    space = ConfigurationSpace(seed=seed)
    for each in dimensions:
        if each.kind == "categorical":
            space.add(Categorical(each.name, [*range(len(each.choices))]))
        elif each.low < each.high:
            kind = Integer if each.kind == "int" else Float
            space.add(kind(each.name, (each.low, each.high), log=each.log))
    return space


def _encode(space: "ConfigurationSpace", dimensions: Sequence[Dimension], point: Point) -> "Configuration":
    from ConfigSpace import Configuration

    values: dict[str, Any] = {}
    for each in dimensions:
        if each.kind == "categorical":
            values[each.name] = each.choices.index(point[each.name])
        elif each.low < each.high:
            values[each.name] = point[each.name]
    return Configuration(space, values=values)


def _decode(dimensions: Sequence[Dimension], config: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the point of a configuration; numbers that go in steps are put on the nearest one."""
    point: dict[str, Scalar] = {}
    for each in dimensions:
        if each.kind == "categorical":
            point[each.name] = each.choices[int(config[each.name])]
        elif each.low >= each.high:
            point[each.name] = each.low
        elif each.kind == "int":
            step = int(each.step or 1)
            steps = min(
                round((config[each.name] - each.low) / step), math.floor((each.high - each.low) / step)
            )
            point[each.name] = int(each.low + steps * step)
        else:
            point[each.name] = float(config[each.name])
    return point
