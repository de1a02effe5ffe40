"""Numbers and positions: where a value lies between its bounds, and back."""

import math

from tuner.space.parameters import Parameter

FLOAT_DIGITS = 6
"""Significant digits kept of a float, so that a value survives the way to its position and back."""
GRID_DIGITS = 12
"""The same for a float that has steps, which must not be rounded away."""


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
        return min(max(settle_number(value, parameter), low), high)
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


def grid_step(parameter: Parameter) -> int | float:
    """Return the distance between two values of a parameter that has steps."""
    return 1 if parameter.step is None else parameter.step


def count_steps(low: float, high: float, step: float) -> int:
    """Return the number of the last grid value, counted from 0 at low."""
    return math.floor((high - low) / step + 1e-9)


def grid_value(parameter: Parameter, low: float, high: float, index: int) -> int | float:
    """Return a grid value by its number, the nearest there is within the bounds."""
    step = grid_step(parameter)
    value = low + min(max(index, 0), count_steps(low, high, step)) * step
    # Few digits may be a hair outside bounds that have more.
    return int(value) if parameter.kind == "int" else min(max(settle_number(value, parameter), low), high)


def is_on_grid(value: float, low: float, parameter: Parameter) -> bool:
    """Return whether a value is a whole number of steps away from low."""
    if parameter.step is None:
        return True
    steps = (value - low) / parameter.step
    return abs(steps - round(steps)) < 1e-6  # noqa: PLR2004 - far below any step


def settle_number(value: float, parameter: Parameter) -> int | float:
    """Return the number as it is kept: whole for int, few digits for float."""
    if parameter.kind == "int":
        return round(value)
    return float(f"{value:.{FLOAT_DIGITS if parameter.step is None else GRID_DIGITS}g}")


def fit_number(value: float, parameter: Parameter, low: float, high: float) -> int | float:
    """Return the value of the parameter within the bounds that is nearest."""
    if high <= low:
        return low
    inside = min(max(value, low), high)
    if parameter.step is None:
        return min(max(settle_number(inside, parameter), low), high)
    return grid_value(parameter, low, high, round((inside - low) / parameter.step))


def settle_bounds(low: float, high: float, kind: str) -> tuple[int | float, int | float]:
    """Return the bounds that values of the kind can reach: whole numbers inside them for int."""
    if kind == "int":
        return math.ceil(low - 1e-9), math.floor(high + 1e-9)
    return float(low), float(high)
