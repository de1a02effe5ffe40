"""Settles before the search what the host decides: what it lacks, and conditions and bounds over facts."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from tuner.ports import Scalar
from tuner.space.expressions import Expression, is_at_least, parse_version
from tuner.space.parameters import CURRENT, Derived, Item, Parameter, SpaceFacts, identifier
from tuner.space.problems import problem
from tuner.space.rules import (
    Rules,
    Scope,
    asked_default,
    check_bounds,
    default_value,
    derived_value,
    evaluate_bounds,
    watch,
)
from tuner.space.sources import Draft
from tuner.space.values import fault_in_range


def find_left_out(drafts: Iterable[Draft], facts: SpaceFacts) -> dict[str, str]:
    """Return name → why it is left out, of everything that this host does not have."""
    reasons = {draft.name: _reason_to_leave_out(draft, facts) for draft in drafts}
    return {name: reason for name, reason in reasons.items() if reason}


def _reason_to_leave_out(draft: Draft, facts: SpaceFacts) -> str:
    fields = draft.fields
    version = facts.versions.get(draft.server, ())
    shown = f"{draft.server} here is {'.'.join(map(str, version))}"
    if "since" in fields and not is_at_least(version, parse_version(fields["since"])):
        return f"it exists since {fields['since']}, {shown}"
    if "until" in fields and version and is_at_least(version, parse_version(fields["until"])):
        return f"it is gone since {fields['until']}, {shown}"
    if fields.get("scope") == "host" and facts.sandbox:
        return "it is one value for the whole host, which a sandbox does not touch"
    if fields.get("loopback") is False and facts.loopback:
        return "it has no effect on load over loopback"
    if "exists" in fields and not facts.exists(fields["exists"]):
        return f"there is no {fields['exists']} on this host"
    return ""


def order_by_dependency(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items in an order in which they can be evaluated. Raises UsageError that names a cycle."""
    by_identifier = {item.identifier: item for item in items}
    waiting = {item.identifier: item.depends_on & by_identifier.keys() for item in items}
    ordered: list[Item] = []
    while waiting:
        ready = [name for name, needs in waiting.items() if not needs & waiting.keys()]
        if not ready:
            _refuse_cycle(waiting, by_identifier)
        for name in ready:
            del waiting[name]
            ordered.append(by_identifier[name])
    return tuple(ordered)


def _refuse_cycle(waiting: Mapping[str, frozenset[str]], items: Mapping[str, Item]) -> None:
    path = [next(iter(waiting))]
    while path[-1] not in path[:-1]:
        path.append(min(waiting[path[-1]] & waiting.keys()))
    cycle = path[path.index(path[-1]) :]
    item = items[cycle[0]]
    expression = next(each for each in item.expressions if cycle[1] in each.names)
    raise problem(
        expression.place,
        f"`{expression.text}` is circular: {' → '.join(items[name].name for name in cycle)}",
        "Let one of them depend on facts alone",
    )


def drop_dependents(
    ordered: Sequence[Item], left_out: dict[str, str], unknown: dict[str, str]
) -> tuple[Item, ...]:
    """Return what can be evaluated. What needs an unknown value joins `unknown`.

    A parameter that is left out keeps its default for the eyes of expressions: that is what is in force.
    """
    missing = {identifier(name): name for name in unknown}
    usable = []
    for item in ordered:
        if item.name in left_out and isinstance(item, Derived):
            missing[item.identifier] = item.name
            continue
        lacking = sorted(missing[name] for name in item.depends_on if name in missing)
        if lacking:
            unknown[item.name] = left_out.get(item.name, f"it depends on {lacking[0]}, which is left out")
            missing[item.identifier] = item.name
        else:
            usable.append(item)
    return tuple(usable)


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
    if not bounds or any(bound.names - settled.keys() for bound in bounds):
        return parameter
    low, high = evaluate_bounds(parameter, settled)
    check_bounds(parameter, low, high, settled)
    return replace(parameter, low=low, high=high)


def _note_pinned(parameter: Parameter, settled: Scope) -> None:
    """Remember the value of a parameter that never changes."""
    is_fixed = parameter.pinned and parameter.when is None and parameter.has_fixed_bounds
    if not is_fixed or not parameter.depends_on <= settled.keys():
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
    order = (
        replace(item, special={**item.special, CURRENT: outside[item.name]})
        if isinstance(item, Parameter) and item.name in outside
        else item
        for item in rules.order
    )
    return replace(rules, order=tuple(order))
