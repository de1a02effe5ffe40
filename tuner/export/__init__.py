"""The winner in the formats that operators use: one per server, json, and those that know no server.

Bytes out, no effects. What differs is read off the files themselves, so that an export is what was measured:
the difference that a server's adapter makes to the installed files, or where these cannot be changed, to its
own. What the files are decides how they are written: keys of the kernel, a drop-in, a patch. No server is
known here by name.
"""

from collections.abc import Mapping
from difflib import get_close_matches

from tuner.errors import UsageError
from tuner.export.formats import FORMATS
from tuner.export.host_change import find_change, installed_of
from tuner.export.json_file import export_json
from tuner.export.rendered import Rendered, render_both
from tuner.export.rewritten import Rewritten
from tuner.export.server_files import export_server, write_change
from tuner.export.stored import differences_from_json, differences_to_json
from tuner.plugins import AdapterKind, adapter_names
from tuner.report.summary import Summary

__all__ = [
    "JSON",
    "Rendered",
    "Rewritten",
    "all_formats",
    "differences_from_json",
    "differences_to_json",
    "export",
    "formats_of",
    "installed_of",
    "refuse_less_capacity",
    "refuse_unknown_format",
    "render_both",
    "without_winner",
    "write_change",
]

JSON = "json"
"""The format that holds all settings of a study, whatever its servers."""
ALSO_CALLED = {
    "bash": "shell",
    "docker": "dockerfile",
    "helm": "kubernetes",
    "k8s": "kubernetes",
    "md": "markdown",
    "sh": "shell",
}
"""Other words for formats, which look like no format or like the wrong one."""


def export(summary: Summary, name: str, *, rendered: Mapping[str, Rendered | Rewritten]) -> dict[str, bytes]:
    """Write the winner in one format, with its undo; file name, which may lie in a folder, → content.

    Args:
        summary: a study with a winner.
        name: a server of the study, `json`, or one of FORMATS.
        rendered: server → what its adapter makes of the installed files, or renders for the default and for
            the winner.

    Returns:
        Nothing when the winner changes no setting of that server, for the formats of servers.

    Raises:
        UsageError: unknown format, no winner yet, a server that the study does not tune, or a winner that
            has less capacity than the default.
    """
    refuse_unknown_format(name)
    if summary.winner is None:
        raise without_winner(summary, "export")
    refuse_less_capacity(summary, "export")
    if name == JSON:
        return export_json(summary)
    if name in FORMATS:
        return FORMATS[name](summary, find_change(summary, rendered))
    if name not in rendered:
        raise UsageError(
            f"{summary.study}: the study tunes {', '.join(sorted(rendered))}, so there is nothing to export "
            f"as {name}. Choose --format json, or one of these servers."
        )
    return export_server(summary, name, rendered[name])


def without_winner(summary: Summary, purpose: str) -> UsageError:
    """Return the error of a study whose winner was asked for, to do this with it, and which has none."""
    if summary.is_too_noisy:
        state, what_next = "ended early on a noisy host", "Finish it with `tuner run`."
    elif summary.state == "finished":
        state = "finished"
        what_next = "Nothing is proven to beat the default; `tuner show` says what was found."
        if summary.found is not None:
            what_next += " The files of the rejected candidate are in `exports/candidate/`."
    else:
        state, what_next = summary.state, "Finish it with `tuner run`."
    return UsageError(f"{summary.study}: there is no winner to {purpose}, the study is {state}. {what_next}")


def refuse_less_capacity(summary: Summary, purpose: str) -> None:
    """Raise UsageError for a winner that has less capacity than the default, unless the study allows it."""
    if summary.is_held_back:
        raise UsageError(
            f"{summary.study}: {'; '.join(summary.lacks)}. With slow clients connected, this lack of "
            "capacity is an outage, so "
            f"there is no {purpose}. Tune again in a new study, or write `- {{allow: [capacity]}}` under "
            "`space:`."
        )


def formats_of(rendered: Mapping[str, Rendered | Rewritten]) -> tuple[str, ...]:
    """Return the formats that are written when a study of these servers is finished."""
    return (*rendered, JSON)


def all_formats() -> tuple[str, ...]:
    """Return the names of all formats: of servers, json, and those that know no server."""
    return (*adapter_names(AdapterKind.SERVER), JSON, *FORMATS)


def refuse_unknown_format(name: str) -> None:
    """Raise UsageError for what is no format, with the nearest name."""
    formats = all_formats()
    if name not in formats:
        near = ALSO_CALLED.get(name) or next(iter(get_close_matches(name, formats, n=1)), "")
        meant = f" Did you mean {near}?" if near else ""
        raise UsageError(
            f"--format: there is no format {name!r}.{meant} Known formats: {', '.join(formats)}."
        )
