"""Builds the space of one host: leaves out what the host lacks, settles what it decides, checks the rest."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from keyword import kwlist
from pathlib import Path

from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.space.checking import check
from tuner.space.expressions import (
    FACTS,
    FUNCTIONS,
    Evaluator,
    Expression,
    is_at_least,
    parse_version,
)
from tuner.space.hints import read_hint
from tuner.space.lacking import say_lacking
from tuner.space.parameters import (
    CURRENT,
    NOT_ALLOWED,
    SAFE,
    Derived,
    Figure,
    Item,
    Parameter,
    SpaceFacts,
    identifier,
)
from tuner.space.presets import with_presets
from tuner.space.problems import problem
from tuner.space.reading import Reader
from tuner.space.rules import (
    ALLOWANCE,
    Capacity,
    Rules,
    Scope,
    asked_default,
    check_bounds,
    default_value,
    derived_value,
    evaluate_bounds,
    guard_by,
    watch,
)
from tuner.space.sources import Draft, Merged, Source, merge, read_sources
from tuner.space.space import Space
from tuner.space.values import fault_in_range

_RESERVED = frozenset({*FACTS, *FUNCTIONS, *kwlist, "version"})


def load_space(sources: Sequence[Source], *, facts: SpaceFacts, base: Path) -> Space:
    """Load, refine and check a space.

    Where capacity is guarded it is built twice: bounds may ask for what the default holds.

    Args:
        sources: names, paths (relative to `base`), or mappings of the same form as a file:
            `{only: […]}`, `{without: […]}`, `{set: {…}}`, `{allow: [semantic, risky]}`, `{parameters: {…}}`;
            as `Document.below` they keep the lines of the study file. Later ones refine earlier ones.
        facts: what expressions, versions and `exists` are judged by.
        base: folder of the study file.

    Raises:
        UsageError: the first fault, with file, line, value and remedy.
    """
    merged = merge(read_sources(sources, base))
    _refuse_ambiguous(merged, facts)
    reader = _reader(merged, facts, {})
    free = _build(merged, facts, reader)
    if not merged.capacity or ALLOWANCE in merged.allowed:
        check(free, merged)
        return with_presets(replace(free, allows_less=True), merged, reader)
    default = free.capacity(free.default())
    guarding = _reader(merged, facts, default)
    space = _build(merged, facts, guarding)
    space = replace(space, rules=replace(space.rules, guard=guard_by(default, facts.names)))
    check(space, merged)
    free = with_presets(replace(free, allows_less=True), merged, reader)
    return replace(with_presets(space, merged, guarding, free=free), unguarded=free)


def _build(merged: Merged, facts: SpaceFacts, reader: Reader) -> Space:
    """Return the space without presets, not yet checked."""
    drafts = (*merged.parameters.values(), *merged.derived.values())
    left_out = {draft.name: reason for draft in drafts if (reason := _reason_to_leave_out(draft, facts))}
    left_out |= merged.left_out
    items, unknown = _read_items(merged, reader, left_out)
    usable = _drop_dependents(_order_by_dependency(items), left_out, unknown)
    usable, never = _fold(usable, reader, left_out, named=merged.named)
    left_out |= never
    rules = _rules(merged, reader, usable, left_out)
    present = {item.name: item for item in rules.order if item.name not in left_out}
    parameters = [present.get(name) for name in merged.parameters]
    derived = [present.get(name) for name in merged.derived]
    reasons = {**unknown, **left_out}
    return Space(
        names=tuple(dict.fromkeys(merged.names)),
        parameters=tuple(item for item in parameters if isinstance(item, Parameter)),
        derived=tuple(item for item in derived if isinstance(item, Derived)),
        presets=(),
        left_out={name: reasons[name] for name in rules.ranks if name in reasons},
        dead=dict(merged.dead),
        rules=rules,
    )


def _read_items(
    merged: Merged, reader: Reader, left_out: Mapping[str, str]
) -> tuple[list[Item], dict[str, str]]:
    """Return what can be read, and those whose active value is asked for and not known."""
    items: list[Item] = []
    unknown: dict[str, str] = {}
    for draft in merged.parameters.values():
        parameter = reader.parameter(draft, _pinned(merged, draft), merged.held.get(draft.name))
        if parameter is None:
            unknown[draft.name] = left_out.get(draft.name, "its active value on this host is not known")
        else:
            own = read_hint(reader, parameter, draft)
            own = own if merged.hints else None
            told = merged.told.get(draft.name)
            hint = own if told is None else read_hint(reader, parameter, told)
            is_told = told is not None and hint is not None
            items.append(
                replace(parameter, hint=hint, is_told=is_told, own_hint=own if is_told else None)
                if hint
                else parameter
            )
    items += [reader.derived(draft) for draft in merged.derived.values()]
    return items, unknown


def _rules(merged: Merged, reader: Reader, order: tuple[Item, ...], left_out: Mapping[str, str]) -> Rules:
    rules = Rules(
        facts=reader.facts,
        order=order,
        hidden=frozenset(left_out),
        ranks={name: rank for rank, name in enumerate((*merged.parameters, *merged.derived))},
        constraints=tuple(map(reader.constraint, merged.constraints.values())),
        figures=_figures(merged, reader, order, left_out),
    )
    by_host = {
        name
        for name, draft in merged.parameters.items()
        if draft.fields["default"] == CURRENT or (reader.installed and name in reader.current)
    }
    return _admit_current(rules, by_host - merged.held.keys())


def _figures(
    merged: Merged, reader: Reader, order: tuple[Item, ...], left_out: Container[str]
) -> tuple[Figure, ...]:
    """Return the figures of capacity that something on this host can change."""
    changing = {item.identifier for item in order if item.name not in left_out}
    figures = (reader.figure(draft) for draft in merged.capacity.values())
    return tuple(figure for figure in figures if figure.value.names & changing)


def _reader(merged: Merged, facts: SpaceFacts, default: Capacity) -> Reader:
    """Return the reader whose expressions see this capacity as the least; nothing where it is empty."""
    evaluators = {"": Evaluator(())}
    for server in merged.servers:
        figures = [figure for owner, figure in merged.capacity if owner == server]
        least = {figure: default.get(server, {}).get(figure, 0) for figure in figures}
        backend = facts.backends.get(server, "")
        evaluators[server] = Evaluator(facts.versions.get(server, ()), least, backend)
    own = set(map(identifier, (*merged.parameters, *merged.derived)))
    elsewhere = {identifier(name): value for name, value in merged.elsewhere.items()}
    absent = {name: value for name, value in elsewhere.items() if name not in own}
    online = {"online_cores": facts.names["cores"]} if "cores" in facts.names else {}
    return Reader(
        known=frozenset({*FACTS, *facts.names, *absent, *own}),
        facts={**absent, **online, **facts.names},
        evaluators=evaluators,
        current=facts.current,
        installed=facts.installed,
        load=facts.load,
    )


def _refuse_ambiguous(merged: Merged, facts: SpaceFacts) -> None:
    seen: dict[str, str] = {}
    for draft in (*merged.parameters.values(), *merged.derived.values()):
        word = identifier(draft.name)
        if word in _RESERVED or word in facts.names:
            wrong = f"the name {draft.name} already means a fact, function or keyword"
            raise problem(draft.place, wrong, "Rename this setting")
        if word in seen:
            wrong = f"the names {draft.name} and {seen[word]} are both written {word} in expressions"
            raise problem(draft.place, wrong, "Rename one of the two")
        seen[word] = draft.name


def _pinned(merged: Merged, draft: Draft) -> str:
    risk = draft.fields.get("risk", SAFE)
    if draft.name in merged.pinned:
        return merged.pinned[draft.name]
    return "" if risk in merged.allowed else f"its risk is {risk}, and {NOT_ALLOWED} {risk}"


_OUT_OF_SCOPE = {
    ("host", True): "this setting is one value for the whole host, which a sandbox does not touch",
    ("private", False): (
        "this setting exists only in private instances, not in the files of an installed service"
    ),
}
"""Scope and whether the study is one of a sandbox → why the parameter is left out."""


def _reason_to_leave_out(draft: Draft, facts: SpaceFacts) -> str:
    fields = draft.fields
    version = facts.versions.get(draft.server, ())
    shown = f"{draft.server} here is {'.'.join(map(str, version)) or 'of an unknown version'}"
    if "since" in fields and not is_at_least(version, parse_version(fields["since"])):
        return f"it exists since {fields['since']}, {shown}"
    if "until" in fields and version and is_at_least(version, parse_version(fields["until"])):
        return f"it was removed in {fields['until']}, {shown}"
    if reason := _OUT_OF_SCOPE.get((fields.get("scope", ""), facts.sandbox)):
        return reason
    if fields.get("loopback") is False and facts.loopback:
        return "this setting has no effect on load over loopback"
    if "exists" in fields and not facts.exists(fields["exists"]):
        return f"this host has no {fields['exists']}"
    return facts.withheld.get(draft.name, "")


def _order_by_dependency(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items in an order in which they can be evaluated. Raises UsageError that names a cycle."""
    by_identifier = {item.identifier: item for item in items}
    sorter = TopologicalSorter(dict.fromkeys(by_identifier, ()))
    for item in items:
        sorter.add(item.identifier, *sorted(item.follows & by_identifier.keys()))
    try:
        return tuple(by_identifier[name] for name in sorter.static_order())
    except CycleError as error:
        raise _circular([by_identifier[name] for name in error.args[1][:0:-1]], items) from error


def _circular(cycle: list[Item], items: Sequence[Item]) -> UsageError:
    """Return the error of items each of which depends on the next, and the last one on the first."""
    first = min(range(len(cycle)), key=lambda place: items.index(cycle[place]))
    cycle = [*cycle[first:], *cycle[: first + 1]]
    written = (*cycle[0].expressions, getattr(cycle[0], "acts_when", None))
    expression = next(each for each in written if each and cycle[1].identifier in each.names)
    wrong = f"`{expression.text}` is circular: {' → '.join(item.name for item in cycle)}"
    return problem(expression.place, wrong, "Let one of these settings depend only on facts")


def _drop_dependents(
    ordered: Sequence[Item], left_out: dict[str, str], unknown: dict[str, str]
) -> tuple[Item, ...]:
    """Return what can be evaluated. What needs an unknown value joins `unknown`.

    A parameter that is left out keeps its default for the eyes of expressions: that is what is active.
    """
    missing = {identifier(name): name for name in unknown}
    usable = []
    for item in ordered:
        if item.name in left_out and isinstance(item, Derived):
            missing[item.identifier] = item.name
            continue
        lacking = sorted(missing[name] for name in item.depends_on if name in missing)
        if lacking:
            unknown[item.name] = left_out.get(
                item.name, f"this setting depends on {lacking[0]}, which is left out"
            )
            missing[item.identifier] = item.name
        else:
            usable.append(item)
    return tuple(usable)


def _fold(
    ordered: Iterable[Item], reader: Reader, left_out: Mapping[str, str], *, named: Container[str]
) -> tuple[tuple[Item, ...], dict[str, str]]:
    """Return the items with settled bounds in place of expressions, and those that are never active with why.

    What is left out keeps its default for expressions to see; so does what is never active, and what cannot
    act under the load.
    """
    settled: Scope = dict(reader.facts)
    never: dict[str, str] = {}
    items: list[Item] = []
    for item in ordered:
        if isinstance(item, Derived):
            folded: Item = item
            is_there = item.when is None or item.when.decides(settled)
            if is_there and item.value.names <= settled.keys():
                settled[item.identifier] = watch(item, derived_value(item, settled))
        elif item.name in left_out:
            folded = replace(item, when=None)
        else:
            exists = None if item.when is None else item.when.decides(settled)
            folded = item if exists is None else replace(item, when=None)
            if item.when is not None and exists is False:
                never[item.name] = _say_never(item.when, items)
            else:
                folded = _fold_acting(folded, settled, reader.load, is_named=item.name in named)
                folded = _fold_bounds(folded, settled)
                _note_pinned(folded, settled)
        items.append(folded)
    return tuple(items), never


def _say_never(condition: Expression, before: Iterable[Item]) -> str:
    """Return why a parameter is never active: what the study itself holds comes before the host."""
    held = [
        f"{item.name}: {item.pinned}"
        for item in before
        if isinstance(item, Parameter) and item.pinned and item.identifier in condition.names
    ]
    return f"`{condition.text}` does not hold" + (f" ({'; '.join(held)})" if held else " here")


def _fold_acting(
    parameter: Parameter, settled: Scope, load: Mapping[str, Scalar], *, is_named: bool
) -> Parameter:
    """Return the parameter, pinned where it is settled that it cannot act; marked where a study names it."""
    condition = parameter.acts_when
    acts = condition.decides(settled) if condition else None
    if condition is None or acts is None or parameter.pinned:
        return parameter
    if acts:
        return replace(parameter, acts_when=None)
    inert = f"it acts only {say_lacking(condition, settled, load)}"
    if is_named:
        return replace(parameter, acts_when=None, inert=inert)
    return replace(parameter, inert=inert, pinned=f"it has no effect under this load: {inert}")


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


def _admit_current(rules: Rules, names: Container[str]) -> Rules:
    """Return the rules with a special value `current` where an active value is outside moving bounds.

    Fixed bounds have been stretched already; what is active must be possible in any case.
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
