"""Values and ranges as people read them."""

from tuner.ports import Scalar
from tuner.space.expressions import Expression
from tuner.space.parameters import Derived, Parameter
from tuner.space.values import find_special, format_number

_BYTE_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_MEASURES = frozenset({"ns", "us", "µs", "ms", "s", "min", "h", "%", "pages"})
"""Units that belong behind a number; what is counted (processes, requests) is left to the name."""


def show_value(item: Parameter | Derived | None, value: Scalar) -> str:
    """Return the label of a special value, or the value with its unit."""
    if isinstance(item, Parameter):
        label = find_special(item.special, value)
        if label is not None:
            return label
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value or "not set"
    return show_quantity(value, item.unit if item is not None else "")


def show_quantity(value: float, unit: str) -> str:
    """Return a number with its unit, bytes in the largest unit that divides them."""
    if unit in _BYTE_UNITS:
        rank = _BYTE_UNITS.index(unit)
        while value and isinstance(value, int) and value % 1024 == 0 and rank < len(_BYTE_UNITS) - 1:
            value //= 1024
            rank += 1
        return f"{format_number(value)} {_BYTE_UNITS[rank]}"
    if unit == "%":
        return f"{format_number(value)} %"
    return f"{format_number(value)} {unit}" if unit in _MEASURES else format_number(value)


def show_bound(bound: Scalar | Expression, unit: str = "") -> str:
    """Return a bound as written: a quantity, or the text of its expression."""
    if isinstance(bound, Expression):
        return bound.text
    return str(bound) if isinstance(bound, (bool, str)) else show_quantity(bound, unit)
