"""The winner in the formats that operators use: one file per format, bytes out, no effects.

What differs is read off the files themselves, so that an export says what was measured. Of a private instance
a server adapter renders the default and the winner; of an installed service it says what it makes of the
installed files. A format knows the syntax of its files; it knows no parameter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from tuner.errors import UsageError
from tuner.export import json_file, nginx, sysctl
from tuner.export.drop_in import export_drop_in
from tuner.export.rendered import Rendered, render_both
from tuner.export.rewritten import Rewritten, export_rewritten
from tuner.plugins import Kind, adapter_names, make_server
from tuner.ports import InstalledServer

if TYPE_CHECKING:
    from tuner.ports import Files
    from tuner.report.summary import Summary

__all__ = [
    "Format",
    "Rendered",
    "Rewritten",
    "export",
    "find_format",
    "formats_of",
    "paths_to_read",
    "refuse_less_capacity",
    "render_both",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one format is written."""

    server: str | None
    """The adapter whose files it needs; None for all settings of the study."""
    private: "Callable[[Summary, Rendered, Files], dict[str, bytes]] | None" = None
    """Writes what a private instance ran with; None where that says nothing of an installed service."""
    managed: "Callable[[Summary, Rewritten], dict[str, bytes]] | None" = None
    """Writes what an installed service ran with."""
    reads: Callable[[Rendered], tuple[PurePosixPath, ...]] = lambda _: ()
    """Files of the machine that `private` wants to see, as they are before anything is applied."""


def export_keys(summary: "Summary", rewritten: Rewritten) -> dict[str, bytes]:
    """Write the kernel's settings that an installed host ran with."""
    both = Rendered(default=rewritten.before, winner=rewritten.after)
    return sysctl.export_sysctl(summary, both, rewritten.before)


def rewritten_as(server: str) -> "Callable[[Summary, Rewritten], dict[str, bytes]]":
    """Make the writer of a server's installed files."""
    return lambda summary, rewritten: export_rewritten(summary, server, rewritten)


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "nginx": Format(
            server="nginx",
            private=nginx.export_nginx,
            managed=rewritten_as("nginx"),
            reads=lambda _: nginx.INSTALLED,
        ),
        "sysctl": Format(
            server="sysctl",
            private=sysctl.export_sysctl,
            managed=export_keys,
            reads=sysctl.paths_to_read,
        ),
        "json": Format(server=None),
    }
)


def export(
    summary: "Summary",
    name: str,
    *,
    rendered: "Mapping[str, Rendered | Rewritten]",
    installed: "Files | None" = None,
) -> dict[str, bytes]:
    """Write the winner in one format, with its undo; file name → content.

    Args:
        summary: a study with a winner.
        name: one of FORMATS.
        rendered: server → what its adapter renders for the default and for the winner, or makes of the
            installed files.
        installed: the machine's own files, as `paths_to_read` names them; what is absent is left out.

    Returns:
        Nothing when the winner changes no setting of that server.

    Raises:
        UsageError: unknown format, no winner yet, a server that the study does not tune, one that ran
            privately where only installed files can be told, or a winner that holds less than the default.
    """
    chosen = find_format(name)
    if summary.winner is None:
        msg = (
            f"{summary.study}: there is no winner to export, the study is {summary.state}. "
            "Finish it with `tuner run`; if nothing beat the default, there is nothing to apply."
        )
        raise UsageError(msg)
    refuse_less_capacity(summary, "export")
    if chosen.server is None:
        return json_file.export_json(summary)
    found = find_rendered(summary, chosen.server, name, rendered)
    if isinstance(found, Rewritten):
        if chosen.managed is not None:
            return chosen.managed(summary, found)
    elif found.drop_in is not None:
        return export_drop_in(summary, chosen.server, found, found.drop_in)
    elif chosen.private is not None:
        return chosen.private(summary, found, installed or {})
    msg = (
        f"{summary.study}: {chosen.server} ran as a private instance, and as {name} only the files of an "
        "installed service can be exported. Choose --format json, or put the winner on a host with "
        "`tuner apply`."
    )
    raise UsageError(msg)


def refuse_less_capacity(summary: "Summary", purpose: str) -> None:
    """Raise UsageError for a winner that holds less than the default, unless the study allows it."""
    if summary.is_held_back:
        msg = (
            f"{summary.study}: {'; '.join(summary.lacks)}. Beside slow clients that is an outage, so "
            f"there is no {purpose}. Tune again in a new study, or write `- {{allow: [capacity]}}` under "
            "`space:`."
        )
        raise UsageError(msg)


def paths_to_read(name: str, rendered: "Mapping[str, Rendered | Rewritten]") -> tuple[PurePosixPath, ...]:
    """Name the machine's files that `export` wants to see. Raises UsageError for an unknown format."""
    chosen = find_format(name)
    found = rendered.get(chosen.server or "")
    return chosen.reads(found) if isinstance(found, Rendered) else ()


def formats_of(rendered: "Mapping[str, Rendered | Rewritten]") -> tuple[str, ...]:
    """Name the formats in which these servers can be exported."""
    return tuple(name for name, chosen in all_formats().items() if _is_offered(chosen, rendered))


def _is_offered(chosen: Format, rendered: "Mapping[str, Rendered | Rewritten]") -> bool:
    if chosen.server is None:
        return True
    match rendered.get(chosen.server):
        case Rendered() as found:
            return chosen.private is not None or found.drop_in is not None
        case Rewritten():
            return chosen.managed is not None
    return False


def find_format(name: str) -> Format:
    """Look a format up. Raises UsageError that names the nearest ones."""
    formats = all_formats()
    if name not in formats:
        order = get_close_matches(name, formats, len(formats), 0)
        msg = f"--format: there is no format {name!r}. There are: {', '.join(order)}."
        raise UsageError(msg)
    return formats[name]


def all_formats() -> Mapping[str, Format]:
    """Return the formats by name: one for each server that there is, and those that need none."""
    servers = {
        name: Format(server=name, managed=rewritten_as(name))
        for name in adapter_names(Kind.SERVER)
        if isinstance(make_server(name), InstalledServer)
    }
    return {**servers, **FORMATS}


def find_rendered(
    summary: "Summary", server: str, name: str, rendered: "Mapping[str, Rendered | Rewritten]"
) -> Rendered | Rewritten:
    """Take what the format's server rendered. Raises UsageError when the study does not tune it."""
    if server not in rendered:
        servers = ", ".join(sorted(rendered))
        msg = (
            f"{summary.study}: the study tunes {servers}, so there is nothing to export as {name}. "
            f"Choose --format json, or one of its own servers."
        )
        raise UsageError(msg)
    return rendered[server]
