"""Builds the space of one host from its sources, and checks it."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from keyword import kwlist
from pathlib import Path

from tuner.space.capacity import ALLOWANCE, Capacity, guard_by
from tuner.space.checking import check
from tuner.space.expressions import FACTS, FUNCTIONS, Evaluator
from tuner.space.folding import admit_current, drop_dependents, find_left_out, fold, order_by_dependency
from tuner.space.parameters import (
    CURRENT,
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
from tuner.space.rules import Rules
from tuner.space.sources import Draft, Merged, Source, merge, read_sources
from tuner.space.space import Space

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
    left_out = find_left_out((*merged.parameters.values(), *merged.derived.values()), facts)
    items, unknown = _read_items(merged, reader, left_out)
    usable = drop_dependents(order_by_dependency(items), left_out, unknown)
    usable, never = fold(usable, reader.facts, left_out)
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
    """Return what can be read, and those whose value in force is asked for and not known."""
    items: list[Item] = []
    unknown: dict[str, str] = {}
    for draft in merged.parameters.values():
        parameter = reader.parameter(draft, _pinned(merged, draft), merged.held.get(draft.name))
        if parameter is None:
            unknown[draft.name] = left_out.get(draft.name, "its value in force is not known")
        else:
            items.append(parameter)
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
    return admit_current(rules, by_host - merged.held.keys())


def _figures(
    merged: Merged, reader: Reader, order: tuple[Item, ...], left_out: Container[str]
) -> tuple[Figure, ...]:
    """Return the figures of capacity that something on this host can change."""
    changing = {item.identifier for item in order if item.name not in left_out}
    figures = (reader.figure(draft) for draft in merged.capacity.values())
    return tuple(figure for figure in figures if figure.value.names & changing)


def _reader(merged: Merged, facts: SpaceFacts, default: Capacity) -> Reader:
    """Return the reader whose expressions see this capacity as the least; nothing where it is empty."""
    least: dict[str, dict[str, int | float]] = {server: {} for server in merged.servers}
    for server, figure in merged.capacity:
        least[server][figure] = default.get(server, {}).get(figure, 0)
    names: Iterable[str] = (*merged.parameters, *merged.derived)
    versions = {server: facts.versions.get(server, ()) for server in merged.servers}
    return Reader(
        known=frozenset({*FACTS, *facts.names, *map(identifier, names)}),
        facts=dict(facts.names),
        evaluators={
            "": Evaluator(()),
            **{server: Evaluator(version, least[server]) for server, version in versions.items()},
        },
        current=facts.current,
        installed=facts.installed,
    )


def _refuse_ambiguous(merged: Merged, facts: SpaceFacts) -> None:
    seen: dict[str, str] = {}
    for draft in (*merged.parameters.values(), *merged.derived.values()):
        word = identifier(draft.name)
        if word in _RESERVED or word in facts.names:
            wrong = f"the name {draft.name} is that of a fact, function or word"
            raise problem(draft.place, wrong, "Rename it")
        if word in seen:
            wrong = f"the name {draft.name} reads {word} in expressions, as {seen[word]} does"
            raise problem(draft.place, wrong, "Rename one of them")
        seen[word] = draft.name


def _pinned(merged: Merged, draft: Draft) -> str:
    risk = draft.fields.get("risk", "safe")
    if draft.name in merged.pinned:
        return merged.pinned[draft.name]
    return "" if risk in merged.allowed else f"{risk}, and `allow:` does not name {risk}"
