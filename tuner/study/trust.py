"""What a study brings along besides values of known settings: whoever checks it has to trust it for that.

A check of a study from somebody else must do nothing that its author chose freely: run a command, or write a
directive that no space of tuner's own knows (Apache starts programs for some, and loads modules).
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

from tuner.errors import UsageError
from tuner.ports import Config, Facts, Scalar
from tuner.space import (
    Derived,
    Parameter,
    Refused,
    Space,
    SpaceFacts,
    accept,
    available_spaces,
    describe_space,
    describe_spaces,
    load_space,
    possible_texts,
)
from tuner.study import Study

MOST_NAMED = 5


def name_programs(settings: Study) -> tuple[str, ...]:
    """Return what the author's own programs and requests do when load is sent."""
    found = [f"servers: {name}: program runs `{path}`" for name, path in settings.programs.items()]
    found += [each for name in settings.options for each in _name_options(settings, name)]
    if settings.backend is not None and settings.backend.command:
        found.append(f"backend.command runs `{shlex.join(settings.backend.command)}`")
    for load in settings.all_loads:
        if load.command:
            found.append(f"load.command runs `{shlex.join(load.command)}`")
        if load.script is not None:
            found.append(f"load.script runs {load.script}")
    if settings.target.is_managed:  # in a sandbox, what they change ends with it
        sent = [each for load in settings.sent_loads for each in load.requests]
        changing = (each for each in sent if each.method not in {"GET", "OPTIONS"})
        said = (f"load.requests sends {each.method} {each.path} to an installed service" for each in changing)
        found += dict.fromkeys(said)
    return tuple(found)


def _name_options(settings: Study, server: str) -> Iterator[str]:
    options = settings.options[server]
    for kind, argv in options.commands.items():
        yield f"servers: {server}: {kind} runs `{shlex.join(argv)}`"
    for name in options.templates:
        yield f"servers: {server}: a template writes {name}"


def name_own_settings(space: Space, current: Mapping[str, Scalar]) -> tuple[str, ...]:
    """Return what its own space files let be written that tuner's spaces do not know: settings and texts.

    Args:
        space: the space of the study, on this host.
        current: active values on the host, by name; one of those is nothing that the author chose.
    """
    known = _known_texts()
    found: list[str] = []
    for item, texts in _texts_of(space):
        if item.internal:
            continue
        if (item.server, item.name) not in known:
            found.append(_name_setting(item, known))
            continue
        in_force = {str(current[item.name])} if item.name in current else set()
        usual = known[item.server, item.name] | in_force
        found += [
            f"space: {item.name} may become {text!r}, and tuner's own search spaces have no such setting"
            for text in texts
            if text not in usual
        ]
    return tuple(found)


def _known_texts() -> Mapping[tuple[str, str], frozenset[str]]:
    """Return server and name → texts, of everything that tuner's own search spaces write."""
    return {
        (row["server"], row["name"]): frozenset(map(str, (*row["choices"], *row["special"].values())))
        for space in describe_spaces()
        if space["server"]
        for row in describe_space(space["name"])
        if not row["internal"]
    }


def _texts_of(space: Space) -> Iterator[tuple[Parameter | Derived, tuple[str, ...]]]:
    """Yield each setting of a space with the texts that it may become."""
    texts: dict[str, tuple[str, ...]] = {}
    there = {*(each.name for each in space.parameters), *(each.name for each in space.derived)}
    for item in space.rules.order:
        if isinstance(item, Derived):
            texts[item.identifier] = tuple(sorted(possible_texts(item.value, texts)))
        else:
            values = (*item.choices, *item.special.values())
            texts[item.identifier] = tuple(each for each in values if isinstance(each, str))
        if item.name in there:
            yield item, texts[item.identifier]


def _name_setting(item: Parameter | Derived, known: Iterable[tuple[str, str]]) -> str:
    owners = sorted(server for server, name in known if name == item.name)
    if owners and item.server:
        return f"space: {item.name} is a setting of {', '.join(owners)}, not of {item.server}"
    return f"space: {item.name} is a setting that tuner's own search spaces do not have"


def name_large_numbers(space: Space, facts: SpaceFacts) -> tuple[str, ...]:
    """Return numbers of the default configuration that tuner's own spaces do not go up to on this host.

    A check starts the servers with them; what they may cost in memory and time is bounded by that.
    """
    servers = {each.server for each in space.parameters} | {each.server for each in space.derived}
    names = [row["name"] for row in describe_spaces() if row["server"] in servers]
    if not names:  # a space of which this host has nothing
        return ()
    usual = load_space(names, facts=facts, base=Path())
    default = space.default()
    known = {each.name for each in usual.parameters if not each.internal}
    known |= {each.name for each in usual.derived if not each.internal}
    fitted = usual.complete(
        {each.name: default[each.name] for each in usual.parameters if _takes(each, default)}, fit=True
    )
    return tuple(
        f"space: {name} is {value}, and tuner's own search spaces allow at most {most} here"
        for name, value in default.items()
        if name in known and _is_number(value) and value != facts.current.get(name)
        for most in (fitted.get(name, 0),)
        if not _is_number(most) or value > most
    )  # fmt: skip


def _takes(parameter: Parameter, config: Config) -> bool:
    """Return whether a configuration has a value of the parameter's kind, even out of its range."""
    try:
        return parameter.name in config and accept(parameter, config[parameter.name]) is not None
    except Refused:
        return False


def _is_number(value: Scalar) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def refuse_own_settings(study: Path, space: Space, facts: Iterable[Facts]) -> None:
    """Raise UsageError naming what the space of a study would write that tuner's spaces do not know."""
    current = {name: value for each in facts for name, value in each.current.items()}
    refuse_untrusted(study, name_own_settings(space, current))


def refuse_large_numbers(study: Study, space: Space, facts: SpaceFacts) -> None:
    """Raise UsageError naming what a study sets higher than tuner's own spaces go, when it has its own."""
    if not all(each in available_spaces() for each in study.space):
        refuse_untrusted(study.path, name_large_numbers(space, facts))


def refuse_untrusted(study: Path, demands: Iterable[str]) -> None:
    """Raise UsageError naming what a study brings along, when it brings anything."""
    found = list(demands)
    if not found:
        return
    more = f"; and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    told = "; ".join(found[:MOST_NAMED])
    raise UsageError(
        f"{study}: the study brings its own commands or settings, and tuner uses them only if you trust "
        f"them: {told}{more}. Read the study and the files that it names. Then run `tuner check` with "
        "--trust."
    )
