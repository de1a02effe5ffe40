"""Hints of experts: read from a space, and laid out over its dimensions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.space.dimensions import coordinates_of
from tuner.space.expressions import LOAD_FACTS, bind_load, parse
from tuner.space.parameters import SPECIAL_SUFFIX, Dimension, Hint, Parameter
from tuner.space.problems import problem
from tuner.space.reading import Reader
from tuner.space.sources import Draft
from tuner.space.values import find_special

Bounds = Callable[[Parameter], tuple[float, float]]
"""Returns the bounds of a parameter beside the default configuration. Raises UsageError where it has none."""


def read_hint(reader: Reader, parameter: Parameter, draft: Draft) -> Hint | None:
    """Return the hint of a parameter; None where it has none, or none that is known to hold here.

    Raises UsageError for a hint that has no meaning.
    """
    entry = draft.fields.get("hint")
    if entry is None:
        return None
    place = draft.at("hint")
    if (entry.value is None) == (entry.direction is None):
        raise problem(
            place,
            ("a hint needs a value or a direction, and this hint has both or none"),
            "Give either a value or a direction",
        )
    if entry.direction and not parameter.is_numeric:
        wrong = f"a parameter of kind {parameter.kind} has no direction"
        raise problem(place, wrong, "Give the value that is likely to be better")
    value = None if entry.value is None else reader.fact_value(parameter, entry.value, place)
    if entry.when is not None:
        known = frozenset({*reader.facts, *LOAD_FACTS})
        condition = parse(str(entry.when), place, known, reader.evaluators[draft.server])
        if bind_load(condition, reader.load).decides(reader.facts) is not True:
            return None
    return Hint(odds=entry.odds, value=value, direction=entry.direction, source=entry.source)


def lay_out_hints(
    parameters: Sequence[Parameter], dimensions: Sequence[Dimension], bounds: Bounds
) -> tuple[Dimension, ...]:
    """Return the dimensions with the hints of their parameters, as coordinates."""
    hints: dict[str, Hint] = {}
    own: dict[str, Hint] = {}
    known = {dimension.name: dimension for dimension in dimensions}
    for parameter in parameters:
        if parameter.hint is not None and not parameter.pinned:
            hints |= _lay_out(parameter, parameter.hint, known, bounds)
        if parameter.own_hint is not None and not parameter.pinned:
            own |= _lay_out(parameter, parameter.own_hint, known, bounds)
    told = {parameter.name for parameter in parameters if parameter.is_told}
    return tuple(
        replace(each, hint=hints.get(each.name), is_told=each.parameter in told, own_hint=own.get(each.name))
        for each in dimensions
    )


def _lay_out(
    parameter: Parameter, hint: Hint, dimensions: Mapping[str, Dimension], bounds: Bounds
) -> dict[str, Hint]:
    """Return name of a dimension → hint, for those that a parameter's hint says something about."""
    if hint.value is None:
        default = parameter.default
        is_apart = isinstance(default, int | float | str) and find_special(parameter.special, default)
        # Beside no number there is neither up nor down.
        return {} if is_apart else {parameter.name: hint}
    try:
        point = coordinates_of(parameter, dimensions, hint.value, *bounds(parameter))
    except UsageError:  # its bounds hang on what the default does not have
        return {}
    if find_special(parameter.special, hint.value) is not None:
        point = _only(point, parameter.name + SPECIAL_SUFFIX)
    return {name: replace(hint, value=value) for name, value in point.items()}


def _only(point: Mapping[str, Scalar], name: str) -> dict[str, Scalar]:
    return {each: value for each, value in point.items() if each == name}
