"""Configuration files of an installed server: reading, the patterns of an Include, drop-ins."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from tuner.errors import TargetError
from tuner.kit.programs import COMMAND_TIMEOUT_S
from tuner.ports import Config, Files, Host, Scalar

DROP_IN_NAME = "zz-tuner.conf"
"""Read last: directories are read in the order of the names in them."""
DROP_IN_HEAD = "Written by tuner: overrides earlier settings. Remove this file to undo them."
"""The comment that a drop-in begins with."""

PLACES_SHOWN = 3

LARGEST_FILE_BYTES = 2**24
"""Of one configuration file; real ones are far smaller."""

_WILDCARDS = frozenset("*?[")


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


def has_wildcard(pattern: PurePosixPath) -> bool:
    """Return whether a pattern may name other paths than the one that is written."""
    return not _WILDCARDS.isdisjoint(str(pattern))


def _fits(part: str, wanted: str) -> bool:
    if part == wanted:
        return True
    if part[0] == "." and wanted[0] != ".":
        return False
    begin, star, end = wanted.partition("*")
    if star and _WILDCARDS.isdisjoint(
        begin + end
    ):  # most are so, and a pattern of its own takes long to make
        return len(part) >= len(begin + end) and part.startswith(begin) and part.endswith(end)
    return fnmatchcase(part, wanted)


def list_matching(host: Host, pattern: PurePosixPath) -> list[PurePosixPath]:
    """Return the files of a host that match, in order; a path without wildcards as it is."""
    wild = next((index for index, part in enumerate(pattern.parts) if _WILDCARDS & set(part)), None)
    if wild is None:
        return [pattern]
    depth = str(len(pattern.parts) - wild)
    root = str(PurePosixPath(*pattern.parts[:wild]))
    argv = ("find", "-L", root, "-mindepth", depth, "-maxdepth", depth, "-type", "f", "-print0")
    listed = host.run(argv, timeout_s=COMMAND_TIMEOUT_S).stdout.decode(errors="surrogateescape")
    return matching((PurePosixPath(name) for name in listed.split("\0") if name), pattern)


def find_readable(host: Host, paths: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    """Return the files that have content, and the paths that cannot be looked up.

    Any user may start a process that names a pipe, a device or a file of the kernel as its configuration. The
    reader of a pipe or device may never end; those of the kernel say that they are empty, and stay unread.

    Raises TargetError for what is no file, or too long.
    """
    asked = list(paths)
    argv = ("stat", "-L", "--printf", r"%F\t%s\t%n\0", "--", *map(str, asked))
    told = host.run(argv, timeout_s=COMMAND_TIMEOUT_S).stdout.decode(errors="surrogateescape")
    empty: set[str] = set()
    for kind, size, name in (row.split("\t", 2) for row in told.split("\0") if row):
        if not kind.startswith("regular ") or int(size) > LARGEST_FILE_BYTES:
            wrong = f"the path is no file, or the file is larger than {LARGEST_FILE_BYTES // 2**20} MiB"
            raise TargetError(f"{host.name}: tuner cannot read {name}: {wrong}. Check this path on the host.")
        if int(size) == 0:
            empty.add(name)
    return [path for path in asked if str(path) not in empty]


def read_files(host: Host, main: PurePosixPath, *directories: PurePosixPath, package: str) -> Files:
    """Read the main file first, then every *.conf of the directories in the order of their names.

    Raises TargetError when there is no main file.
    """
    listed = [host.run(("find", "-L", str(each), "-name", "*.conf"), timeout_s=COMMAND_TIMEOUT_S)
              for each in directories]  # fmt: skip
    paths = [PurePosixPath(line) for each in listed for line in sorted(each.stdout.decode().splitlines())]
    look = host.look([main, *paths])
    files = {path: content for path in (main, *paths) if (content := look.read(path).content) is not None}
    if main not in files:
        raise TargetError(
            f"{host.name}: the file {main} does not exist. Restore this file, or reinstall its "
            f"package {package}."
        )
    return files


def find_changes(config: Config, current: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the part of a configuration that is not active; 1 and true are not the same."""
    return {
        name: value
        for name, value in config.items()
        if name not in current or type(value) is not type(current[name]) or value != current[name]
    }


def name_places(places: Sequence[str]) -> str:
    """Return the first places, and how many more there are."""
    more = f" and {len(places) - PLACES_SHOWN} more" if len(places) > PLACES_SHOWN else ""
    return ", ".join(places[:PLACES_SHOWN]) + more


def write_drop_in(installed: bytes | None, lines: Mapping[str, str], *, comment: str = "#") -> bytes:
    """Write a drop-in, keeping what one that is there already sets besides.

    Args:
        installed: the drop-in as it is; None where there is none.
        lines: what to set: the word that a line begins with → the line.
        comment: what begins a comment.
    """
    before = [f"{comment} {DROP_IN_HEAD}"] if installed is None else installed.decode().splitlines()
    kept = [line for line in before if re.split(r"[\s=:]", line.strip(), maxsplit=1)[0] not in lines]
    return "".join(f"{line}\n" for line in (*kept, *lines.values())).encode()
