"""What a study brings along besides values of known settings: whoever checks it has to trust it for that.

A check of a study from somebody else must do nothing that its author chose freely: run a command, or write a
directive that no space of tuner's own knows (Apache starts programs for some, and loads modules).
"""

import shlex
from collections.abc import Iterable
from pathlib import Path

from tuner.errors import UsageError
from tuner.settings import Study
from tuner.space import Space, available_spaces, describe_space
from tuner.space.parameters import Derived, Parameter

MOST_NAMED = 5


def name_programs(settings: Study) -> tuple[str, ...]:
    """Name the programs of the author's own that sending load means to run."""
    load = settings.load
    found = []
    if load.command:
        found.append(f"load.command runs `{shlex.join(load.command)}`")
    if load.script is not None:
        found.append(f"load.script runs {load.script}")
    return tuple(found)


def name_own_settings(space: Space) -> tuple[str, ...]:
    """Name what its own space files let be written that tuner's spaces do not know: settings and texts."""
    known = {
        row["name"]: frozenset(map(str, (*row["choices"], *row["special"].values())))
        for name in available_spaces()
        for row in describe_space(name)
    }
    written: tuple[Parameter | Derived, ...] = (*space.parameters, *space.derived)
    found = [
        f"space: {each.name} is a setting that tuner's own spaces do not have"
        for each in written
        if each.name not in known and not each.internal
    ]
    for parameter in space.parameters:
        texts = [each for each in (*parameter.choices, *parameter.special.values()) if isinstance(each, str)]
        found += [
            f"space: {parameter.name} may become {text!r}, which tuner's own spaces do not have"
            for text in texts
            if parameter.name in known and text not in known[parameter.name]
        ]
    return tuple(found)


def refuse_untrusted(study: Path, demands: Iterable[str]) -> None:
    """Raise UsageError naming what a study brings along, when it brings anything."""
    found = list(demands)
    if not found:
        return
    more = f"; and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    told = "; ".join(found[:MOST_NAMED])
    message = (
        f"{study}: what its author chose is done only when you trust it: {told}{more}. Read the study and "
        "the files that it names, then check it with --trust."
    )
    raise UsageError(message)
