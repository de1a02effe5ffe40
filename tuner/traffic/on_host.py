"""Reads the end of a log on a host: its last megabytes say what users ask for as well as all of it does."""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.ports import Host

MOST_BYTES = 2**26
"""Of a log and the one before it was rotated, together."""
PIECE_BYTES = 2**22
"""A host hands over at most 8 MiB of the output of one command."""
READ_S = 60.0
MEBIBYTE = 2**20
SIZE = 'if [ -f "$1" ] && [ -r "$1" ]; then stat -L -c %s -- "$1"; fi'
PIECE = 'tail -c +"$2" -- "$1" | head -c "$3" | gzip -1'
"""Run by sh with a path, the number of the first byte from 1, and how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedLog:
    """The end of a log on a host."""

    name: str
    """Host and path, and how much of it was read where that is not all."""
    content: bytes
    """Whole lines, packed with gzip."""


def fetch_logs(host: Host, path: PurePosixPath, *, most_bytes: int = MOST_BYTES) -> Iterator[FetchedLog]:
    """Yield the end of a log, and of the one before it was rotated where there is room for it.

    Raises TargetError where the log cannot be read.
    """
    size = _find_size(host, path)
    if size is None:
        raise TargetError(
            f"{host.name}: {path}: you cannot read a log at this path. Log in as a user with read access, or "
            "name a copy on this machine: --from FILE."
        )
    yield _fetch(host, path, size, most_bytes)
    before = path.with_name(f"{path.name}.1")
    size_before = _find_size(host, before) if size < most_bytes else None
    if size_before:
        yield _fetch(host, before, size_before, most_bytes - size)


def _find_size(host: Host, path: PurePosixPath) -> int | None:
    told = host.run(("sh", "-c", SIZE, "size", str(path)), timeout_s=READ_S).stdout.strip()
    return int(told) if told.isdigit() else None


def _fetch(host: Host, path: PurePosixPath, size: int, most_bytes: int) -> FetchedLog:
    first = max(0, size - most_bytes)
    pieces = [
        _fetch_piece(host, path, at, min(PIECE_BYTES, size - at)) for at in range(first, size, PIECE_BYTES)
    ]
    name = f"{host.name}:{path}"
    if first:
        # The first line is the end of one.
        pieces[0] = gzip.compress(gzip.decompress(pieces[0]).partition(b"\n")[2], 1)
        name += f" (the last {most_bytes / MEBIBYTE:,.0f} of {size / MEBIBYTE:,.0f} MiB)"
    return FetchedLog(name=name, content=b"".join(pieces))


def _fetch_piece(host: Host, path: PurePosixPath, at: int, count: int) -> bytes:
    """Return a part of a file, packed."""
    done = host.run(("sh", "-c", PIECE, "piece", str(path), str(at + 1), str(count)), timeout_s=READ_S)
    if done.returncode != 0 or done.timed_out:
        said = done.stderr.decode(errors="replace").strip() or f"no end after {READ_S:g} s"
        raise TargetError(
            f"{host.name}: {path}: tuner cannot read the log ({said}). Name a copy on this machine: --from "
            "FILE."
        )
    return done.stdout
