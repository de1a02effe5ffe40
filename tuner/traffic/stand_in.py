"""Plans files in place of a site that is not there: as long, and about as compressible as what was sent.

What a path may do is up to whoever sent it, so names are made of harmless characters alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import count
from pathlib import PurePosixPath
from random import Random
from urllib.parse import unquote

from tuner.traffic.kinds import Kind

MOST_BYTES = 2**30
"""Of all files together."""
UNSAFE = re.compile(r"[^A-Za-z0-9._~-]+")
MOST_LETTERS, MOST_SEGMENTS = 100, 10
INDEX = "index.html"
PROGRAMS = frozenset({".cgi", ".fcgi", ".php", ".phtml", ".pl", ".py", ".shtml", ".asp", ".aspx", ".jsp"})
"""Files that a server may run, or give no type: they get the suffix of a page."""
PACKED = frozenset(
    {
        *(".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".ico", ".woff", ".woff2", ".mp3", ".mp4"),
        *(".ogg", ".webm", ".pdf", ".zip", ".gz", ".bz2", ".xz", ".zst", ".br", ".7z", ".rar", ".iso"),
    }
)
"""Files that do not become shorter when they are compressed."""
BLOCK_BYTES = 2**18
"""Repeated in longer files: gzip looks back 32 KiB only."""
WORDS = 1500
"""Drawn evenly from so many, text is compressed to about a third, as pages and scripts are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """One kind of request, with the file that is served for it."""

    kind: Kind
    """With the path and the status that a server of files gives it."""
    file: PurePosixPath | None
    """Below the document root; None for what is not to be found."""
    size: int = 0

    @property
    def is_cut(self) -> bool:
        """Return whether the file is shorter than what was sent."""
        return self.kind.status == HTTPStatus.OK and self.size < self.kind.mean_bytes

    def content(self) -> bytes:
        """Make the content of the file: the same for the same path."""
        draw = Random(self.kind.path)  # noqa: S311 - no secret
        length = min(self.size, BLOCK_BYTES)
        if PurePosixPath(self.kind.path).suffix.lower() in PACKED:
            block = draw.randbytes(length)
        else:
            words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=2 + n % 9)) for n in range(WORDS)]
            block = " ".join(draw.choices(words, k=length // 3 + 1)).encode()[:length]
        return (block * (self.size // BLOCK_BYTES + 1))[: self.size] if block else b""


def plan_stand_ins(kinds: Sequence[Kind]) -> tuple[StandIn, ...]:
    """Return what is asked for in place of some kinds of requests.

    Files are found with 200, folders without a slash at the end redirect with 301, and what is not there is
    answered with 404. A status that a server of files has no way to give becomes the nearest of these.
    """
    most = MOST_BYTES // max(1, len(kinds))
    files: set[tuple[str, ...]] = set()
    planned = {}
    # What is not there must not be taken for a file that is planned later.
    for kind in sorted(kinds, key=lambda each: each.status >= HTTPStatus.BAD_REQUEST):
        segments = _name_segments(kind)
        if kind.status >= HTTPStatus.BAD_REQUEST:
            place = _find_free(segments or ("none",), files)
            planned[kind] = StandIn(kind=_answer(kind, place, HTTPStatus.NOT_FOUND), file=None)
        elif kind.status >= HTTPStatus.MULTIPLE_CHOICES:
            place = _find_free((*(segments or ("moved",)), INDEX), files)
            moved = _answer(kind, place[:-1], HTTPStatus.MOVED_PERMANENTLY)
            planned[kind] = StandIn(kind=moved, file=PurePosixPath(*place))
        else:
            is_page = kind.path.endswith("/") or not segments
            place = _find_free((*segments, INDEX) if is_page else segments, files)
            asked = (*place[:-1], "") if is_page and place[-1] == INDEX else place
            served = _answer(kind, asked, HTTPStatus.OK)
            planned[kind] = StandIn(kind=served, file=PurePosixPath(*place), size=min(most, kind.mean_bytes))
        if planned[kind].file is not None:
            files.add(place)
    return tuple(planned[kind] for kind in kinds)


def _answer(kind: Kind, segments: Sequence[str], status: int) -> Kind:
    return replace(kind, path="/" + "/".join(segments), status=status)


def _name_segments(kind: Kind) -> tuple[str, ...]:
    """Return the parts of a path as names of files that mean nothing to any program."""
    parts = [each for each in unquote(kind.path).split("/") if each][:MOST_SEGMENTS]
    plain = [UNSAFE.sub("-", each).lstrip(".~")[:MOST_LETTERS] or "_" for each in parts]
    if plain and not kind.path.endswith("/") and PurePosixPath(plain[-1]).suffix.lower() in PROGRAMS:
        plain[-1] += ".html"
    return tuple(plain)


def _find_free(segments: tuple[str, ...], files: set[tuple[str, ...]]) -> tuple[str, ...]:
    """Return a path that is free, in another folder where the one that is wanted is not."""
    return next(each for each in _alternatives(segments) if _is_free(each, files))


def _alternatives(segments: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    first, *rest = segments
    yield segments
    for number in count(2):
        yield (f"{first}-{number}", *rest) if rest else (f"{number}-{first}",)


def _is_free(segments: tuple[str, ...], files: set[tuple[str, ...]]) -> bool:
    """Return whether no file is there, or on the way there, and it is no folder of one."""
    above = {segments[:length] for length in range(1, len(segments) + 1)}
    return above.isdisjoint(files) and all(each[: len(segments)] != segments for each in files)
