"""Two scripts for a host: one puts a winner there, the other takes it back.

Both are made alike, of the change and of its reverse: they look at everything before they change anything,
and what fails half way is put back. They need POSIX sh, and sha256sum, head -c and cp -a, which coreutils
and busybox have.
"""

import hashlib
import shlex
from collections.abc import Iterator
from importlib import resources
from pathlib import PurePosixPath

from tuner.deploy.systemd_limits import UNITS
from tuner.export.host_change import FileChange, HostChange, ServiceChange, describe_change
from tuner.export.provenance import write_head
from tuner.report.summary import Summary

APPLY, UNDO = "apply.sh", "undo.sh"
END = "END_OF_FILE"
FOLDER = "tuner-shell"
UNFINISHED = PurePosixPath("/run/tuner-unfinished")
"""Holds a folder for each change that was begun and not ended. A boot, after which all services have the new
files, empties it."""


def write_shell(summary: Summary, change: HostChange) -> dict[str, bytes]:
    """Write apply.sh and undo.sh."""
    return write_scripts(summary, change, FOLDER)


def write_scripts(summary: Summary, change: HostChange, folder: str) -> dict[str, bytes]:
    """Write both scripts into a folder."""
    whole = change.with_boot_files(write_head(summary))
    head = describe_change(
        summary,
        change,
        f"apply: sh {APPLY} (to see whether it is applied: sh {APPLY} --check, which changes nothing)",
        f"undo:  sh {UNDO}",
        "run as root; a second run changes nothing",
    )
    return {
        f"{folder}/{APPLY}": _write_script(head, whole),
        f"{folder}/{UNDO}": _write_script(head, whole.reversed()),
    }


def _write_script(head: str, change: HostChange) -> bytes:
    functions = (resources.files("tuner.export.formats") / "change.sh").read_text()
    begin = (*_write_functions(change), f"mark {find_mark(change)}", *_expectations(change), "begin")
    lines = [line.encode() for line in begin]
    lines += [_write_file(each) for each in change.files]
    lines += [line.encode() for line in _steps(change)]
    return b"".join(
        (b"#!/bin/sh\n", head.encode(), functions.encode(), b"\n", *(b"%s\n" % each for each in lines))
    )


def _write_functions(change: HostChange) -> Iterator[str]:
    """Yield the lines of what is called from several places: the checks of all services, and their names."""
    checks = [shlex.join(each.check) for each in change.services if each.check is not None]
    yield from ("check() {", " &&\n".join(checks) or ":", "}")
    told = [f"{_verb(each)} {each.name}" for each in change.services]
    yield from ("services() {", shlex.join(("printf", r"%s\n", *told)) if told else ":", "}")


def _verb(service: ServiceChange) -> str:
    return "reload" if service.may_reload else "restart"


def find_mark(change: HostChange) -> PurePosixPath:
    """Return the folder that is there while a change, or its reverse, is under way."""
    paths = [*(each.path for each in change.files), *(each.path for each in change.settings)]
    return UNFINISHED / hashlib.sha256("\n".join(sorted(map(str, paths))).encode()).hexdigest()[:16]


def _expectations(change: HostChange) -> Iterator[str]:
    for file in change.files:
        yield shlex.join(("expect_file", str(file.path), *file.sums))
    for setting in change.settings:
        yield shlex.join(("expect_value", str(setting.path), setting.before, setting.after))


def _write_file(file: FileChange) -> bytes:
    """Write what puts one file in its place; the number of bytes cuts off a line end that is not its own."""
    if file.after is None:
        return shlex.join(("take_file", str(file.path))).encode()
    end = END
    while end.encode() in file.after:
        end += "_"
    call = shlex.join(("put_file", str(file.path), str(len(file.after))))
    return b"%s <<'%s'\n%s\n%s" % (call.encode(), end.encode(), file.after, end.encode())


def _steps(change: HostChange) -> Iterator[str]:
    """Yield what is run when the files are in place."""
    for directory in sorted(emptied_directories(change)):
        yield f"{shlex.join(('rmdir', str(directory)))} 2>/dev/null || :"
    for setting in change.settings:
        yield shlex.join(("put_value", str(setting.path), setting.after))
    if change.touches_units:
        yield "reload_units"
    yield "check"
    for service in change.services:
        yield shlex.join(("activate", _verb(service), service.name))
    yield "end"


def emptied_directories(change: HostChange) -> set[PurePosixPath]:
    """Return the directories of units that may be empty without the files that are taken away."""
    gone = (each.path for each in change.files if each.after is None)
    return {path.parent for path in gone if path.is_relative_to(UNITS)}
