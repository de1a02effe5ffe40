"""Reads the answer to a look at many files: what stat(1) and cat(1) printed in one request."""

import errno
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from tuner.adapters.hosts.command_runner import READ_LIMIT_BYTES, refused
from tuner.adapters.hosts.ssh.requests import Frame, normal
from tuner.errors import TargetError
from tuner.ports import ABSENT, FileReader, FileState

OF_PROCESSES = ("stat", "status", "limits", "cmdline")
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESRCH)
"""A path that is not there, or a process that ended while it was looked at."""
OWNER = re.compile(rb"[0-9]+:[0-9]+ ([0-7]{1,6}) ([0-9]{1,10}) ([0-9]{1,10})")
REASONS = {os.strerror(number).encode(): number for number in errno.errorcode}


class Snapshot:
    """Files as they were; others are read of the host when they are asked for."""

    def __init__(self, files: Mapping[str, FileState], host: FileReader) -> None:
        self._files = files
        self._host = host

    def read(self, path: PurePosixPath) -> FileState:
        known = self._files.get(normal(path))
        return self._host.read(path) if known is None else known


def files_of(frames: Sequence[Frame], paths: Sequence[PurePosixPath], mark: bytes) -> dict[str, FileState]:
    """Read the answer of `tuner_look`: the files that were read, or are known to be absent."""
    tree, looked = _parts(frames)
    names = [normal(path) for path in paths]
    for pid in tree.words:
        names += [f"/proc/{pid}/{name}" for name in (*OF_PROCESSES, f"task/{pid}/children")]
    if len(looked.out) >= READ_LIMIT_BYTES:
        return {}
    facts, *bodies = looked.out.split(mark)
    owners = _owners(facts)
    if not len(names) == len(owners) == len(bodies) - 1:
        raise TargetError(
            f"host: {len(names)} files, such as {names[0]}, were not read in time. Check them on the host."
        )
    not_found, not_read = _complaints(looked, b"stat: "), _complaints(looked, b"cat: ")
    reasons = _reasons(not_found, owners)
    # Whatever could be looked up and not read has one more complaint, of cat alone.
    is_all_read = len(not_read) == len(not_found)
    found: dict[str, FileState] = {}
    for name, owner, body, reason in zip(names, owners, bodies[:-1], reasons, strict=True):
        if owner is not None and (body or is_all_read):
            mode, uid, gid = owner
            found[name] = FileState(content=body, mode=mode, uid=uid, gid=gid)
        elif reason in GONE:
            found[name] = ABSENT
    for pid in tree.words:
        _forget_newcomers(found, f"/proc/{pid}/task/{pid}/children", frozenset(tree.words))
    return found


def _parts(frames: Sequence[Frame]) -> tuple[Frame, Frame]:
    if tuple(frame.kind for frame in frames) != ("tree", "ran"):
        raise TargetError("host: its shell did not return the files that were requested. Check its /bin/sh.")
    return frames[0], frames[1]


def _forget_newcomers(found: dict[str, FileState], path: str, tree: frozenset[str]) -> None:
    """Leave out children that came after the tree was walked, such as the cat that read this very file.

    Nothing was read of them, and asking for each would be a request more.
    """
    state = found.get(path, ABSENT)
    if state.content is not None:
        known = [child for child in state.content.split() if child.decode(errors="replace") in tree]
        found[path] = replace(state, content=b" ".join(known))


def file_of(frames: Sequence[Frame], path: PurePosixPath, mark: bytes, *, where: str) -> FileState:
    """Read the answer for one file. Raises TargetError when it is there and cannot be read."""
    found = files_of(frames, [path], mark).get(normal(path))
    if found is not None:
        return found
    _, looked = _parts(frames)
    complaint = b"".join(_complaints(looked, b"cat: ")[:1])
    if len(looked.out) >= READ_LIMIT_BYTES:
        complaint = b"it is larger than %d bytes" % READ_LIMIT_BYTES
    number = _reason(complaint)
    if number in GONE:
        return ABSENT
    reason = os.strerror(number) if number else complaint.decode(errors="replace")
    raise refused(where, path, "read", OSError(number or errno.EIO, reason))


def _complaints(looked: Frame, program: bytes) -> list[bytes]:
    return [line for line in looked.err.splitlines() if line.startswith(program)]


def _owners(printed: bytes) -> list[tuple[int, int, int] | None]:
    """Read mode and owner of each file; those of the mark come first and stand after each of them."""
    lines = printed.split(b"\n")[:-1]
    mark = lines[0] if lines else b""
    owners: list[tuple[int, int, int] | None] = []
    before = mark
    for line in lines[1:]:
        if line == mark:
            owners.append(None if before == mark else _owner(before))
        before = line
    return owners


def _owner(line: bytes) -> tuple[int, int, int]:
    found = OWNER.fullmatch(line)
    if found is None:
        raise TargetError(f"host: stat(1) printed the unexpected line {line[:80]!r}. Check stat on the host.")
    return int(found[1], 8) & 0o7777, int(found[2]), int(found[3])


def _reasons(lines: Sequence[bytes], owners: Sequence[object]) -> list[int | None]:
    """Return why files could not be looked up: their complaints come in the same order."""
    missing = [index for index, owner in enumerate(owners) if owner is None]
    reasons: list[int | None] = [None] * len(owners)
    if len(lines) == len(missing):
        for index, line in zip(missing, lines, strict=True):
            reasons[index] = _reason(line)
    return reasons


def _reason(complaint: bytes) -> int | None:
    """Find the error at the end of a complaint."""
    return next((number for text, number in REASONS.items() if complaint.endswith(b": " + text)), None)
