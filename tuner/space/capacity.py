"""Capacity of servers: what they hold at once. No configuration holds less than the default does."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tuner.errors import UsageError
from tuner.ports import Scalar
from tuner.space.parameters import Figure

ALLOWANCE = "capacity"
"""The word of `allow:` with which a study may go below the default's capacity."""
MEMORY = "memory_mib"
"""The figure that has a most instead of a least, and the fact that bounds it."""
LABELS = {"requests": "requests at once", "queue": "waiting connections", MEMORY: "memory at most"}

Capacity = Mapping[str, Mapping[str, int | float]]
"""Server → figure → number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What no configuration may go below, and how much memory all servers together may take."""

    least: Capacity
    most_mib: float | None
    """None where the machine's memory is not known."""


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
    a server that is in force must stay possible.
    """
    memory_mib = facts.get(MEMORY)
    most = max(float(memory_mib), _memory(default)) if isinstance(memory_mib, int | float) else None
    return Guard(least=default, most_mib=most)


def name_shortfalls(figures: Iterable[Figure], found: Capacity, guard: Guard) -> tuple[str, ...]:
    """Return a sentence for every figure that is below the guard's, and for too much memory."""
    sentences = [
        f"{figure.server} holds {value:,.0f} {figure.counts}, the default {least:,.0f}"
        for figure, value in _figures_in(figures, found)
        for _, least in _figures_in([figure], guard.least)
        if figure.name != MEMORY and value < least
    ]
    memory_mib = _memory(found)
    if guard.most_mib is not None and memory_mib > guard.most_mib:
        sentences.append(f"it may take {_show_mib(memory_mib)}, and {_show_mib(guard.most_mib)} are there")
    return tuple(sentences)


def describe(figures: Iterable[Figure], found: Capacity) -> dict[str, str]:
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
