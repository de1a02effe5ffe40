"""Rules of a valid configuration: order and bounds of its settings, constraints, and capacity.

Capacity is what a server holds at once. No configuration has less capacity than the default, unless allowed.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.space.expressions import Expression, Special, Text
from tuner.space.parameters import CURRENT, Bound, Derived, Figure, Item, Parameter, ParameterConstraint
from tuner.space.problems import Refused, problem
from tuner.space.values import accept, find_special, format_number, keep_within, round_bounds

Scope = dict[str, object]
"""Identifier → value, as expressions see them."""
Pick = Callable[[Parameter, float, float, Scope], Scalar | None]
"""Chooses the value of an active parameter within its bounds; None leaves it at its default."""
ALLOWANCE = "capacity"
"""The word of `allow:` with which a study may go below the default's capacity."""
MEMORY = "memory_mib"
"""The figure that has a most instead of a least, and the fact that bounds it."""
MOST_GROWTH = 2.0
"""Times the default's memory that a server may take without a warning."""
LABELS = {"requests": "requests at once", "queue": "waiting connections", MEMORY: "memory at most"}

Capacity = Mapping[str, Mapping[str, int | float]]
"""Server → figure → number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What no configuration may go below, and how much memory all servers together may take."""

    least: Capacity
    most_mib: float | None
    """None where the machine's memory is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Everything that decides what a valid configuration is on this host."""

    facts: Mapping[str, Scalar]
    order: tuple[Item, ...]
    """Each after what it depends on."""
    hidden: frozenset[str]
    """Parameters that are left out here; expressions see their default, which is active."""
    ranks: Mapping[str, int]
    """Name → place in the configuration."""
    constraints: tuple[ParameterConstraint, ...]
    figures: tuple[Figure, ...] = ()
    guard: Guard | None = None
    """What a configuration has to hold; None where that is left to whoever asks."""

    def settle(self, pick: Pick, *, watched: bool = False) -> dict[str, Scalar]:
        """Return the configuration in which `pick` chooses every active parameter.

        When watched, special values and texts are handed to expressions in a form that refuses misuse, and
        bounds that cross raise UsageError instead of being pulled together.
        """
        scope: Scope = dict(self.facts)
        config: dict[str, Scalar] = {}
        for item in self.order:
            value = self._value(item, pick, scope, watched=watched)
            if value is None:
                continue
            scope[item.identifier] = watch(item, value) if watched else value
            if item.name not in self.hidden:
                config[item.name] = value
        return dict(sorted(config.items(), key=lambda entry: self.ranks[entry[0]]))

    def _value(self, item: Item, pick: Pick, scope: Scope, *, watched: bool) -> Scalar | None:
        if isinstance(item, Parameter) and item.name in self.hidden:
            return default_value(item, -math.inf, math.inf, scope)
        if item.when is not None and not item.when.holds(scope):
            return None
        if isinstance(item, Derived):
            return derived_value(item, scope)
        low, high = evaluate_bounds(item, scope)
        if watched:
            check_bounds(item, low, high, scope)
        high = max(low, high)
        chosen = pick(item, low, high, scope)
        return default_value(item, low, high, scope) if chosen is None else chosen

    def broken(self, config: Mapping[str, Scalar], *, watched: bool = False) -> tuple[str, ...]:
        """Return a sentence for each constraint that the configuration breaks."""
        scope = self.scope(config, watched=watched)
        sentences = (breaks(constraint, scope) for constraint in self.constraints)
        capacity = capacity_at(self.figures, scope)
        lacks = name_shortfalls(self.figures, capacity, self.guard) if self.guard else ()
        return (*(sentence for sentence in sentences if sentence), *lacks)

    def scope(self, config: Mapping[str, Scalar], *, watched: bool = False) -> Scope:
        """Return what expressions see of a configuration."""
        scope: Scope = dict(self.facts)
        for item in self.order:
            if item.name in config:
                value = config[item.name]
            elif item.name in self.hidden and isinstance(item, Parameter):
                value = default_value(item, -math.inf, math.inf, scope)
            else:
                continue
            scope[item.identifier] = watch(item, value) if watched else value
        return scope


def breaks(constraint: ParameterConstraint, scope: Scope) -> str:
    """Return a sentence when a constraint does not hold, else nothing."""
    rule = constraint.rule
    if not rule.names <= scope.keys() or rule.holds(scope):
        return ""
    values = ", ".join(f"{name} = {scope[name]}" for name in sorted(rule.names))
    return f"`{rule.text}` does not hold with {values}" + (f": {constraint.why}" if constraint.why else "")


def watch(item: Item, value: Scalar) -> object:
    """Return the value in a form that refuses misuse in expressions.

    What is active on the host is a quantity also where it is outside the range, and so special.
    """
    if isinstance(item, Parameter) and item.is_numeric:
        label = find_special(item.special, value)
        if label is not None and label != CURRENT:
            return Special(item.identifier, value)
    return Text(value) if isinstance(value, str) else value


def evaluate_bounds(parameter: Parameter, scope: Mapping[str, object]) -> tuple[int | float, int | float]:
    """Return low and high as they are beside the values chosen so far; (0, 0) where there is no range."""
    if not parameter.is_numeric:
        return 0, 0
    low, high = parameter.low, parameter.high
    if not isinstance(low, Expression) and not isinstance(high, Expression):
        return low, high
    return round_bounds(_evaluate_bound(low, scope), _evaluate_bound(high, scope), parameter.kind)


def _evaluate_bound(bound: Bound, scope: Mapping[str, object]) -> int | float:
    if not isinstance(bound, Expression):
        return bound
    value = bound.evaluate(scope)
    if isinstance(value, (bool, str)):
        raise bound.failure(f"the bound is {value!r}, not a number", scope)
    return value


def check_bounds(parameter: Parameter, low: float, high: float, scope: Mapping[str, object]) -> None:
    """Refuse bounds that cross, and a logarithm of what is not positive. Raises UsageError."""
    for bound in (parameter.low, parameter.high):
        if isinstance(bound, Expression):
            with_values = ", ".join(f"{name} = {scope.get(name)}" for name in sorted(bound.names))
            if low > high:
                raise problem(
                    bound.place,
                    f"low {format_number(low)} is above high {format_number(high)} with {with_values}",
                    "Limit the bound with min(…) or max(…), or limit the parameters in it",
                )
            if parameter.log and low <= 0:
                raise problem(
                    bound.place,
                    f"the scale is log and low is {format_number(low)} with {with_values}",
                    "Keep low above 0, as max(1, …)",
                )


def derived_value(derived: Derived, scope: Mapping[str, object]) -> Scalar:
    """Return what the derived setting is beside the values chosen so far."""
    value = derived.value.evaluate(scope)
    if derived.least is not None and not isinstance(value, str):
        value = max(value, derived.least)
    if isinstance(value, float):
        return math.floor(value + 1e-9) if derived.kind == "int" else float(f"{value:.12g}")
    return value


def default_value(parameter: Parameter, low: float, high: float, scope: Mapping[str, object]) -> Scalar:
    """Return the default beside the values chosen so far, pulled into its bounds when they have moved."""
    default = asked_default(parameter, scope)
    return default if math.isinf(high) else keep_within(parameter, default, low, high)


def asked_default(parameter: Parameter, scope: Mapping[str, object]) -> Scalar:
    """Return the default as it is written. Raises UsageError when its expression gives something else."""
    if not isinstance(parameter.default, Expression):
        return parameter.default
    value = parameter.default.evaluate(scope)
    try:
        return accept(parameter, value)
    except Refused as refused:
        raise parameter.default.failure(refused.wrong, scope) from refused


def capacity_at(figures: Iterable[Figure], scope: Mapping[str, object]) -> dict[str, dict[str, int | float]]:
    """Return the figures of all servers; those are left out that need what this host does not have.

    That is a setting that is inactive, unknown on this host, or a text, which is what somebody's own space
    has made of a number: whether it is trusted is asked elsewhere.
    """
    found: dict[str, dict[str, int | float]] = {}
    for figure in figures:
        try:
            value = figure.value.evaluate(scope)
        except UsageError:
            used = [scope.get(name) for name in figure.value.names]
            if not any(each is None or isinstance(each, str) for each in used):
                raise
            continue
        if isinstance(value, (bool, str)):
            raise figure.value.failure(f"the capacity is {value!r}, not a number", scope)
        found.setdefault(figure.server, {})[figure.name] = value
    return found


def guard_by(default: Capacity, facts: Mapping[str, Scalar]) -> Guard:
    """Return the guard that asks for the default's capacity.

    Memory is bounded by the machine's. Where the default alone may take more than that, it is the bound:
    a server that is active must stay possible.
    """
    memory_mib = facts.get(MEMORY)
    most = max(float(memory_mib), _memory(default)) if isinstance(memory_mib, int | float) else None
    return Guard(least=default, most_mib=most)


def name_shortfalls(figures: Iterable[Figure], found: Capacity, guard: Guard) -> tuple[str, ...]:
    """Return a sentence for every figure that is below the guard's, and for too much memory."""
    sentences = [
        f"{figure.server} has capacity for {value:,.0f} {figure.counts}, the default for {least:,.0f}"
        for figure, value in _figures_in(figures, found)
        for _, least in _figures_in([figure], guard.least)
        if figure.name != MEMORY and value < least
    ]
    memory_mib = _memory(found)
    if guard.most_mib is not None and memory_mib > guard.most_mib:
        sentences.append(
            f"it may take {_show_mib(memory_mib)} of memory, and the limit is {_show_mib(guard.most_mib)}"
        )
    return tuple(sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Memory of one server that grows by more than it may without a warning, in MiB."""

    server: str
    default: float
    changed: float
    setting: str
    """The one that takes most of it; empty where no single one does."""
    without: float
    """With that setting at its default."""

    def __str__(self) -> str:
        """Return it as a part of a sentence."""
        said = (
            f"{self.server} may take {_show_mib(self.default)} of memory by default and "
            f"{_show_mib(self.changed)} with these settings: {self.changed / self.default:.1f} times as much"
        )
        if not self.setting:
            return said
        return f"{said} (with {self.setting} at its default: {_show_mib(self.without)})"


def find_growth(default: Capacity, changed: Capacity, reverted: Mapping[str, Capacity]) -> tuple[Growth, ...]:
    """Return every server whose memory grows by more than it may without a warning.

    Args:
        default: capacity by default.
        changed: with all changes.
        reverted: setting → capacity with all changes but its own.
    """
    found: list[Growth] = []
    for server, held in changed.items():
        before, after = default.get(server, {}).get(MEMORY, 0), held.get(MEMORY, 0)
        if not 0 < before < after / MOST_GROWTH:
            continue
        left = {name: each.get(server, {}).get(MEMORY, after) for name, each in reverted.items()}
        setting = min(left, key=lambda name: left[name], default="")
        without = left.get(setting, after)
        found.append(
            Growth(
                server=server, default=before, changed=after, setting=setting if without < after else "",
                without=without,
            )
        )  # fmt: skip
    return tuple(found)


def describe_capacity(figures: Iterable[Figure], found: Capacity) -> dict[str, str]:
    """Return server → what it can hold, in one line."""
    lines: dict[str, list[str]] = {}
    for figure, value in _figures_in(figures, found):
        shown = f"{_show_mib(value)} at most" if figure.name == MEMORY else f"{value:,.0f} {figure.counts}"
        lines.setdefault(figure.server, []).append(shown)
    return {server: ", ".join(parts) for server, parts in lines.items()}


def _figures_in(figures: Iterable[Figure], found: Capacity) -> Iterator[tuple[Figure, int | float]]:
    for figure in figures:
        if figure.name in found.get(figure.server, {}):
            yield figure, found[figure.server][figure.name]


def _show_mib(value: float) -> str:
    return f"about {value / 1024:.1f} GiB" if value >= 1024 else f"about {value:.0f} MiB"  # noqa: PLR2004


def _memory(capacity: Capacity) -> float:
    return float(sum(figures.get(MEMORY, 0) for figures in capacity.values()))
