"""Operators and functions of expressions: numbers within ±1e18, special values and texts guarded."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tuner.ports import Scalar

LARGEST_NUMBER = 10**18
"""Beyond any setting; keeps powers and products of hostile files cheap."""
MOST_ARGUMENTS = 20


class Unusable(Exception):
    """A value does not fit where the expression uses it."""


class Special:
    """Stands for a special value while a space is checked: it may be compared by == and !=, no more."""

    __slots__ = ("owner", "value")

    def __init__(self, owner: str, value: Scalar) -> None:
        self.owner = owner
        self.value = value

    def __eq__(self, other: object) -> bool:
        return self.value == (other.value if isinstance(other, Special) else other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        if isinstance(self.value, str):
            return refuse_truth(self.owner, self.value)
        return bool(self.value)


class Text(str):
    """Stands for a text value while a space is checked: a text is neither true nor false."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return refuse_truth("a parameter", str(self))


def refuse_truth(owner: str, value: str) -> bool:
    """Refuse a text as a condition: 'off' would count as true."""
    raise Unusable(f"{owner} is the text {value!r} and is used as yes or no; compare it: == {value!r}")


def _number(value: object) -> int | float:
    if isinstance(value, Special):
        raise Unusable(
            f"{value.owner} may have the special value {value.value!r}, which is no quantity; "
            f"guard it: … if {value.owner} != {value.value!r} else …"
        )
    if isinstance(value, (int, float)):
        return value
    raise Unusable(f"{value!r} is not a number")


def bounded(value: float) -> int | float:
    """Return the number if it is within ±1e18. Raises Unusable."""
    if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:  # also refuses nan
        raise Unusable("the result is beyond ±1e18")
    return value


def _arithmetic(
    calculate: Callable[[int | float, int | float], int | float],
) -> Callable[[object, object], int | float]:
    def apply(left: object, right: object) -> int | float:
        return bounded(calculate(_number(left), _number(right)))

    return apply


def _ordering(
    compare: Callable[[int | float, int | float], bool],
) -> Callable[[object, object], bool]:
    def apply(left: object, right: object) -> bool:
        return compare(_number(left), _number(right))

    return apply


def _raise_to(base: float, exponent: float) -> int | float:
    if abs(base) > 1 and abs(exponent) * math.log2(abs(base)) > math.log2(LARGEST_NUMBER) + 1:
        raise Unusable("the power is beyond ±1e18")
    if base < 0 and exponent != int(exponent):
        raise Unusable("the root of a negative number")
    power: int | float = base**exponent
    return power


def _function(calculate: Callable[..., int | float], fewest: int, most: int) -> Callable[..., int | float]:
    def apply(*values: object) -> int | float:
        if not fewest <= len(values) <= most:
            wanted = "1 number" if most == 1 else f"{fewest} or more numbers"
            raise Unusable(f"a function takes {wanted}, not {len(values)}")
        return bounded(calculate(*(_number(value) for value in values)))

    return apply


OPERATORS: Mapping[type[ast.AST], Callable[..., object]] = {
    ast.Add: _arithmetic(operator.add),
    ast.Sub: _arithmetic(operator.sub),
    ast.Mult: _arithmetic(operator.mul),
    ast.Div: _arithmetic(operator.truediv),
    ast.FloorDiv: _arithmetic(operator.floordiv),
    ast.Mod: _arithmetic(operator.mod),
    ast.Pow: _arithmetic(_raise_to),
    ast.USub: lambda value: -_number(value),
    ast.UAdd: _number,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: _ordering(operator.lt),
    ast.LtE: _ordering(operator.le),
    ast.Gt: _ordering(operator.gt),
    ast.GtE: _ordering(operator.ge),
}


def parse_version(text: str) -> tuple[int, ...]:
    """Read `1.21.6` as (1, 21, 6). Raises ValueError for anything else."""
    return tuple(int(part) for part in text.split("."))


def is_at_least(version: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Compare versions by number, missing parts as 0; an unknown version counts as the newest."""
    if not version:
        return True
    longest = max(len(version), len(wanted))
    return version + (0,) * (longest - len(version)) >= wanted + (0,) * (longest - len(wanted))


def make_functions(
    version: tuple[int, ...], least: Mapping[str, int | float] = MappingProxyType({})
) -> dict[str, Callable[..., object]]:
    """Return the functions of the language for a server of this version, and the capacity asked of it."""

    def at_least(wanted: object) -> bool:
        if not isinstance(wanted, str):
            raise Unusable("at_least needs a version in quotes, as at_least('1.21')")
        try:
            return is_at_least(version, parse_version(wanted))
        except ValueError:
            raise Unusable(f"at_least needs a version like '1.21', not {wanted!r}") from None

    def least_capacity(figure: object) -> int | float:
        if isinstance(figure, str) and figure in least:
            return least[figure]
        known = ", ".join(map(repr, least)) or "none"
        raise Unusable(f"least needs a figure of this server's capacity, not {figure!r}; there are: {known}")

    return {
        "min": _function(min, 2, MOST_ARGUMENTS),
        "max": _function(max, 2, MOST_ARGUMENTS),
        "floor": _function(math.floor, 1, 1),
        "ceil": _function(math.ceil, 1, 1),
        "round": _function(round, 1, 1),
        "int": _function(int, 1, 1),
        "abs": _function(abs, 1, 1),
        "log2": _function(math.log2, 1, 1),
        "at_least": at_least,
        "least": least_capacity,
    }
