"""A patch of the installed files, and what takes it back: another patch, or a script.

The difference is the one that the server's adapter makes to what is installed, so that what is exported is
what was measured. A patch that stays within the server's own directory and adds no file is undone by its
reverse. Anything else is undone by a script, which needs no patch where a file was added: GNU patch, which
takes such a file away, takes a directory along that is empty then, as Debian's /etc/nginx/conf.d.
"""

import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from io import StringIO
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from tuner.deploy.systemd_limits import RELOAD, UNITS, touches_units
from tuner.errors import TargetError
from tuner.export.lowered import Lowered, describe_lowered
from tuner.export.provenance import describe_by_hand, write_head
from tuner.ports import Argv, Files, Service
from tuner.report.summary import Summary
from tuner.report.wording import make_printable

NO_LINE_END = "\\ No newline at end of file\n"


ROOT = PurePosixPath("/")
ONE_TO_ONE = "latin-1"
"""Any bytes are text in it, and the same bytes again."""
Content = Annotated[
    bytes,
    PlainSerializer(lambda content: content.decode(ONE_TO_ONE)),
    BeforeValidator(lambda text: text.encode(ONE_TO_ONE) if isinstance(text, str) else text),
]
"""Of a file; among JSON values it is text."""
StoredFiles = Mapping[PurePosixPath, Content]
NEW_MODE = 0o644
END = "END OF PATCH"
"""Ends the patch in the script: a line of a patch begins with another sign."""


def make_patch(name: str, before: str | None, after: str | None, context: int = 3) -> str:
    """Write the difference of one file; None stands for a file that does not exist."""
    lines = unified_diff(
        split_lines(before),
        split_lines(after),
        fromfile="/dev/null" if before is None else _mark_end(f"a/{name}"),
        tofile="/dev/null" if after is None else _mark_end(f"b/{name}"),
        n=context,
    )
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_LINE_END}" for line in lines)


def _mark_end(name: str) -> str:
    """Return a name as patch takes it: one with blanks ends at a tab."""
    return f"{name}\t" if " " in name else name


def split_lines(text: str | None) -> list[str]:
    """Split at line feeds alone, as patch does: a page break or a lone carriage return ends no line."""
    return list(StringIO(text, newline="\n"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The installed files of one server that the winner changes."""

    before: StoredFiles
    """As they are; one that does not exist is left out."""
    after: StoredFiles
    service: Service | None
    """None for settings that need no process, as those of the kernel."""
    directory: PurePosixPath = ROOT
    """Below it lie all of these files; names in the patch are relative to it."""
    by_hand: Mapping[str, str] = field(default_factory=dict)
    """Settings of the winner that these files cannot be given → why."""
    lowered: Lowered = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    """Why the gain may be another with these files: a sentence each."""
    modes: Mapping[PurePosixPath, int] = field(default_factory=dict)
    """Of files that exist; a new one is for everybody to read."""

    @property
    def private(self) -> frozenset[PurePosixPath]:
        """Return the files that not everybody may read, as they may hold a password."""
        return frozenset(path for path in self.before if not self.modes.get(path, NEW_MODE) & stat.S_IROTH)


def export_rewritten(summary: Summary, server: str, rewritten: Rewritten) -> dict[str, bytes]:
    """Write the patch and its undo; nothing when no file differs."""
    after = {path: each for path, each in rewritten.after.items() if rewritten.before.get(path) != each}
    if not after:
        return {}
    for path in after:
        refuse_strange(path)
    directory = rewritten.directory
    is_reversible = directory != ROOT and after.keys() <= rewritten.before.keys()
    name, undo = f"tuner-{server}.patch", f"tuner-{server}-undo.{'patch' if is_reversible else 'sh'}"
    take_back = _apply_patch(undo, rewritten, after) if is_reversible else f"sh {undo}"
    head = write_head(
        summary,
        f"apply: {_apply_patch(name, rewritten, after)}",
        f"undo:  {take_back}",
        *describe_lowered(summary.space, rewritten.lowered),
        *describe_by_hand(summary, rewritten.by_hand),
        *rewritten.doubts,
    ).encode()
    files = {name: head + _patch(rewritten.before, after, directory)}
    if is_reversible:
        return {**files, undo: head + _patch(after, rewritten.before, directory)}
    return {**files, undo: _write_undo(summary, undo, rewritten, after)}


def refuse_strange(path: PurePosixPath) -> None:
    """Raise TargetError for a path that would lead out of the folder of an export: a host tells its own."""
    if ".." in path.parts or not path.is_absolute() or not str(path).isprintable():
        raise TargetError(
            f"{make_printable(str(path))}: tuner exports no file with such a path. Check the host, "
            "which named this path as part of its configuration."
        )


def _apply_patch(name: str, rewritten: Rewritten, after: Files) -> str:
    """Return the command that applies a patch, lets the server check it and restarts it."""
    patch = f"patch -p1 -d {shlex.quote(str(rewritten.directory))}"
    steps = (
        f"{patch} --dry-run < {name}",
        # A copy beside a file that was edited meanwhile would be read, where whole folders are included.
        f"{patch} --no-backup-if-mismatch < {name}",
        *_commands(rewritten.service, after),
        _restart(rewritten.service),
    )
    return " && ".join(filter(None, steps))


def _write_undo(summary: Summary, name: str, rewritten: Rewritten, after: Files) -> bytes:
    """Write the commands that put changed files back and take added ones away."""
    before = {path: rewritten.before[path] for path in after if path in rewritten.before}
    added = [path for path in after if path not in before]
    head = "#!/bin/sh\n" + write_head(summary, f"undo: sh {name}", "run as root") + "set -eu\n"
    parts = [head.encode()]
    if before:
        # Tried first: what cannot be put back whole is not put back by halves.
        patch = _patch(after, before, ROOT)
        parts += [
            f"undo() {{\npatch -p1 -d / --no-backup-if-mismatch \"$@\" <<'{END}'\n".encode(),
            patch,
            f"{END}\n}}\nundo --dry-run >/dev/null\nundo\n".encode(),
        ]
    lines = [shlex.join(("rm", "-f", "--", str(path))) for path in added]
    units = {path.parent for path in added if path.is_relative_to(UNITS)}
    lines += [shlex.join(("rmdir", "--ignore-fail-on-non-empty", "--", str(each))) for each in sorted(units)]
    lines += _commands(rewritten.service, after)
    if restart := _restart(rewritten.service):
        lines.append(shlex.join(("echo", f"Stop and start the server now: {restart}")))
    return b"".join((*parts, *(f"{line}\n".encode() for line in lines)))


def _patch(before: Files, after: Files, directory: PurePosixPath) -> bytes:
    """Write the difference of all files of `after`, with names below a directory."""
    parts = (
        make_patch(
            str(path.relative_to(directory)),
            before[path].decode(ONE_TO_ONE) if path in before else None,
            content.decode(ONE_TO_ONE),
        )
        for path, content in sorted(after.items())
    )
    return "".join(parts).encode(ONE_TO_ONE)


def _commands(service: Service | None, files: Files) -> list[str]:
    """Return what has to be run after these files changed, before the restart."""
    commands: list[Argv] = [RELOAD] if touches_units(files) else []
    if service is not None and service.check is not None:
        commands.append(service.check)
    return [shlex.join(argv) for argv in commands]


def _restart(service: Service | None) -> str:
    """Return the command that stops and starts a service; empty where there is none."""
    if service is None:
        return ""
    if service.is_systemd:
        return shlex.join(("systemctl", "restart", service.name))
    return shlex.join(("service", service.name, "restart"))
