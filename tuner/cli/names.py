"""Names that shells complete: of servers, studies, contents, formats, parameters, configurations.

Nothing that is typed may print an error: what cannot be read completes to nothing: the shell offers files.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer

from tuner.errors import TunerError

Completer = Callable[[typer.Context, str], list[str]]


def _completes(find: Callable[[dict[str, Any]], Iterable[str]]) -> Completer:
    """Return what a shell asks: the names that begin as the word does that is being typed."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return sorted(name for name in find(ctx.params) if name.startswith(incomplete))
        except TunerError:
            return []

    return complete


@_completes
def servers(_: dict[str, Any]) -> Iterable[str]:
    """Return the servers that a study may tune."""
    from tuner.plugins import AdapterKind, adapter_names

    return adapter_names(AdapterKind.SERVER)


@_completes
def backends(_: dict[str, Any]) -> Iterable[str]:
    """Return what may stand behind a server."""
    from tuner.plugins import AdapterKind, adapter_names

    return (*adapter_names(AdapterKind.SERVER), *adapter_names(AdapterKind.BACKEND))


@_completes
def formats(_: dict[str, Any]) -> Iterable[str]:
    """Return the formats in which a winner is exported."""
    from tuner.export import all_formats as known

    return known()


@_completes
def studies(_: dict[str, Any]) -> Iterable[str]:
    """Return the studies that come with tuner."""
    from tuner.study.named_studies import named_studies

    return named_studies()


@_completes
def contents(_: dict[str, Any]) -> Iterable[str]:
    """Return the built-in contents."""
    from tuner.study.loads.builtin_loads import BUILTIN_LOADS

    return BUILTIN_LOADS


@_completes
def spaces(_: dict[str, Any]) -> Iterable[str]:
    """Return the search spaces."""
    from tuner.space import available_spaces

    return available_spaces()


@_completes
def parameters(given: dict[str, Any]) -> Iterable[str]:
    """Return the parameters of the spaces that the study before them names."""
    from tuner.space import describe_space
    from tuner.study import load_study

    named = (entry for entry in load_study(Path(given["study"])).space if isinstance(entry, str))
    return {row["name"] for name in named for row in describe_space(name) if row["kind"] != "derived"}


@_completes
def configurations(given: dict[str, Any]) -> Iterable[str]:
    """Return the configurations of a study that have a name."""
    from tuner.space import describe_presets
    from tuner.study import load_study

    named = (entry for entry in load_study(Path(given["study"])).space if isinstance(entry, str))
    presets = (preset["name"] for name in named for preset in describe_presets(name))
    return {"default", "winner", "candidate", *presets}
