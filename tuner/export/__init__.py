"""The winner in the formats that operators use: one file per format, bytes out, no effects.

What differs is read off the files themselves: a server adapter renders the default and the winner, and an
export is the difference between the two, so that it says what was measured. A format knows the syntax of
its files; it knows no parameter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from tuner.errors import UsageError
from tuner.export import apache, json_file, nginx, sysctl
from tuner.export.rendered import Rendered, render_both

if TYPE_CHECKING:
    from tuner.ports import Files
    from tuner.summary import Summary

__all__ = [
    "FORMATS", "Format", "Rendered", "export", "find_format", "paths_to_read", "refuse_less_capacity",
    "render_both",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one format is written."""

    server: str | None
    """The adapter whose files it needs; None for all settings of the study."""
    write: "Callable[[Summary, Rendered, Files], dict[str, bytes]]"
    reads: Callable[[Rendered], tuple[PurePosixPath, ...]]
    """Files of the machine that it wants to see, as they are before anything is applied."""


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "apache": Format(server="apache", write=apache.export_apache, reads=lambda _: ()),
        "nginx": Format(server="nginx", write=nginx.export_nginx, reads=lambda _: nginx.INSTALLED),
        "sysctl": Format(server="sysctl", write=sysctl.export_sysctl, reads=sysctl.paths_to_read),
        "json": Format(server=None, write=json_file.export_json, reads=lambda _: ()),
    }
)


def export(
    summary: "Summary",
    name: str,
    *,
    rendered: Mapping[str, Rendered],
    installed: "Files | None" = None,
) -> dict[str, bytes]:
    """Write the winner in one format, with its undo; file name → content.

    Args:
        summary: a study with a winner.
        name: one of FORMATS.
        rendered: server → what its adapter renders for the default and for the winner.
        installed: the machine's own files, as `paths_to_read` names them; what is absent is left out.

    Returns:
        Nothing when the winner changes no setting of that server.

    Raises:
        UsageError: unknown format, no winner yet, a server that the study does not tune, or a winner that
            holds less than the default.
    """
    chosen = find_format(name)
    if summary.winner is None:
        msg = (
            f"{summary.study}: there is no winner to export, the study is {summary.state}. "
            "Finish it with `tuner run`; if nothing beat the default, there is nothing to apply."
        )
        raise UsageError(msg)
    refuse_less_capacity(summary, "export")
    return chosen.write(summary, find_rendered(summary, chosen, name, rendered), installed or {})


def refuse_less_capacity(summary: "Summary", purpose: str) -> None:
    """Raise UsageError for a winner that holds less than the default, unless the study allows it."""
    if summary.is_held_back:
        msg = (
            f"{summary.study}: {'; '.join(summary.lacks)}. Beside slow clients that is an outage, so "
            f"there is no {purpose}. Tune again in a new study, or write `- {{allow: [capacity]}}` under "
            "`space:`."
        )
        raise UsageError(msg)


def paths_to_read(name: str, rendered: Mapping[str, Rendered]) -> tuple[PurePosixPath, ...]:
    """Name the machine's files that `export` wants to see. Raises UsageError for an unknown format."""
    chosen = find_format(name)
    if chosen.server is None or chosen.server not in rendered:
        return ()
    return chosen.reads(rendered[chosen.server])


def find_format(name: str) -> Format:
    """Look a format up. Raises UsageError that names the nearest ones."""
    if name not in FORMATS:
        order = [*get_close_matches(name, FORMATS, len(FORMATS), 0)]
        msg = f"--format: there is no format {name!r}. There are: {', '.join(order)}."
        raise UsageError(msg)
    return FORMATS[name]


def find_rendered(
    summary: "Summary", chosen: Format, name: str, rendered: Mapping[str, Rendered]
) -> Rendered:
    """Take what the format's server rendered. Raises UsageError when the study does not tune it."""
    if chosen.server is None:
        return Rendered(default={}, winner={})
    if chosen.server not in rendered:
        servers = ", ".join(sorted(rendered))
        msg = (
            f"{summary.study}: the study tunes {servers}, so there is nothing to export as {name}. "
            f"Choose --format json, or one of its own servers."
        )
        raise UsageError(msg)
    return rendered[chosen.server]
