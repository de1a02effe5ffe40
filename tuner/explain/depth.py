"""Everything that is known of one parameter."""

from collections.abc import Sequence

from tuner.errors import UsageError
from tuner.explain.beliefs import Beliefs, read_worth
from tuner.explain.explanation import CurvePoint, Depth, Explanation, Worth
from tuner.explain.responses import Response, find_tolerance, respond
from tuner.explain.variation import is_same, list_values
from tuner.ports import Config, Scalar
from tuner.records import Start
from tuner.space import Space
from tuner.space.problems import suggest


def describe_depth(
    space: Space,
    beliefs: Beliefs | None,
    starts: Sequence[Start],
    config: Config,
    name: str,
    found: Explanation,
) -> Depth:
    """Return what is known of a parameter.

    Raises:
        UsageError: the space has no such parameter.
    """
    known = {each.name: each for each in space.parameters}
    if name not in known:
        raise UsageError(f"--parameter: {space.name} has no parameter {name!r}. {suggest(name, known)}")
    parameter = known[name]
    tried = [start.config[name] for start in starts if start.counts and name in start.config]
    values = list_values(space, config, name, tried)
    at_config, at_default = (
        respond(beliefs, starts, around, {name: values}).get(name) if beliefs is not None else None
        for around in (config, space.default())
    )
    return Depth(
        parameter=name,
        unit=parameter.unit,
        why=parameter.why,
        source=parameter.source,
        also=parameter.also,
        acts_when=parameter.acts_when.text if parameter.acts_when else "",
        acts_source=parameter.acts_source,
        curve=tuple(
            CurvePoint(
                value=value,
                at_winner=_worth_at(at_config, value),
                at_default=_worth_at(at_default, value),
                starts=sum(is_same(each, value) for each in tried),
            )
            for value in values.every
        ),
        line=next((each for each in found.lines if each.parameter == name), None),
        other=next((each for each in found.others if each.parameter == name), None),
        tolerance=None if at_config is None else find_tolerance(at_config),
        interactions=tuple(each for each in found.interactions if name in each.parameters),
    )


def _worth_at(response: Response | None, value: Scalar) -> Worth | None:
    if response is None:
        return None
    at = next((index for index, each in enumerate(response.values) if is_same(each, value)), None)
    return None if at is None else read_worth(response.draws[:, at])
