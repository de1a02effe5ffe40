"""What a winner of a private instance would lower on a host where somebody had raised it.

The study knows the packaged defaults, not what an administrator made of them: 1,024 connections may be more
than the 768 of the package and less than the 4,096 that are installed.
"""

from collections.abc import Mapping

from tuner.errors import UsageError
from tuner.ports import Config, Scalar
from tuner.space import Space
from tuner.space.rules import MEMORY

Lowered = Mapping[str, tuple[Scalar, Scalar]]
"""Setting → what is installed and what the winner has."""


def keep_limits(space: Space, config: Config, installed: Config) -> Config:
    """Leave out limits that are installed higher: what follows from the winner is the least that it needs."""
    limits = {each.name for each in space.derived if each.is_limit}
    return {
        name: value
        for name, value in config.items()
        if name not in limits or not _is_lower(value, installed.get(name))
    }


def find_lowered(space: Space, config: Config, installed: Config) -> Lowered:
    """Find the settings with which the server holds less than with what is installed.

    Args:
        space: of the study.
        config: what is to be written.
        installed: the active values, as far as they are known.
    """
    bounds = {name for figure in space.rules.figures if figure.name != MEMORY for name in figure.value.names}
    parameters = {each.name for each in space.parameters}
    known = {name: value for name, value in installed.items() if name in parameters}
    held = _count_held(space, known)
    found = {}
    for name, value in config.items():
        before = installed.get(name)
        if before is None or not _is_lower(value, before):
            continue
        after = _count_held(space, {**known, name: value}) if name in parameters else {}
        if name in bounds or any(after[key] < held.get(key, 0) for key in after):
            found[name] = (before, value)
    return found


def describe_lowered(space: Space, lowered: Lowered) -> list[str]:
    """Return a line for each setting that is lowered."""
    return [
        f"lowers the installed value: {name} {space.show(name, before)} → {space.show(name, after)}"
        for name, (before, after) in lowered.items()
    ]


def _is_lower(value: Scalar, installed: Scalar | None) -> bool:
    is_text = any(isinstance(each, bool | str | None) for each in (value, installed))
    return not is_text and float(value) < float(installed or 0)


def _count_held(space: Space, values: Config) -> dict[tuple[str, str], int | float]:
    """Return what servers hold at once with these values; nothing where they cannot be together."""
    free = space.open()
    try:
        found = free.capacity(free.complete(values, fit=True))
    except UsageError:
        return {}
    return {
        (server, name): number
        for server, figures in found.items()
        for name, number in figures.items()
        if name != MEMORY
    }
