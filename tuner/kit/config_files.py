"""Configuration files: the patterns of an Include, and the drop-in that overrides what stands before."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

DROP_IN_NAME = "zz-tuner.conf"
"""Read last: directories are read in the order of the names in them."""
DROP_IN_HEAD = "Written by tuner: overrides what is set before. Take this file away to undo it."
"""The comment that a drop-in begins with."""


def matching(paths: Iterable[PurePosixPath], pattern: PurePosixPath) -> list[PurePosixPath]:
    """Return the paths that match, in the order of their names; `*` does not go across a slash."""
    return sorted((path for path in paths if matches(path, pattern)), key=lambda path: path.parts)


def inside(paths: Iterable[PurePosixPath], pattern: PurePosixPath) -> list[PurePosixPath]:
    """Return the paths below directories that match, in the order of their names."""
    below = (path for path in paths if any(matches(parent, pattern) for parent in path.parents))
    return sorted(below, key=lambda path: path.parts)


def matches(path: PurePosixPath, pattern: PurePosixPath) -> bool:
    """Return whether glob(7) would match the path: part by part, and `*` is no leading dot.

    Apache's own matching keeps to the same rule (server/config.c, APR_FNM_PERIOD).
    """
    return len(path.parts) == len(pattern.parts) and all(map(_fits, path.parts, pattern.parts))


def _fits(part: str, wanted: str) -> bool:
    return part == wanted or (fnmatchcase(part, wanted) and (part[0] != "." or wanted[0] == "."))
