"""Builds the space of one host: leaves out what it lacks, orders what is left, checks it."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from keyword import kwlist

from tuner.space.arithmetic import is_at_least, parse_version
from tuner.space.capacity import ALLOWANCE, Capacity, guard_by
from tuner.space.checking import check
from tuner.space.expressions import FACTS, FUNCTIONS, Evaluator
from tuner.space.folding import admit_current, fold
from tuner.space.merging import Draft, Merged
from tuner.space.ordering import Item, depends_on, order_by_dependency
from tuner.space.parameters import (
    CURRENT,
    Constraint,
    Derived,
    Figure,
    Parameter,
    Preset,
    SpaceFacts,
    identifier,
)
from tuner.space.presets import fit_presets
from tuner.space.problems import problem
from tuner.space.reading import Reader
from tuner.space.settling import Rules
from tuner.space.space import Space

_RESERVED = frozenset({*FACTS, *FUNCTIONS, *kwlist, "version"})


def build(merged: Merged, facts: SpaceFacts) -> Space:
    """Return the space on this host, checked. Raises UsageError.

    Where capacity is guarded it is built twice: bounds may ask for what the default holds.
    """
    _refuse_ambiguous(merged, facts)
    reader = _reader(merged, facts, {})
    free = _build(merged, facts, reader)
    if not merged.capacity or ALLOWANCE in merged.allowed:
        check(free, merged)
        return _with_presets(replace(free, allows_less=True), merged, reader)
    default = free.capacity(free.default())
    own_reader = _reader(merged, facts, default)
    space = _build(merged, facts, own_reader)
    space = replace(space, rules=replace(space.rules, guard=guard_by(default, facts.names)))
    check(space, merged)
    free = _with_presets(replace(free, allows_less=True), merged, reader)
    return replace(_with_presets(space, merged, own_reader, free=free), unguarded=free)


def _with_presets(space: Space, merged: Merged, reader: Reader, *, free: Space | None = None) -> Space:
    """Return the space with the presets that fit.

    Those of the space without a guard that hold less than the default, and do not adapt, are refused.
    """
    below = {preset.name: preset for preset in free.presets if _lacks(free, preset)} if free else {}
    fitting, refused = fit_presets(space, merged, reader)
    presets = tuple(
        preset
        for preset in fitting
        if preset.name not in below or preset.adjusted.keys() == below[preset.name].adjusted.keys()
    )
    for name in below.keys() - {preset.name for preset in presets}:
        lacks = _lacks(free, below[name])[0] if free else ""
        refused[f"preset {name}"] = f"{lacks}; `tuner compare` takes it all the same"
    return replace(space, presets=presets, left_out={**space.left_out, **refused})


def _lacks(space: Space, preset: Preset) -> tuple[str, ...]:
    return space.lacks(space.complete(preset.values))


def _build(merged: Merged, facts: SpaceFacts, reader: Reader) -> Space:
    """Return the space without presets, not yet checked."""
    left_out = _left_out(merged, facts)
    items, unknown = _read_items(merged, reader, left_out)
    usable = _drop_dependents(order_by_dependency(items), left_out, unknown)
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
    constraints = [
        Constraint(
            rule=reader.parse(draft.fields["rule"], draft.at("rule"), draft.server),
            why=draft.fields.get("why", ""),
        )
        for draft in merged.constraints.values()
    ]
    rules = Rules(
        facts=reader.facts,
        order=order,
        hidden=frozenset(left_out),
        ranks={name: rank for rank, name in enumerate((*merged.parameters, *merged.derived))},
        constraints=tuple(constraints),
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
    items = {item.identifier: item.name for item in order}
    figures = (reader.figure(draft) for draft in merged.capacity.values())
    return tuple(
        figure
        for figure in figures
        if any(items[name] not in left_out for name in figure.value.names if name in items)
    )


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
            raise problem(
                draft.place, f"the name {draft.name} is that of a fact, function or word", "Rename it"
            )
        if word in seen:
            raise problem(
                draft.place,
                f"the name {draft.name} reads {word} in expressions, as {seen[word]} does",
                "Rename one of them",
            )
        seen[word] = draft.name


def _pinned(merged: Merged, draft: Draft) -> str:
    risk = draft.fields.get("risk", "safe")
    if draft.name in merged.pinned:
        return merged.pinned[draft.name]
    return "" if risk in merged.allowed else f"{risk}, and `allow:` does not name {risk}"


def _left_out(merged: Merged, facts: SpaceFacts) -> dict[str, str]:
    drafts = (*merged.parameters.values(), *merged.derived.values())
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


def _drop_dependents(
    ordered: Sequence[Item], left_out: dict[str, str], unknown: dict[str, str]
) -> tuple[Item, ...]:
    """Return what can be evaluated. What needs an unknown value joins `unknown`.

    A parameter that is left out keeps its default for the eyes of expressions: that is what is in force.
    """
    missing = {identifier(name): name for name in unknown}
    usable = []
    for item in ordered:
        if item.name in left_out and isinstance(item, Derived):
            needs = {item.identifier: item.name}
            missing |= needs
            continue
        lacking = sorted(missing[name] for name in depends_on(item) if name in missing)
        if lacking:
            unknown[item.name] = left_out.get(item.name, f"it depends on {lacking[0]}, which is left out")
            missing[item.identifier] = item.name
        else:
            usable.append(item)
    return tuple(usable)
