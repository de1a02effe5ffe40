"""Dimensions of the search: how a parameter is laid out over them, and its value at a point."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tuner.ports import Scalar
from tuner.space.expressions import Expression
from tuner.space.parameters import NUMBER, SPECIAL_SUFFIX, Dimension, Parameter
from tuner.space.problems import problem, quote, suggest
from tuner.space.values import (
    as_number,
    count_steps,
    find_special,
    fit_number,
    format_number,
    grid_step,
    grid_value,
    round_bounds,
    round_number,
)

Point = Mapping[str, Scalar]


def lay_out(parameters: Sequence[Parameter]) -> tuple[Dimension, ...]:
    """Return the dimensions of all parameters that are tuned and have more than one value."""
    return tuple(
        dimension
        for parameter in parameters
        if not parameter.pinned
        for dimension in (*_number_dimension(parameter), *_choice_dimension(parameter))
    )


def _choice_dimension(parameter: Parameter) -> tuple[Dimension, ...]:
    name, choices = parameter.name, parameter.choices
    if parameter.special:
        name, choices = parameter.name + SPECIAL_SUFFIX, (NUMBER, *parameter.special)
    if len(choices) < 2:  # noqa: PLR2004 - one choice is no choice
        return ()
    return (Dimension(name=name, parameter=parameter.name, kind="categorical", choices=choices),)


def _number_dimension(parameter: Parameter) -> tuple[Dimension, ...]:
    if not parameter.is_numeric:
        return ()
    name, log, step = parameter.name, parameter.log, parameter.step
    position = Dimension(name=name, parameter=name, kind="float", low=0.0, high=1.0, is_position=True)
    if isinstance(parameter.low, Expression) or isinstance(parameter.high, Expression):
        return (position,)
    low, high = round_bounds(parameter.low, parameter.high, parameter.kind)
    if parameter.kind == "int" or step is not None:
        high = grid_value(parameter, low, high, count_steps(low, high, grid_step(parameter)))
    if low == high:
        return ()
    # Optuna loses the end of a grid whose bounds are not exact decimals, and has no logarithmic grid.
    if step is not None and (parameter.kind == "float" or (log and step != 1)):
        return (position,)
    ends = Dimension(name=name, parameter=name, kind="float", low=low, high=high, log=log)
    return (replace(ends, kind="int", step=grid_step(parameter)) if parameter.kind == "int" else ends,)


def read_point(dimensions: Mapping[str, Dimension], point: Point) -> dict[str, Scalar]:
    """Return the point with plain values. Raises UsageError for what is not within its dimensions."""
    return {name: _read_coordinate(dimensions, name, value) for name, value in point.items()}


def _read_coordinate(dimensions: Mapping[str, Dimension], name: str, value: Scalar) -> Scalar:
    dimension = dimensions.get(name)
    if dimension is None:
        raise problem(name, "the search space has no dimension of this name", suggest(name, dimensions))
    if dimension.kind == "categorical":
        for choice in dimension.choices:
            if choice == value:
                return choice
        raise problem(name, f"{quote(value)} is none of {dimension.choices}", "Give one of these choices")
    if isinstance(value, str) or not dimension.low <= value <= dimension.high:
        ends = f"{format_number(dimension.low)} to {format_number(dimension.high)}"
        raise problem(name, f"{quote(value)} is not within {ends}", "Give a number in this range")
    return int(value) if dimension.kind == "int" else float(value)


def value_at(
    parameter: Parameter, dimensions: Mapping[str, Dimension], point: Point, low: float, high: float
) -> Scalar | None:
    """Return the value at a point that `read_point` gave; None where the point says nothing."""
    label = point.get(parameter.name + SPECIAL_SUFFIX)
    if isinstance(label, str) and label != NUMBER:
        return parameter.special[label]
    coordinate = point.get(parameter.name)
    if coordinate is None:
        return _value_without_coordinate(parameter, dimensions, label, low, high)
    if not parameter.is_numeric or isinstance(coordinate, str):
        return coordinate
    if dimensions[parameter.name].is_position:
        return decode_position(coordinate, parameter, low, high)
    return fit_number(coordinate, parameter, low, high)


def _value_without_coordinate(
    parameter: Parameter, dimensions: Mapping[str, Dimension], label: Scalar | None, low: float, high: float
) -> Scalar | None:
    if parameter.name not in dimensions:
        has_one_number = parameter.is_numeric and (label == NUMBER or not parameter.special)
        return low if has_one_number else None
    if label == NUMBER and parameter.default in parameter.special.values():
        return decode_position(0.5, parameter, low, high)
    return None


def coordinates_of(
    parameter: Parameter,
    dimensions: Mapping[str, Dimension],
    value: Scalar | None,
    low: float,
    high: float,
) -> dict[str, Scalar]:
    """Return where a value lies; the middle of what the value (None: inactive) says nothing about."""
    point: dict[str, Scalar] = {}
    label = None if value is None else find_special(parameter.special, value)
    if parameter.name + SPECIAL_SUFFIX in dimensions:
        point[parameter.name + SPECIAL_SUFFIX] = label or NUMBER
    dimension = dimensions.get(parameter.name)
    if dimension is None:
        return point
    number = as_number(value) if label is None else None
    if dimension.kind == "categorical":
        near = [choice for choice in (value, parameter.default) if choice in dimension.choices]
        place = near[0] if near else dimension.choices[0]
    elif dimension.is_position:
        place = 0.5 if number is None else encode_position(number, parameter, low, high)
    elif number is None:
        place = _middle(parameter, dimension)
    else:
        place = fit_number(number, parameter, dimension.low, dimension.high)
    return {**point, parameter.name: place}


def _middle(parameter: Parameter, dimension: Dimension) -> int | float:
    default = parameter.default
    if isinstance(default, (int, float)) and dimension.low <= default <= dimension.high:
        return default
    low, high = dimension.low, dimension.high
    return fit_number(math.sqrt(low * high) if dimension.log else (low + high) / 2, parameter, low, high)


def decode_position(position: float, parameter: Parameter, low: float, high: float) -> int | float:
    """Return the value at a position (0 to 1) within the bounds; linear integers get equal shares."""
    position = min(max(position, 0.0), 1.0)
    if high <= low:
        return low
    log = parameter.log and low > 0
    if parameter.step is None and parameter.kind == "float":
        value = (
            math.exp(_between(math.log(low), math.log(high), position))
            if log
            else _between(low, high, position)
        )
        return min(max(round_number(value, parameter), low), high)
    step = grid_step(parameter)
    if log:
        index = round((math.exp(_between(*_log_ends(low, high, step), position)) - low) / step)
    else:
        index = int(position * (count_steps(low, high, step) + 1))
    return grid_value(parameter, low, high, index)


def encode_position(value: float, parameter: Parameter, low: float, high: float) -> float:
    """Return the position of a value within the bounds, such that decoding gives the value again."""
    if high <= low:
        return 0.5
    log = parameter.log and low > 0
    if parameter.step is None and parameter.kind == "float":
        ends = (math.log(low), math.log(high)) if log else (low, high)
        share = ((math.log(value) if log else value) - ends[0]) / (ends[1] - ends[0])
    elif log:
        start, end = _log_ends(low, high, grid_step(parameter))
        share = (math.log(value) - start) / (end - start)
    else:
        step = grid_step(parameter)
        share = (round((value - low) / step) + 0.5) / (count_steps(low, high, step) + 1)
    return min(max(share, 0.0), 1.0)


def _between(low: float, high: float, position: float) -> float:
    return low + (high - low) * position


def _log_ends(low: float, high: float, step: float) -> tuple[float, float]:
    """Widen by half a step where that stays positive, so that the end values get their share."""
    half = step / 2 if low > step / 2 else 0.0
    return math.log(low - half), math.log(high + half)
