"""What other values of each parameter would give: findings, tolerances and response curves."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.explain.beliefs import TOLD, Array, Beliefs, read_effect
from tuner.explain.explanation import Finding, Other, Tolerance
from tuner.explain.findings import find
from tuner.explain.variation import (
    Values,
    find_run,
    is_among,
    is_same,
    list_values,
    place_of,
    vary,
)
from tuner.ports import Config, Scalar
from tuner.records import Trial
from tuner.space import Space
from tuner.space.lacking import say_lacking
from tuner.space.parameters import Parameter

LOSSES = (0.01, 0.02, 0.03, 0.05, 0.1)
"""What a tolerance may promise; the least that holds in a range is given."""
LEAST_RANGE = 0.1
"""Share of the searched range below which a tolerance tells nobody anything."""
TOLERANCE_SURE = 0.9
"""Probability with which a loss is no more than promised."""
LEAST_TRIED = 3
"""Trials at other values, below which nothing is said of a setting, and no tolerance: a model that was shown
nothing falls back on what it believed beforehand."""
ORDER = (Finding.HELPS, Finding.HARMFUL, Finding.NO_EFFECT, Finding.UNKNOWN, Finding.CANNOT_ACT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Effects of the values of one parameter over a configuration, all else as it is."""

    parameter: str
    value: Scalar
    """Of the configuration."""
    values: tuple[Scalar, ...]
    """Those that fit the rest of it; numbers first, in order."""
    places: tuple[float, ...]
    """Of the numbers among them, 0 to 1 on the scale that is searched."""
    draws: Array
    """Shape (draws, values), in log points."""
    tried: int
    """Trials with another value than the configuration's, and than the default's."""

    @property
    def others(self) -> list[int]:
        """Return the indices of the values that the configuration does not have."""
        return [index for index, each in enumerate(self.values) if not is_same(each, self.value)]


def respond(
    beliefs: Beliefs, trials: Sequence[Trial], config: Config, asked: Mapping[str, Values]
) -> dict[str, Response]:
    """Return the responses of parameters around a configuration, by name; those that are off are left out."""
    space = beliefs.space
    tried = [each.config for each in trials if each.counts and each.role in TOLD]
    default, changes = space.default(), space.chosen(config)
    fits = {
        name: [(value, varied) for value in values.every if (varied := vary(space, changes, name, value))]
        for name, values in asked.items()
        if name in config
    }
    if not fits:  # np.split has a part even where nothing is asked
        return {}
    configs = [config, *(varied for each in fits.values() for _, varied in each)]
    contrasts = np.hstack([-np.ones((len(configs) - 1, 1)), np.eye(len(configs) - 1)])
    draws = np.split(
        beliefs.draw(configs, contrasts), np.cumsum([len(each) for each in fits.values()])[:-1], axis=1
    )
    return {
        name: Response(
            parameter=name,
            value=config[name],
            values=tuple(value for value, _ in each),
            places=tuple(
                place_of(space, varied, name)
                for value, varied in each
                if is_among(value, asked[name].numbers)
            ),
            draws=drawn,
            tried=sum(
                not is_same(each.get(name), config[name]) and not is_same(each.get(name), default.get(name))
                for each in tried
            ),
        )
        for (name, each), drawn in zip(fits.items(), draws, strict=True)
    }


def searched(space: Space) -> list[str]:
    """Return the parameters that a study searches, in the order of its space."""
    return list(dict.fromkeys(dimension.parameter for dimension in space.dimensions))


def respond_all(beliefs: Beliefs, trials: Sequence[Trial], config: Config) -> dict[str, Response]:
    """Return the responses of all parameters that are searched and can act, around a configuration."""
    space = beliefs.space
    known = {each.name: each for each in space.parameters}
    acting = [name for name in searched(space) if not why_it_cannot_act(space, config, known[name])]
    return respond(beliefs, trials, config, {name: list_values(space, config, name) for name in acting})


def describe_others(space: Space, config: Config, responses: Mapping[str, Response]) -> tuple[Other, ...]:
    """Return what is known of every parameter that a configuration leaves at its default."""
    changed = space.changes(config)
    names = [name for name in (*searched(space), *space.inert) if name not in changed]
    parameters = {each.name: each for each in space.parameters}
    found = [_describe_other(space, config, parameters[name], responses.get(name)) for name in names]
    return tuple(sorted(found, key=_rank))


def _rank(other: Other) -> tuple[int, float, str]:
    size = -abs(other.effect.log) if other.effect else other.bound or 0.0
    return ORDER.index(other.finding), size, other.parameter


def _describe_other(space: Space, config: Config, parameter: Parameter, response: Response | None) -> Other:
    name = parameter.name
    default = space.default().get(name)
    if reason := why_it_cannot_act(space, config, parameter):
        return Other(parameter=name, default=default, finding=Finding.CANNOT_ACT, reason=reason)
    if response is None or not response.others:
        return Other(
            parameter=name,
            default=default,
            finding=Finding.UNKNOWN,
            reason="no other value is valid with the other settings",
        )
    draws = response.draws[:, response.others]
    finding, bound, at = find(draws)
    if response.tried < LEAST_TRIED:
        finding, bound, at = Finding.UNKNOWN, None, None
    return Other(
        parameter=name,
        default=default,
        finding=finding,
        bound=bound,
        value=None if at is None else response.values[response.others[at]],
        effect=None if at is None else read_effect(draws[:, at]),
        reason="" if finding is not Finding.UNKNOWN else _say_too_little(response),
    )


def _say_too_little(response: Response) -> str:
    """Write why a finding is open: nothing can be said of what was hardly tried."""
    if response.tried >= LEAST_TRIED:
        return "the trials do not decide"
    often = f"only {response.tried} time{'' if response.tried == 1 else 's'}" if response.tried else "never"
    return f"tried {often} at another value"


def why_it_cannot_act(space: Space, config: Config, parameter: Parameter) -> str:
    """Return why a change of a parameter cannot be felt beside the other values; empty where it can."""
    if parameter.inert:
        return parameter.inert
    scope = space.rules.scope(config)
    if parameter.name not in config:
        return f"it is used only {say_lacking(parameter.when, scope)}" if parameter.when else "it is off"
    if not parameter.acts(scope):
        return f"it acts only {say_lacking(parameter.acts_when, scope)}" if parameter.acts_when else ""
    return ""


def find_tolerance(response: Response) -> Tolerance | None:
    """Return the range in which the gain stays, for the least promise with a range; None without one."""
    numbers = response.values[: len(response.places)]
    if not numbers or response.tried < LEAST_TRIED:
        return None
    losses = np.quantile(-response.draws[:, : len(numbers)], TOLERANCE_SURE, axis=0)
    for loss in LOSSES:
        inside = {index for index, each in enumerate(losses) if each <= -math.log1p(-loss)}
        run = find_run(numbers, response.value, inside)
        if run is not None and response.places[run[1]] - response.places[run[0]] >= LEAST_RANGE:
            return Tolerance(
                parameter=response.parameter,
                value=response.value,
                low=numbers[run[0]],
                high=numbers[run[1]],
                is_open_below=run[0] == 0,
                is_open_above=run[1] == len(numbers) - 1,
                loss=loss,
            )
    return None


def find_tolerances(
    responses: Mapping[str, Response], settings: Sequence[str], others: Sequence[Other]
) -> tuple[Tolerance, ...]:
    """Return the tolerances of what is shipped, and of other numbers of which some values harm."""
    names = [*settings, *(each.parameter for each in others if each.finding is Finding.HARMFUL)]
    found = [find_tolerance(responses[name]) for name in names if name in responses]
    return tuple(each for each in found if each is not None)
