"""Find the files that a pattern of an Include means, among those that are known."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath


def matching(paths: Iterable[PurePosixPath], pattern: PurePosixPath) -> list[PurePosixPath]:
    """Pick the paths that match, in the order of their names; `*` does not go across a slash."""
    return sorted((path for path in paths if _matches(path, pattern)), key=lambda path: path.parts)


def inside(paths: Iterable[PurePosixPath], pattern: PurePosixPath) -> list[PurePosixPath]:
    """Pick the paths below directories that match, in the order of their names."""
    below = (path for path in paths if any(_matches(parent, pattern) for parent in path.parents))
    return sorted(below, key=lambda path: path.parts)


def _matches(path: PurePosixPath, pattern: PurePosixPath) -> bool:
    return len(path.parts) == len(pattern.parts) and all(map(fnmatchcase, path.parts, pattern.parts))
