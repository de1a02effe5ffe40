"""A file of settings that an installed server reads after its own, and a script that takes it away again."""

import shlex
from pathlib import PurePosixPath

from tuner.export.lowered import describe_lowered
from tuner.export.provenance import comment, describe_by_hand, write_head
from tuner.export.rendered import SITE, Rendered
from tuner.ports import DropIn, Files
from tuner.report.summary import Summary


def export_drop_in(summary: Summary, server: str, rendered: Rendered, drop_in: DropIn) -> dict[str, bytes]:
    """Write the directives that differ as one file at server level, and the script that takes it away."""
    name, undo = f"tuner-{server}.conf", f"tuner-{server}-undo.sh"
    before, after = read_files(rendered.default), read_files(rendered.winner)
    lines: list[str] = []
    elsewhere: list[str] = []
    for directive in dict.fromkeys([*after, *before]):
        old, new = before.get(directive, []), after.get(directive, [])
        added = [line for line in new if line not in old]
        dropped = [line for line in old if line not in new]
        if any(is_private(line, rendered) for line in (*added, *dropped)):
            elsewhere += [f"instead of {line}" for line in dropped] + [f"use {line}" for line in added]
        else:
            lines += added
            elsewhere += [] if added else [f"without {line}" for line in dropped]
    if not lines and not elsewhere:
        return {}
    installed = rendered.installed
    steps = (("cp", name, f"{drop_in.directory}/"), drop_in.enable, drop_in.check)
    head = write_head(
        summary,
        f"apply: {' && '.join(shlex.join(step) for step in steps if step)}",
        f"then stop and start the server: {drop_in.note}",
        f"undo: sh {undo}",
        *([drop_in.elsewhere] if drop_in.elsewhere else []),
        *describe_lowered(summary.space, rendered.lowered),
        *((*describe_by_hand(summary, installed.by_hand), *installed.doubts) if installed else ()),
        *([f"check before use: {rendered.reason}"] if rendered.reason else []),
    )
    tail = (
        comment("", "change these lines by hand, where your sites have them:", *elsewhere)
        if elsewhere
        else ""
    )
    tail = tail.replace(str(SITE.directory), drop_in.log_directory)
    text = head + "".join(f"{line}\n" for line in lines) + tail
    return {name: text.encode(), undo: write_undo(summary, drop_in.directory / name, drop_in)}


def is_private(line: str, rendered: Rendered) -> bool:
    """Return whether a directive names a file of the instance, as a site's CustomLog does, or its backend."""
    backend = rendered.backend
    return str(SITE.directory) in line or (backend is not None and backend.address in line)


def write_undo(summary: Summary, path: PurePosixPath, drop_in: DropIn) -> bytes:
    """Write the commands that take the file away."""
    return (
        "#!/bin/sh\n"
        + write_head(summary, "removes these settings; run as root")
        + "set -eu\n"
        + (f"{shlex.join(drop_in.disable)}\n" if drop_in.disable else "")
        + f"rm -f {shlex.quote(str(path))}\n"
        + f"{shlex.join(drop_in.check)}\n"
        + f'echo "Stop and start the server now: {shlex.join(drop_in.restart)}"\n'
    ).encode()


def read_files(files: Files) -> dict[str, list[str]]:
    """Read the directives of all files by lower-case name, with the blanks between words made one.

    Directives within sections count like those outside: the sections are the private instance's own.
    """
    found: dict[str, list[str]] = {}
    for path, content in sorted(files.items()):
        if path.suffix != ".conf":
            continue
        for line in content.decode().replace("\\\n", " ").splitlines():
            words = line.split()
            if words and not words[0].startswith(("#", "<")):
                found.setdefault(words[0].lower(), []).append(" ".join(words))
    return found
