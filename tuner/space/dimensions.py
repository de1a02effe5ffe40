"""Coordinates of the search: which dimensions a parameter has, and its value at a point."""

import math
from collections.abc import Mapping, Sequence

from tuner.ports import Scalar
from tuner.space.encoding import (
    count_steps,
    decode_position,
    encode_position,
    fit_number,
    grid_step,
    grid_value,
    settle_bounds,
)
from tuner.space.parameters import NUMBER, SPECIAL_SUFFIX, Dimension, Parameter
from tuner.space.problems import problem, quote, suggest
from tuner.space.scalars import as_number
from tuner.space.values import find_special, format_number

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
    if not parameter.has_fixed_bounds:
        return (position,)
    low, high = fixed_bounds(parameter)
    if parameter.kind == "int" or step is not None:
        high = grid_value(parameter, low, high, count_steps(low, high, grid_step(parameter)))
    if low == high:
        return ()
    if parameter.kind == "float":
        # Optuna loses the end of a grid whose bounds are not exact decimals.
        free = Dimension(name=name, parameter=name, kind="float", low=low, high=high, log=log)
        return (free,) if step is None else (position,)
    if log and grid_step(parameter) != 1:  # Optuna has no logarithmic grid
        return (position,)
    return (
        Dimension(
            name=name, parameter=name, kind="int", low=low, high=high, log=log, step=grid_step(parameter)
        ),
    )


def fixed_bounds(parameter: Parameter) -> tuple[int | float, int | float]:
    """Return the bounds of a parameter that depends on no other."""
    low, high = parameter.low, parameter.high
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        raise TypeError(parameter.name)
    return settle_bounds(low, high, parameter.kind)


def read_point(dimensions: Mapping[str, Dimension], point: Point) -> dict[str, Scalar]:
    """Return the point with plain values. Raises UsageError for what is not within its dimensions."""
    return {name: _read_coordinate(dimensions, name, value) for name, value in point.items()}


def _read_coordinate(dimensions: Mapping[str, Dimension], name: str, value: Scalar) -> Scalar:
    dimension = dimensions.get(name)
    if dimension is None:
        raise problem(name, "the space has no such dimension", suggest(name, dimensions))
    if dimension.kind == "categorical":
        for choice in dimension.choices:
            if choice == value:
                return choice
        raise problem(name, f"{quote(value)} is none of {dimension.choices}", "Give one of them")
    if isinstance(value, str) or not dimension.low <= value <= dimension.high:
        ends = f"{format_number(dimension.low)} to {format_number(dimension.high)}"
        raise problem(name, f"{quote(value)} is not within {ends}", "Give a number within")
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
    if dimension.kind == "categorical":
        fallback = parameter.default if parameter.default in dimension.choices else dimension.choices[0]
        chosen = value if value in dimension.choices else fallback
        if isinstance(chosen, (bool, int, float, str)):
            point[parameter.name] = chosen
        return point
    number = as_number(value) if label is None else None
    if dimension.is_position:
        point[parameter.name] = 0.5 if number is None else encode_position(number, parameter, low, high)
    else:
        point[parameter.name] = (
            _middle(parameter, dimension)
            if number is None
            else fit_number(number, parameter, dimension.low, dimension.high)
        )
    return point


def _middle(parameter: Parameter, dimension: Dimension) -> int | float:
    default = parameter.default
    if isinstance(default, (int, float)) and dimension.low <= default <= dimension.high:
        return default
    low, high = dimension.low, dimension.high
    return fit_number(math.sqrt(low * high) if dimension.log else (low + high) / 2, parameter, low, high)
