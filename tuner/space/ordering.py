"""Orders parameters and derived settings so that each comes after what it depends on."""

from collections.abc import Mapping, Sequence

from tuner.space.parameters import Derived, Parameter
from tuner.space.problems import problem

Item = Parameter | Derived


def order_by_dependency(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items in an order in which they can be evaluated. Raises UsageError that names a cycle."""
    by_identifier = {item.identifier: item for item in items}
    waiting = {item.identifier: depends_on(item) & by_identifier.keys() for item in items}
    ordered: list[Item] = []
    while waiting:
        ready = [identifier for identifier, needs in waiting.items() if not needs & waiting.keys()]
        if not ready:
            _refuse_cycle(waiting, by_identifier)
        for identifier in ready:
            del waiting[identifier]
            ordered.append(by_identifier[identifier])
    return tuple(ordered)


def depends_on(item: Item) -> frozenset[str]:
    """Return the identifiers and facts that the item's expressions use."""
    return frozenset().union(*(expression.names for expression in item.expressions))


def _refuse_cycle(waiting: Mapping[str, frozenset[str]], items: Mapping[str, Item]) -> None:
    path = [next(iter(waiting))]
    while path[-1] not in path[:-1]:
        path.append(min(waiting[path[-1]] & waiting.keys()))
    cycle = path[path.index(path[-1]) :]
    item = items[cycle[0]]
    expression = next(expression for expression in item.expressions if cycle[1] in expression.names)
    raise problem(
        expression.place,
        f"`{expression.text}` is circular: {' → '.join(items[identifier].name for identifier in cycle)}",
        "Let one of them depend on facts alone",
    )
