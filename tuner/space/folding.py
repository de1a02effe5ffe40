"""Simplifies what is decided before the search: conditions and bounds over facts and pinned parameters."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from tuner.ports import Scalar
from tuner.space.expressions import Expression
from tuner.space.ordering import Item
from tuner.space.parameters import CURRENT, Derived, Parameter
from tuner.space.settling import (
    Rules,
    Scope,
    asked_default,
    check_bounds,
    default_value,
    derived_value,
    evaluate_bounds,
    watch,
)
from tuner.space.values import fault_in_range


def fold(
    ordered: Iterable[Item], facts: Mapping[str, Scalar], left_out: Mapping[str, str]
) -> tuple[tuple[Item, ...], dict[str, str]]:
    """Return the items with settled bounds in place of expressions, and those that are never active with why.

    What is left out keeps its default for expressions to see; so does what is never active.
    """
    settled: Scope = dict(facts)
    never: dict[str, str] = {}
    items: list[Item] = []
    for item in ordered:
        if isinstance(item, Derived):
            folded: Item = item
            if item.when is None and item.value.names <= settled.keys():
                settled[item.identifier] = watch(item, derived_value(item, settled))
        elif item.name in left_out:
            folded = replace(item, when=None)
        else:
            folded, is_active = _fold_condition(item, settled)
            if not is_active:
                never[item.name] = f"`{item.when.text if item.when else ''}` does not hold on this host"
            else:
                folded = _fold_bounds(folded, settled)
                _note_pinned(folded, settled)
        items.append(folded)
    return tuple(items), never


def _fold_condition(parameter: Parameter, settled: Scope) -> tuple[Parameter, bool]:
    if parameter.when is None or not parameter.when.names <= settled.keys():
        return parameter, True
    return replace(parameter, when=None), parameter.when.holds(settled)


def _fold_bounds(parameter: Parameter, settled: Scope) -> Parameter:
    bounds = [bound for bound in (parameter.low, parameter.high) if isinstance(bound, Expression)]
    if not bounds or not all(bound.names <= settled.keys() for bound in bounds):
        return parameter
    low, high = evaluate_bounds(parameter, settled)
    check_bounds(parameter, low, high, settled)
    return replace(parameter, low=low, high=high)


def _note_pinned(parameter: Parameter, settled: Scope) -> None:
    """Remember the value of a parameter that never changes."""
    if not parameter.pinned or parameter.when is not None or not parameter.has_fixed_bounds:
        return
    if isinstance(parameter.default, Expression) and not parameter.default.names <= settled.keys():
        return
    low, high = evaluate_bounds(parameter, settled)
    settled[parameter.identifier] = watch(parameter, default_value(parameter, low, high, settled))


def admit_current(rules: Rules, names: Container[str]) -> Rules:
    """Return the rules with a special value `current` where a value in force is outside moving bounds.

    Fixed bounds have been stretched already; what is in force must be possible in any case.
    """
    outside: dict[str, Scalar] = {}

    def pick(parameter: Parameter, low: float, high: float, scope: Scope) -> Scalar:
        value = asked_default(parameter, scope)
        if parameter.name in names and fault_in_range(parameter, value, low, high) is not None:
            outside[parameter.name] = value
        return value

    rules.settle(pick)
    return replace(rules, order=tuple(_with_special(item, outside) for item in rules.order))


def _with_special(item: Item, outside: Mapping[str, Scalar]) -> Item:
    if not isinstance(item, Parameter) or item.name not in outside:
        return item
    return replace(item, special={**item.special, CURRENT: outside[item.name]})
